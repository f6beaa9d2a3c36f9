"""Cross entropy by hand: minus the log-softmax of the right class, picked one way or another.

`gather` with `unsqueeze`, an index by `arange`, or a product with `one_hot`; averaged, summed or
as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kpredict.changes.patterns import cast, product
from kpredict.changes.rewrites import ROUNDING, Rewrite
from kpredict.changes.softmaxes import Softmax, log_softmax
from kpredict.changes.terms import Term, same
from kpredict.changes.writing import Writer


@dataclass(frozen=True, slots=True)
class Picked:
    """The log-probabilities of labels; `is_matrix` None where they must be, which only a plan
    tells."""

    logs: Softmax
    labels: Term
    is_matrix: bool | None = False


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    logits: Term
    labels: Term
    dim: int
    reduction: str
    is_matrix: bool | None = False


def find(term: Term) -> Iterator[Rewrite]:
    found = _cross_entropy(term)
    if found is None:
        return

    def say(w: Writer) -> str:
        x, y = w.say(found.logits), w.say(found.labels)
        if found.dim != 1 and found.is_matrix is False:
            x = f"{w.atom(found.logits)}.flatten(0, -2)"
            y = f"{w.atom(found.labels)}.flatten()"
        how = "" if found.reduction == "mean" else f', reduction="{found.reduction}"'
        return f"{w.functional('cross_entropy')}({x}, {y}{how})"

    matrix = "" if found.is_matrix is not None else "aten._log_softmax.default"
    yield Rewrite("cross entropy", say, ROUNDING, matrix=matrix)


def _cross_entropy(term: Term) -> CrossEntropy | None:
    sign, reduced, current = 1, "none", term
    while True:
        if current.op == "neg":
            sign, current = -sign, current["self"]
        elif current.op in ("mean", "sum") and len(current.args) == 1 and reduced == "none":
            reduced, current = current.op, current["self"]
        else:
            break
    if sign != -1:
        return None
    picked = _picked(current, reduced)
    if picked is None:
        return None
    found = picked.logs
    if not found.dim.is_number or found.dim.value not in (1, -1):
        return None
    if reduced == "none" and not picked.is_matrix:
        return None  # the shape of what comes out would have to be known
    return CrossEntropy(found.x, picked.labels, int(found.dim.value), reduced, picked.is_matrix)


def _picked(term: Term, reduced: str) -> Picked | None:
    if term.op == "squeeze" and term["self"].op == "gather":
        if same(term.get("dim"), term["self"].get("dim")) or reduced != "none":
            return _picked(term["self"], reduced)
        return None
    if term.op == "gather":
        logs, index, dim = log_softmax(term["self"]), term.get("index"), term.get("dim")
        if logs is None or index is None or index.op != "unsqueeze":
            return None
        if same(dim, logs.dim) and same(index.get("dim"), dim):
            return Picked(logs, index["self"])
        dims = {logs.dim.value, index.constant("dim"), dim.value if dim is not None else None}
        if dims == {1, -1}:  # the same dim of a matrix
            return Picked(logs, index["self"], is_matrix=None)
    if term.op == "pick" and _is_arange(term["0"].node):
        logs = log_softmax(term["self"])
        return None if logs is None else Picked(logs, term["1"], is_matrix=True)
    if term.op == "sum" and term.constant("dim") == -1 and not term.constant("keepdim", False):
        return _one_hot(term["self"])
    return None


def _one_hot(term: Term) -> Picked | None:
    factors = product(term)
    if factors.number != 1.0 or len(factors.over) != 2 or factors.under:
        return None
    for hot, other in (factors.over, factors.over[::-1]):
        found = cast(hot)
        hot = found[0] if found is not None else hot
        logs = log_softmax(other)
        if hot.op == "one_hot" and logs is not None and logs.dim.value == -1:
            return Picked(logs, hot["self"])
    return None


def _is_arange(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="arange")):
            return True
    return False
