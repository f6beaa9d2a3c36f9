"""Report → text for people: annotated source, totals, launches, doubts, and the answer last.

Pure: the same report and Style give the same text. Nothing is said by colour alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from kpredict.model import ZERO, Count, Entry, Launch, Mode, Phase, Plan, Report, Span, Target
from kpredict.report.arrays import array_names
from kpredict.report.lines import NOWHERE, Row, elsewhere, fused_mode, numbered, rows, shown_lines
from kpredict.report.quantities import expected, likely, listed, plural, ranges, size
from kpredict.report.why import bounds, why_not_fewer

_LEGEND_LIMIT = 24
_ELSEWHERE_LIMIT = 16
_TITLES = {Mode.EAGER: "eager", Mode.COMPILED: "compiled", Mode.AS_WRITTEN: "as written"}
_UNICODE = {
    "bar": "│", "gap": "⋮", "trip": "↺", "sync": "‼", "break": "✂", "unknown": "?", "more": "…",
}  # fmt: skip
_ASCII = {
    "bar": "|", "gap": ":", "trip": "@", "sync": "!", "break": "/", "unknown": "?", "more": "...",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How to render: `width` None never cuts a line (pipes, files)."""

    color: bool = False
    verbose: int = 0
    quiet: bool = False
    width: int | None = None
    unicode: bool = True

    def sign(self, name: str) -> str:
        return (_UNICODE if self.unicode else _ASCII)[name]

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text.strip() else text

    def cut(self, text: str, width: int | None = None) -> str:
        width = self.width if width is None else width
        if width is None or self.width is None or len(text) <= width:
            return text
        return text[: max(width - 1, 1)] + self.sign("more")[0]


BOLD, DIM, YELLOW, CYAN = "1", "2", "33", "36"


def style_for(
    stream: TextIO, *, color: bool, verbose: int = 0, quiet: bool = False, to_file: bool = False
) -> Style:
    """The Style for a stream: cut to a terminal's width, ASCII where UTF-8 cannot be written."""
    encoding = "utf-8" if to_file else (stream.encoding or "ascii")
    width = None if to_file or not stream.isatty() else shutil.get_terminal_size().columns
    return Style(color, verbose, quiet, width, "utf" in encoding.lower())


def render(report: Report, style: Style | None = None) -> str:
    style = style or Style()
    parts: list[str] = []
    if not style.quiet:
        for entry in report.entries:
            parts += [*_entry(entry, report.target, style), ""]
        for skipped in report.skipped:
            where = f"{skipped.file}:{skipped.line}"
            parts.append(style.paint(f"not analysed: {where} {skipped.message}", YELLOW))
            parts.append(f"  hint: {skipped.hint}")
        if report.skipped:
            parts.append("")
    scripts = [e for e in report.entries if e.name.startswith("<")]
    callables = [e for e in report.entries if not e.name.startswith("<")]
    parts += [answer(entry, report.target) for entry in (*scripts, *callables)]
    if len(callables) > 1:
        parts.append(_answer_of_all(callables, report.target))
    return "\n".join(parts) + "\n" if parts else ""


def _entry(entry: Entry, target: Target, style: Style) -> Iterator[str]:
    title = (
        f"{entry.file}:{entry.line} {entry.name}" if entry.line else f"{entry.file} {entry.name}"
    )
    yield style.paint(title, BOLD)
    if entry.inputs:
        yield style.cut(f"  inputs: {listed(entry.inputs)}")
    yield ""
    yield from _annotated(entry, style)
    for phase in Phase:
        plans = {m: getattr(ps, phase.value) for m, ps in entry.plans.items()}
        present = {m: p for m, p in plans.items() if p is not None}
        if present:
            yield ""
            yield from _totals(phase, present, style)
    yield from _launches(entry, style)
    if style.verbose:
        yield from _listed("why not fewer", why_not_fewer(entry), style)
        yield from _listed("time that cannot be beaten", bounds(entry, target), style)
    yield from _doubts(entry, style)


# the annotated source


def _annotated(entry: Entry, style: Style) -> Iterator[str]:
    found = rows(entry)
    lines = shown_lines(entry, found, whole=style.verbose > 0)
    source = entry.source.splitlines()
    fused = fused_mode(entry)
    cells = {n: _cells(found.get(n, Row()), entry.calls.get(n, 1), style) for n in lines}
    if NOWHERE in found:
        cells[NOWHERE] = _cells(found[NOWHERE], 1, style)
    columns = ["calls", "eager", "backward", "copies", "moved", "compiled", "marks"]
    optional = {"calls", "backward", "copies", "marks"} | ({"compiled"} if fused is None else set())
    columns = [c for c in columns if c not in optional or any(x[c] for x in cells.values())]
    titles = {"marks": "", "compiled": _TITLES[fused] if fused is not None else ""}
    widths = {
        c: max(len(titles.get(c, c)), *(len(x[c]) for x in cells.values()), 0) if cells else 0
        for c in columns
    }
    bar = style.sign("bar")

    def gutter(number: str, row: Mapping[str, str]) -> str:
        parts = [f"{number:>5}"]
        for c in columns:
            left = c in ("compiled", "marks")
            parts.append(f"{row[c]:{'<' if left else '>'}{widths[c]}}")
        return "  ".join(parts)

    yield style.paint(gutter("line", {c: titles.get(c, c) for c in columns}) + f" {bar}", DIM)
    before = None
    for n in lines:
        if before is not None and n > before + 1:
            yield style.paint(f"{style.sign('gap'):>5}", DIM)
        before = n
        head = gutter(str(n), cells[n])
        busy = any(cells[n][c] for c in columns)
        text = source[n - 1] if n <= len(source) else ""
        room = None if style.width is None else style.width - len(head) - 3
        yield (
            style.paint(head, CYAN if busy else DIM) + f" {bar} " + style.cut(text, room)
        ).rstrip()
    if NOWHERE in found:
        yield style.paint(gutter("", cells[NOWHERE]) + f" {bar} ", CYAN) + "(not from a line here)"
    yield from _key(found, style)
    if NOWHERE in found:
        yield from _elsewhere(entry, style)


def _elsewhere(entry: Entry, style: Style) -> Iterator[str]:
    """What came from no line of the file, by module or by the place in other files."""
    groups = elsewhere(entry)
    if len(groups) < 2:
        return
    yield ""
    shown = groups if style.verbose else groups[:_ELSEWHERE_LIMIT]
    table = [["from elsewhere", "kernels", "moved"]]
    table += [[g.where, str(g.kernels), size(g.bytes)] for g in shown]
    yield from _aligned(table, style)
    if len(shown) < len(groups):
        more = f"{style.sign('more')} {len(groups) - len(shown)} more; -v shows all"
        yield style.paint(f"  {more}", DIM)


def _cells(row: Row, calls: int, style: Style) -> dict[str, str]:
    forward = sum((c for p, c in row.eager.items() if p is not Phase.BACKWARD), ZERO)
    backward = row.eager.get(Phase.BACKWARD, ZERO)
    marks = [
        style.sign(name)
        for name, on in (
            ("trip", row.round_trip), ("sync", row.sync), ("break", row.graph_break),
            ("unknown", row.unknown),
        )
        if on
    ]  # fmt: skip
    return {
        "calls": f"{calls}x" if calls > 1 and (row.eager or row.bytes) else "",
        "eager": "" if forward == ZERO else str(forward),
        "backward": "" if backward == ZERO else str(backward),
        "copies": str(row.copies or ""),
        "moved": size(row.bytes) if row.bytes else "",
        "compiled": ranges(row.compiled, "#"),
        "marks": "".join(marks),
    }  # fmt: skip


def _key(found: Mapping[int, Row], style: Style) -> Iterator[str]:
    """What the marks mean, those that appear."""
    values = found.values()
    meanings = {
        style.sign("trip"): (any(r.round_trip for r in values), "writes an array read back later"),
        style.sign("sync"): (any(r.sync for r in values), "the host waits for the GPU"),
        style.sign("break"): (any(r.graph_break for r in values), "torch.compile breaks the graph"),
        style.sign("unknown"): (any(r.unknown for r in values), "an op whose launches are unknown"),
        "copies:": (any(r.copies for r in values), "memcpy and memset"),
    }
    said = [f"{sign} {meaning}" for sign, (on, meaning) in meanings.items() if on]
    if said and (style.width is None or len("   ".join(said)) + 7 <= style.width):
        said = ["   ".join(said)]
    yield from (style.paint(f"{'':5}  {line}", DIM) for line in said)


# totals


def _totals(phase: Phase, plans: Mapping[Mode, Plan], style: Style) -> Iterator[str]:
    modes = [m for m in Mode if m in plans]
    compare = Mode.EAGER in plans and Mode.COMPILED in plans
    table: list[list[str]] = [[phase.value, *(_TITLES[m] for m in modes)]]
    if compare:
        table[0].append("saved")
    for measure in _MEASURES:
        values = [measure.cell(plans[m]) for m in modes]
        if measure.label in _OPTIONAL and all(v == "0" for v in values):
            continue
        line = [measure.label, *values]
        if compare:
            line.append(measure.saved(plans[Mode.EAGER], plans[Mode.COMPILED]))
        table.append(line)
    yield from _aligned(table, style)


def _aligned(table: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for at, row in enumerate(table):
        cells = [f"{c:<{w}}" for c, w in zip(row, widths, strict=True)]
        line = ("  " + "  ".join(cells)).rstrip()
        yield style.paint(line, BOLD) if at == 0 else line


def _less(before: Count, after: Count) -> str:
    return _signed(before.lo - after.lo)


def _fewer_kernels(before: Plan, after: Plan) -> str:
    """The difference; of the most likely counts where a library's are intervals, since both plans
    mostly make the same calls."""
    exact = before.kernels.exact and after.kernels.exact
    return ("" if exact else "~") + _signed(expected(before) - expected(after))


def _signed(n: int) -> str:
    return str(n) if n >= 0 else f"{n} (more)"


def _arrays(n: int, total: int) -> str:
    return f"{n} ({size(total)})" if n else "0"


def _fewer(before: tuple[int, int], after: tuple[int, int]) -> str:
    arrays, total = before[0] - after[0], before[1] - after[1]
    if not arrays and not total:
        return "0"
    sign = "-" if total < 0 else ""
    return f"{arrays} ({sign}{size(abs(total))})"


def _trips(plan: Plan) -> tuple[int, int]:
    return len(plan.round_trips), plan.round_trip_bytes


@dataclass(frozen=True, slots=True)
class _Measure:
    """One row of the totals: its label, a plan's cell, and what the second plan saves."""

    label: str
    cell: Callable[[Plan], str]
    saved: Callable[[Plan, Plan], str]


_MEASURES = (
    _Measure("kernels", lambda p: likely(p.kernels, expected(p)), _fewer_kernels),
    _Measure(
        "library calls",
        lambda p: str(p.library_calls),
        lambda a, b: _signed(a.library_calls - b.library_calls),
    ),
    _Measure("memcpy", lambda p: str(p.memcpy), lambda a, b: _less(a.memcpy, b.memcpy)),
    _Measure("memset", lambda p: str(p.memset), lambda a, b: _less(a.memset, b.memset)),
    _Measure("syncs", lambda p: str(p.syncs), lambda a, b: _less(a.syncs, b.syncs)),
    _Measure(
        "transfers", lambda p: _arrays(*p.transfers), lambda a, b: _fewer(a.transfers, b.transfers)
    ),
    _Measure(
        "intermediates", lambda p: _arrays(*_trips(p)), lambda a, b: _fewer(_trips(a), _trips(b))
    ),
)
_OPTIONAL = {"library calls", "memcpy", "memset", "syncs"}


# launches


def _launches(entry: Entry, style: Style) -> Iterator[str]:
    """The compiled launches that the gutter's numbers name; every plan's with -v."""
    for mode in Mode:
        if mode not in entry.plans or not (style.verbose or mode is fused_mode(entry)):
            continue
        launches = numbered(entry, mode)
        if not launches:
            continue
        yield ""
        yield style.paint(f"  {_TITLES[mode]} launches", BOLD)
        limit = len(launches) if style.verbose else _LEGEND_LIMIT
        names = {
            phase: array_names(plan, entry.array_names.get(mode, {}))
            for phase, plan in entry.plans[mode]
        }
        table = [
            _launch_cells(i, phase, launch, names[phase], entry.file, style)
            for i, (phase, launch) in enumerate(launches[:limit], 1)
        ]
        yield from _table(table, style)
        if len(launches) > limit:
            yield style.paint(
                f"  {style.sign('more')} {len(launches) - limit} more; -v shows all", DIM
            )


def _listed(title: str, lines: Iterator[str], style: Style) -> Iterator[str]:
    found = list(lines)
    if found:
        yield ""
        yield style.paint(f"  {title}", BOLD)
        yield from (style.cut(f"    {line}") for line in found)


def _launch_cells(
    number: int, phase: Phase, launch: Launch, names: Mapping[int, str], file: str, style: Style
) -> list[str]:
    count = (
        ""
        if launch.count == Count(1, 1)
        else likely(launch.count, launch.expected or launch.count.lo)
    )
    reads = listed([names[a.tensor.storage] for a in launch.reads], 0 if style.verbose else 4)
    writes = listed([names[a.tensor.storage] for a in launch.writes], 0 if style.verbose else 4)
    ops = listed([short_op(o) for o in launch.ops], 0 if style.verbose else 4)
    arrays = f"{reads} -> {writes}" if reads or writes else ""
    cells = [
        f"#{number}", "" if phase is Phase.FORWARD else phase.value, launch.name, count, ops,
        _places(launch.lines, file, 0 if style.verbose else 4), arrays,
        size(launch.moved) if launch.moved else "",
    ]  # fmt: skip
    if style.verbose:
        cells.append(f"{launch.threads:,} threads" if launch.threads else "")
        cells.append("" if launch.basis.value == "host-code" else launch.basis.value)
        cells.append(launch.because)
    return cells


def _places(spans: Sequence[Span], file: str, limit: int) -> str:
    """`lines 3,7-9` of the entry's file; `other.py:12` when it is not from there."""
    here = ranges((s.line for s in spans if s.file == file), limit=limit)
    if here:
        return f"lines {here}" if "-" in here or "," in here or ".." in here else f"line {here}"
    files = list(dict.fromkeys(s.file for s in spans))
    told = [
        f"{f.rpartition('/')[2]}:{ranges((s.line for s in spans if s.file == f), limit=limit)}"
        for f in files
    ]
    return listed(told, limit and 2)


def short_op(op: str) -> str:
    """`aten.add.Tensor` → `add`; other namespaces keep theirs."""
    parts = op.split(".")
    if parts[0] == "aten" and len(parts) >= 2:
        return parts[1]
    return ".".join(parts[:2])


def _table(table: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    """Rows in columns; empty ones vanish; kernel names are cut where a terminal is narrow."""
    columns = [i for i in range(len(table[0])) if any(row[i] for row in table)]
    name_width = max(len(row[2]) for row in table)
    if style.width is not None:
        name_width = min(name_width, max(24, style.width // 3))
    widths = {i: max(len(row[i]) for row in table) for i in columns} | {2: name_width}
    for row in table:
        cells = []
        for i in columns:
            text = style.cut(row[i], name_width) if i == 2 else row[i]
            cells.append(f"{text:<{widths[i]}}")
        yield style.cut("  " + "  ".join(cells).rstrip())


# doubts


def _doubts(entry: Entry, style: Style) -> Iterator[str]:
    said: list[str] = []
    for u in entry.unknowns:
        where = f" (line {ranges(s.line for s in u.lines)})" if u.lines else ""
        said.append(f"unknown: {u.op}{where}: {u.reason}; its launches are not counted")
    for a in entry.assumptions:
        where = f" on line {a.line.line}" if a.line else ""
        flag = f"--assume {a.line.line}=VALUE" if a.line else "--assume '*=VALUE'"
        said.append(f"assumed: {a.what}{where} is {a.value} ({flag} changes it)")
    for b in entry.graph_breaks:
        where = f" on line {b.line.line}" if b.line else ""
        reason = b.reason if style.verbose else b.reason.partition(": ")[0]
        said.append(f"graph break{where}: {reason}")
    for ps in entry.plans.values():
        said += [f"note: {note}" for _, plan in ps for note in plan.notes]
    if said:
        yield ""
        yield from (style.paint(f"  {s}", YELLOW) for s in dict.fromkeys(said))


# the answer


def answer(entry: Entry, target: Target) -> str:
    """The entry in one sentence, with the target."""
    sentence = _comparison(entry)
    unknown = len({u.op for u in entry.unknowns})
    doubt = f"; {plural(unknown, 'op')} unknown and not counted" if unknown else ""
    return f"{entry.name}: {sentence}{doubt} [{_target(target)}]"


def _comparison(entry: Entry) -> str:
    totals = {m: _total(list(ps)) for m, ps in entry.plans.items()}
    told = [f"{_TITLES[m]} {plural(totals[m].kernels, 'kernel')}" for m in Mode if m in totals]
    text = ", ".join(told)
    if Mode.EAGER in totals and Mode.COMPILED in totals:
        before, after = totals[Mode.EAGER], totals[Mode.COMPILED]
        text += f"; {_saved(before, after)}"
    return text


def _saved(before: Plan, after: Plan) -> str:
    """`saved: 1 launch, 8 MB; added: 1 round trip`: what compiling takes away and what it adds."""
    exact = before.kernels.exact and after.kernels.exact
    launches = expected(before) - expected(after)
    trips = len(before.round_trips) - len(after.round_trips)
    moved = before.transfers[1] - after.transfers[1]
    about = "" if exact else "~"
    amounts = (
        (launches, f"{about}{plural(abs(launches), 'launch', 'launches')}"),
        (trips, plural(abs(trips), "round trip")),
        (moved, size(abs(moved))),
    )
    saved = [text for n, text in amounts if n > 0]
    added = [text for n, text in amounts if n < 0]
    parts = [f"saved: {listed(saved)}" if saved else "nothing saved"]
    return "; ".join([*parts, *([f"added: {listed(added)}"] if added else [])])


def _total(phases: Sequence[tuple[Phase, Plan]]) -> Plan:
    """All phases as one plan, for its totals only: the indexes in it mean nothing."""
    return Plan(
        tuple(x for _, p in phases for x in p.launches),
        tuple(t for _, p in phases for t in p.round_trips),
    )


def _answer_of_all(entries: Sequence[Entry], target: Target) -> str:
    told = []
    for mode in Mode:
        plans = [e.plans[mode] for e in entries if mode in e.plans]
        if plans:
            total = sum((ps.kernels for ps in plans), ZERO)
            told.append(f"{_TITLES[mode]} {plural(total, 'kernel')}")
    return f"{len(entries)} entry points: {', '.join(told)} [{_target(target)}]"


def _target(target: Target) -> str:
    return f"{target.gpu}, sm_{target.sm}, torch {target.torch}"
