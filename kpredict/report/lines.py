"""What each source line of an entry does: launches, bytes, compiled kernels, marks.

In: an Entry. Out: a Row per line of its file, and which lines are worth showing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kpredict.model import ZERO, Count, Entry, Kind, Launch, Mode, Phase, Plan, Span

_SHORT = 40  # functions up to this many lines are shown whole


@dataclass(slots=True)
class Row:
    """One line's totals. `eager` counts kernels by phase; `compiled` are numbers into the list of
    compiled launches; the marks say that a round trip starts, the host waits, the graph breaks;
    `more` is how many launches compiling adds."""

    eager: dict[Phase, Count] = field(default_factory=dict)
    copies: int = 0
    bytes: int = 0
    compiled: set[int] = field(default_factory=set)
    round_trip: bool = False
    sync: bool = False
    graph_break: bool = False
    unknown: bool = False
    more: int = 0


NOWHERE = 0  # the row of launches that no line of the file led to


def fused_mode(entry: Entry) -> Mode | None:
    """The plan whose launches the gutter names: the compiled one, else the one as written."""
    return next((m for m in (Mode.COMPILED, Mode.AS_WRITTEN) if m in entry.plans), None)


def numbered(entry: Entry, mode: Mode | None) -> list[tuple[Phase, Launch]]:
    """A mode's launches over all phases in order; number 1 is the first."""
    phases = entry.plans.get(mode) if mode is not None else None
    return [] if phases is None else [(p, x) for p, plan in phases for x in plan.launches]


def rows(entry: Entry) -> dict[int, Row]:
    """Totals by line; line NOWHERE for launches that came from no line of the entry's file."""
    found: dict[int, Row] = {}
    reference = Mode.EAGER if Mode.EAGER in entry.plans else next(iter(entry.plans), None)
    if reference is not None:
        for phase, plan in entry.plans[reference]:
            _add_eager(entry, phase, plan, found)
    for number, (_, launch) in enumerate(numbered(entry, fused_mode(entry)), 1):
        if launch.kind is Kind.SYNC:
            continue
        for line in _lines_of(entry, launch.lines):
            found.setdefault(line, Row()).compiled.add(number)
    for graph_break in entry.graph_breaks:
        if graph_break.line is not None and graph_break.line.file == entry.file:
            found.setdefault(graph_break.line.line, Row()).graph_break = True
    for unknown in entry.unknowns:
        for line in _lines_of(entry, unknown.lines):
            found.setdefault(line, Row()).unknown = True
    return found


def _add_eager(entry: Entry, phase: Phase, plan: Plan, found: dict[int, Row]) -> None:
    for launch in plan.launches:
        row = found.setdefault(_lines_of(entry, launch.lines)[0], Row())
        if launch.kind in (Kind.KERNEL, Kind.LIBRARY):
            inner = launch.phase if phase is Phase.FORWARD else phase  # it may call autograd itself
            row.eager[inner] = row.eager.get(inner, ZERO) + launch.count
        elif launch.kind is Kind.SYNC:
            row.sync = True
        else:
            row.copies += launch.count.hi
        row.bytes += launch.moved
    for trip in plan.round_trips:
        writer = plan.launches[trip.writer]
        found[_lines_of(entry, writer.lines)[0]].round_trip = True


def _lines_of(entry: Entry, spans: tuple[Span, ...]) -> list[int]:
    return [s.line for s in spans if s.file == entry.file] or [NOWHERE]


@dataclass(frozen=True, slots=True)
class Group:
    """Launches that share a place outside the entry's file."""

    where: str
    kernels: Count
    bytes: int


def elsewhere(entry: Entry) -> list[Group]:
    """What no line of the entry's file led to: by module path with its numbers as `*`, else by
    file and line; most kernels first."""
    reference = Mode.EAGER if Mode.EAGER in entry.plans else next(iter(entry.plans), None)
    kernels: dict[str, Count] = {}
    moved: dict[str, int] = {}
    for phase, plan in entry.plans[reference] if reference is not None else ():
        for launch in plan.launches:
            if _lines_of(entry, launch.lines) != [NOWHERE]:
                continue
            where = re.sub(r"(?<=\.)\d+(?=\.|$)", "*", launch.module)
            if not where:
                span = next(iter(launch.lines), None)
                where = f"{span.file}:{span.line}" if span else f"({phase.value})"
            counted = launch.kind in (Kind.KERNEL, Kind.LIBRARY)
            kernels[where] = kernels.get(where, ZERO) + (launch.count if counted else ZERO)
            moved[where] = moved.get(where, 0) + launch.moved
    groups = [Group(where, kernels[where], moved[where]) for where in kernels]
    return sorted(groups, key=lambda g: (-g.kernels.hi, -g.bytes, g.where))


def shown_lines(entry: Entry, found: Mapping[int, Row], whole: bool = False) -> list[int]:
    """The lines to print: the functions that do something, long ones around what they do."""
    total = len(entry.source.splitlines())
    around = _innermost(_blocks(entry.source))
    wanted: set[int] = set()
    if entry.line and not entry.name.startswith("<"):
        wanted.add(entry.line)
    for line in (n for n in found if n != NOWHERE):
        outside = (1, total) if total < _SHORT else (max(1, line - 1), min(total, line + 1))
        first, last = around.get(line, outside)
        if whole or last - first < _SHORT:
            wanted.update(range(first, last + 1))
        else:
            wanted.add(first)
            wanted.update(range(max(first, line - 1), min(last, line + 1) + 1))
    return sorted(n for n in wanted if 1 <= n <= total)


def _blocks(source: str) -> list[tuple[int, int]]:
    """First and last line of every function, decorators left out."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _innermost(blocks: list[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """The shortest block around each line that is in one."""
    found: dict[int, tuple[int, int]] = {}
    for first, last in sorted(blocks, key=lambda b: b[0] - b[1]):
        found |= dict.fromkeys(range(first, last + 1), (first, last))
    return found
