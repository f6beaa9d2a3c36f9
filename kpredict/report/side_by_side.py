"""Comparison → text: a table for each entry, with a row for each target or size; sentences last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpredict.bounds import phases_bound, ratio
from kpredict.model import Comparison, Entry, Mode, Phases, Report, Target, Turn
from kpredict.report.quantities import listed, plural, size
from kpredict.report.style import BOLD, TITLES, YELLOW, Style, aligned
from kpredict.report.totals import bound_cell

_NOTHING = "-"  # not analysed there


def render(found: Comparison, style: Style | None = None) -> str:
    style = style or Style()
    parts: list[str] = []
    for file, name in found.entries:
        if not style.quiet:
            parts += [*_table(found, file, name, style), ""]
    if found.points and not style.quiet:
        for skipped in found.points[0][1].skipped:
            where = f"{skipped.file}:{skipped.line}"
            parts.append(style.paint(f"not analysed: {where} {skipped.message}", YELLOW))
            parts.append(f"  hint: {skipped.hint}")
    parts += [_sentence(found, file, name) for file, name in found.entries]
    return "\n".join(parts) + "\n" if parts else ""


def _table(found: Comparison, file: str, name: str, style: Style) -> Iterator[str]:
    entries = [found.entry(label, file, name) for label, _ in found.points]
    line = next(e.line for e in entries if e is not None)
    yield style.paint(f"{file}:{line} {name}" if line else f"{file} {name}", BOLD)
    modes = [m for m in Mode if any(e is not None and m in e.plans for e in entries)]
    titles = [TITLES[m] for m in modes]
    one = len(modes) == 1
    table = [
        [
            found.varied,
            *([f"{t} kernels" for t in titles] if one else titles),
            "round trips",
            "moved",
            *(f"bound {t}" for t in titles),
            *(["ratio"] if {Mode.EAGER, Mode.COMPILED} <= set(modes) else []),
        ]
    ]
    for (label, report), entry in zip(found.points, entries, strict=True):
        cells = _cells(entry, modes, report.target, len(table[0]) - 1)
        table.append([_label(found, label), *cells])
    yield from aligned(table, style)
    yield from _doubts(entries, style)
    too_big = [
        _label(found, label)
        for (label, report), entry in zip(found.points, entries, strict=True)
        if entry is not None and _largest(entry) > report.target.memory << 20
    ]
    if too_big:
        told = f"  one launch alone touches more than the GPU's memory: {listed(too_big)}"
        yield style.paint(told, YELLOW)


def _largest(entry: Entry) -> int:
    """Bytes of the arrays of the launch that has most of them at a time."""
    sizes = (
        sum({a.tensor.storage: a.tensor.nbytes for a in (*x.reads, *x.writes)}.values())
        for phases in entry.plans.values()
        for _, plan in phases
        for x in plan.launches
    )
    return max(sizes, default=0)


def _cells(entry: Entry | None, modes: Sequence[Mode], target: Target, columns: int) -> list[str]:
    if entry is None:
        return [_NOTHING] * columns
    plans = {m: entry.plans.get(m) for m in modes}
    kernels = [_NOTHING if ps is None else str(ps.kernels) for ps in plans.values()]
    trips = [_NOTHING if ps is None else str(_trips(ps)) for ps in plans.values()]
    moved = [_NOTHING if ps is None else size(_moved(ps)) for ps in plans.values()]
    bounds = {m: None if ps is None else phases_bound(ps, target) for m, ps in plans.items()}
    cells = [*kernels, " -> ".join(trips), " -> ".join(moved)]
    cells += [_NOTHING if b is None else bound_cell(b) for b in bounds.values()]
    if {Mode.EAGER, Mode.COMPILED} <= set(modes):
        before, after = bounds[Mode.EAGER], bounds[Mode.COMPILED]
        if before is None or after is None:
            cells.append(_NOTHING)
        else:
            cells.append(f"{ratio(before, after):.3g}x")
    return cells


def _trips(phases: Phases) -> int:
    return sum(len(plan.round_trips) for _, plan in phases)


def _moved(phases: Phases) -> int:
    return sum(plan.transfers[1] for _, plan in phases)


def _label(found: Comparison, label: str) -> str:
    return label if found.varied == "target" else f"{int(label):,}"


def _doubts(entries: Sequence[Entry | None], style: Style) -> Iterator[str]:
    ops = {u.op for e in entries if e is not None for u in e.unknowns}
    if ops:
        yield style.paint(f"  unknown and not counted: {listed(sorted(ops))}", YELLOW)


def _sentence(found: Comparison, file: str, name: str) -> str:
    """What varies: kernels by target, or the size where launches cease to set the time."""
    target = found.points[0][1].target
    if found.varied == "target":
        return f"{name}: {'; '.join(_by_target(found, file, name))} [torch {target.torch}]"
    told = [_by_size(found, file, name, mode) for mode in Mode]
    turned = any((t.file, t.name) == (file, name) for t in found.turns)
    sure = " (sizes that were predicted)" if turned else ""
    where = f"{target.gpu}, sm_{target.sm}, torch {target.torch}"
    return f"{name}: {'; '.join(t for t in told if t)}{sure} [{where}]"


def _by_target(found: Comparison, file: str, name: str) -> Iterator[str]:
    for mode in Mode:
        labels: dict[str, list[str]] = {}
        for label, _ in found.points:
            entry = found.entry(label, file, name)
            if entry is not None and mode in entry.plans:
                count = plural(entry.plans[mode].kernels, "kernel")
                labels.setdefault(count, []).append(label)
        if len(labels) == 1:
            yield f"{TITLES[mode]} {next(iter(labels))} on each"
        elif labels:
            told = (f"{count} on {listed(where)}" for count, where in labels.items())
            yield f"{TITLES[mode]} {', '.join(told)}"


def _by_size(found: Comparison, file: str, name: str, mode: Mode) -> str:
    turn = next((t for t in found.turns if (t.file, t.name, t.mode) == (file, name, mode)), None)
    if turn is not None:
        return f"{TITLES[mode]} {_turning(turn, found.varied)}"
    limits = [
        phases_bound(entry.plans[mode], report.target).limited_by
        for report, entry in _analysed(found, file, name)
        if mode in entry.plans
    ]
    if not limits:
        return ""
    if len(set(limits)) == 1:
        return f"{TITLES[mode]} is {_bound_by(limits[0])} at every size"
    return f"{TITLES[mode]} is {_bound_by(limits[0])} at first, {_bound_by(limits[-1])} at last"


def _turning(turn: Turn, varied: str) -> str:
    return (
        f"turns from launch-bound to {_bound_by(turn.by)} between {varied} = {turn.below:,} and "
        f"{turn.above:,}"
    )


def _bound_by(limit: str) -> str:
    return "launch-bound" if limit == "launches" else f"{limit}-bound"


def _analysed(found: Comparison, file: str, name: str) -> Iterator[tuple[Report, Entry]]:
    for label, report in found.points:
        entry = found.entry(label, file, name)
        if entry is not None:
            yield report, entry
