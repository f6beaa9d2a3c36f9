"""The table of launches: the compiled ones that the gutter numbers, every plan's with -v."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kpredict.bounds import launch_bound
from kpredict.model import Count, Entry, Launch, Mode, Phase, Span, Target
from kpredict.report.arrays import array_names
from kpredict.report.lines import fused_mode, numbered
from kpredict.report.quantities import likely, listed, ranges, size, time
from kpredict.report.style import BOLD, DIM, TITLES, Style

_LEGEND_LIMIT = 24


def launch_tables(entry: Entry, target: Target, style: Style) -> Iterator[str]:
    """The compiled launches that the gutter's numbers name; every plan's with -v."""
    for mode in Mode:
        if mode not in entry.plans or not (style.verbose or mode is fused_mode(entry)):
            continue
        launches = numbered(entry, mode)
        if not launches:
            continue
        yield ""
        yield style.paint(f"  {TITLES[mode]} launches", BOLD)
        limit = len(launches) if style.verbose else _LEGEND_LIMIT
        names = {
            phase: array_names(plan, entry.array_names.get(mode, {}))
            for phase, plan in entry.plans[mode]
        }
        table = [
            _launch_cells(i, phase, launch, names[phase], entry.file, target, style)
            for i, (phase, launch) in enumerate(launches[:limit], 1)
        ]
        yield from _table(table, style)
        if len(launches) > limit:
            yield style.paint(
                f"  {style.sign('more')} {len(launches) - limit} more; -v shows all", DIM
            )


def _launch_cells(
    number: int, phase: Phase, launch: Launch, names: Mapping[int, str], file: str,
    target: Target, style: Style,
) -> list[str]:  # fmt: skip
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
        places(launch.lines, file, 0 if style.verbose else 4), arrays,
        size(launch.moved) if launch.moved else "",
        f"in CUDA graph launch {launch.replay}" if launch.replay else "",
    ]  # fmt: skip
    if style.verbose:
        least = max(launch_bound(launch, target))
        cells.append(f">= {time(least)}" if least else "")
        cells.append(f"{launch.threads:,} threads" if launch.threads else "")
        cells.append("" if launch.basis.value == "host-code" else launch.basis.value)
        cells.append(launch.because)
    return cells


def places(spans: Sequence[Span], file: str, limit: int) -> str:
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
