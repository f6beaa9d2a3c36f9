"""Graph breaks: Changes that take away what makes torch.compile end a graph.

In: a function, and where an entry's plan broke and why. The edit is real: a guard in front of a
print, a choice by `torch.where`, `.item()` left out, or the setting of dynamo that its message
names, written after the file's imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kpredict.changes.change import Alternatives, Change, Edit, Kind
from kpredict.changes.choices import choice, item_span, reads_in
from kpredict.changes.reading import Reading
from kpredict.changes.rewrites import ROUNDING
from kpredict.changes.writing import removal, stands_alone
from kpredict.model import GraphBreak

_SETTING = re.compile(r"torch\._dynamo\.config\.(capture_\w+) = True")
_SETTINGS = {
    "Tensor.item()": "capture_scalar_outputs",
    "Dynamic shape operator": "capture_dynamic_output_shape_ops",
}
_SPOKEN = frozenset("debug info warning warn error exception critical log".split())
_GUARD = "if not {torch}.compiler.is_compiling(): "


@dataclass(frozen=True, slots=True)
class _Broken:
    """A statement that breaks the graph, and dynamo's reason."""

    statement: ast.stmt
    reading: Reading
    reason: str

    @property
    def lines(self) -> tuple[int, int]:
        end = self.statement.end_lineno or self.statement.lineno
        if isinstance(self.statement, ast.If):
            end = self.statement.body[0].lineno
        return self.statement.lineno, end


def find(
    readings: Iterable[Reading], breaks: Iterable[GraphBreak], file: str
) -> list[Alternatives]:
    """The ways to take away each break; like ones of a function together, all of them at last."""
    broken: dict[ast.stmt, _Broken] = {}
    known = list(readings)
    for b in breaks:
        if b.line is not None and b.line.file == file:
            found = _statement(known, b.line.line, b.reason)
            if found is not None:
                broken.setdefault(found.statement, found)
    spoken = [b for b in broken.values() if _is_spoken(b.statement)]
    groups: list[Alternatives] = []
    for reading in dict.fromkeys(b.reading for b in spoken):
        groups.append(tuple(_unspoken([b for b in spoken if b.reading is reading])))
    groups += [tuple(_ways(found)) for found in broken.values() if found not in spoken]
    groups = [g for g in groups if g]
    return [*groups, *_together(groups)]


def _statement(readings: list[Reading], line: int, reason: str) -> _Broken | None:
    """The innermost simple statement, or head of an `if`, on a line."""
    best: _Broken | None = None
    for r in readings:
        for s in r.blocks:
            end = s.test.end_lineno if isinstance(s, ast.If | ast.While) else s.end_lineno
            if isinstance(s, ast.For | ast.With | ast.Try | ast.FunctionDef | ast.ClassDef):
                end = s.lineno
            if s.lineno <= line <= (end or s.lineno):
                best = _Broken(s, r, reason)
    return best


def _ways(b: _Broken) -> Iterator[Change]:
    if _is_explicit(b.statement):
        yield from _removed(b)
    if isinstance(b.statement, ast.If):
        yield from _chosen(b)
    yield from _without_item(b)
    yield from _settings(b)


def _change(b: _Broken, title: str, edits: Iterable[Edit], note: str = ROUNDING) -> Change:
    first, last = b.lines
    return Change(Kind.GRAPH_BREAK, title, first, last, tuple(edits), note, b.reading.name)


# -- what only speaks ---------------------------------------------------------------------------


def _called(s: ast.stmt) -> ast.Call | None:
    return s.value if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else None


def _is_spoken(s: ast.stmt) -> bool:
    """`print(...)`, `log.info(...)`, `warnings.warn(...)` as a statement."""
    match _called(s):
        case ast.Call(func=ast.Name(id="print")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=name)):
            return name in _SPOKEN
    return False


def _unspoken(broken: list[_Broken]) -> Iterator[Change]:
    reading = broken[0].reading
    torch = reading.names.spell("torch")
    if torch is None:
        return
    calls = [_called(b.statement) for b in broken]
    prints = [c for c in calls if c is not None and isinstance(c.func, ast.Name)]
    what = "print" if len(prints) == len(broken) else "log call" if not prints else "message"
    what = what if len(broken) == 1 else f"{len(broken)} {what}s"
    first, last = broken[0].lines[0], broken[-1].lines[1]
    edits = [
        Edit(start, start, _GUARD.format(torch=torch))
        for start, _ in (reading.span(b.statement) for b in broken)
    ]
    yield Change(
        Kind.GRAPH_BREAK, f"{what} left out when compiled (torch.compiler.is_compiling())",
        first, last, tuple(edits), "compiled, it no longer says anything", reading.name,
    )  # fmt: skip


def _is_explicit(s: ast.stmt) -> bool:
    match _called(s):
        case ast.Call(func=ast.Attribute(attr="graph_break")):
            return True
        case ast.Call(func=ast.Name(id="breakpoint")):
            return True
    return False


def _removed(b: _Broken) -> Iterator[Change]:
    text = b.reading.segment(b.statement)
    if len(b.reading.blocks[b.statement]) > 1 and stands_alone(b.statement, b.reading):
        yield _change(b, f"{text} removed", [removal(b.statement, b.reading)], "same result")


def _chosen(b: _Broken) -> Iterator[Change]:
    found = choice(b.statement, b.reading)
    if found is not None:
        condition, edit = found
        yield _change(
            b, f"the branch by torch.where({condition}, …)", [edit],
            "same result where both sides have one shape and dtype; both are computed",
        )  # fmt: skip


# -- values read on the host --------------------------------------------------------------------


def _without_item(b: _Broken) -> Iterator[Change]:
    node: ast.AST = b.statement.test if isinstance(b.statement, ast.If) else b.statement
    r = b.reading
    edits = [Edit(*item_span(c, r), "") for c in reads_in(node)]
    for n in ast.walk(node):
        match n:
            case ast.Call(func=ast.Name(id="float"), args=[inner], keywords=[]):
                start, end = r.span(n)
                edits += [Edit(start, r.span(inner)[0], "("), Edit(r.span(inner)[1], end, ")")]
    if edits:
        yield _change(b, "the value stays on the GPU (no .item())", edits)


def _settings(b: _Broken) -> Iterator[Change]:
    found = _SETTING.search(b.reason)
    torch = b.reading.names.spell("torch")
    setting = found[1] if found is not None else next(
        (s for said, s in _SETTINGS.items() if said in b.reason), None
    )  # fmt: skip
    if setting is None or torch is None:
        return
    name = f"{torch}._dynamo.config.{setting} = True"
    at = after_imports(b.reading)
    if at is not None:
        yield _change(b, name, [Edit(at, at, f"{name}\n")], "same result; a setting of the process")


def after_imports(r: Reading) -> int | None:
    """The start of the line behind the file's first block of imports."""
    tree = ast.parse(r.text)
    last = 0
    for s in tree.body:
        if isinstance(s, ast.Import | ast.ImportFrom):
            last = s.end_lineno or s.lineno
        elif last:
            break
    return r.offsets[last] if 0 < last < len(r.offsets) else None


def _together(groups: list[Alternatives]) -> Iterator[Alternatives]:
    """The best way of every break at once, since one alone may bring nothing."""
    heads = [g[0] for g in groups]
    kept: list[Change] = []
    for h in heads:
        if not any(h.conflicts(k) for k in kept):
            kept.append(h)
    if len(kept) < 2:
        return
    yield (
        Change(
            Kind.GRAPH_BREAK, f"these {len(kept)} graph breaks at once",
            min(h.first for h in kept), max(h.last for h in kept),
            tuple(sorted({e for h in kept for e in h.edits})),
            "; ".join(dict.fromkeys(h.note for h in kept)), kept[0].function,
        ),
    )  # fmt: skip
