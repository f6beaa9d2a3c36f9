"""Optimizers that launch once per parameter, and gradients that are filled where they may go."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from kpredict.changes.change import Alternatives, Change, Edit, Kind
from kpredict.changes.names import Names, read_names
from kpredict.changes.reading import Reading, line_offsets, span

_FUSED = frozenset("Adam AdamW SGD Adagrad".split())
_ALL = _FUSED | frozenset("RMSprop NAdam RAdam Adadelta Adamax Rprop ASGD".split())
_DROPPED = "after it gradients are None and no longer 0"


def find(text: str, readings: Sequence[Reading]) -> Iterator[Alternatives]:
    tree = ast.parse(text)
    names, offsets = read_names(tree), line_offsets(text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        found: Alternatives = ()
        if isinstance(node.func, ast.Attribute) and node.func.attr == "zero_grad":
            found = tuple(_dropping(node, text, offsets))
        elif _optimizer(node, names):
            found = tuple(_packing(node, _optimizer(node, names), text, offsets))
        if found:
            yield found


def _optimizer(node: ast.Call, names: Names) -> str:
    """`Adam` of `torch.optim.Adam(...)`."""
    path = names.path(node.func)
    where, _, name = path.rpartition(".")
    return name if where.startswith("torch.optim") and name in _ALL else ""


def _dropping(node: ast.Call, text: str, offsets: list[int]) -> Iterator[Change]:
    given = [k.value for k in node.keywords if k.arg == "set_to_none"] or node.args[:1]
    if len(given) == len(node.args) + len(node.keywords) == 1:
        value = given[0]
        if isinstance(value, ast.Constant) and value.value is False:
            start, end = span(node.func, text, offsets)[1], span(node, text, offsets)[1]
            yield Change(
                Kind.OPTIMIZER, "zero_grad() drops gradients, no fill", node.lineno,
                node.end_lineno or node.lineno, (Edit(start, end, "()"),), _DROPPED,
            )  # fmt: skip


def _packing(node: ast.Call, name: str, text: str, offsets: list[int]) -> Iterator[Change]:
    given = {k.arg: k for k in node.keywords}
    if None in given or "fused" in given or "differentiable" in given or not node.args:
        return
    one_by_one = given.get("foreach")
    is_off = one_by_one is not None and getattr(one_by_one.value, "value", None) is False
    end = span(node, text, offsets)[1] - 1
    inside = text[:end].rstrip()
    comma = "" if inside.endswith((",", "(")) else ", "
    if name in _FUSED:
        if one_by_one is None:
            edit = Edit(len(inside), len(inside), f"{comma or ' '}fused=True")
        else:
            edit = Edit(*span(one_by_one, text, offsets), "fused=True")
        yield _made(node, f"{name}(…, fused=True)", edit)
    if one_by_one is not None and is_off:
        edit = Edit(*span(one_by_one, text, offsets), "foreach=True")
        yield _made(node, f"{name}(…, foreach=True)", edit)


def _made(node: ast.Call, title: str, edit: Edit) -> Change:
    last = node.end_lineno or node.lineno
    return Change(Kind.OPTIMIZER, title, node.lineno, last, (edit,), "same update up to rounding")
