"""Overview of a trace → text, or a JSON document. Pure; no times of day, no absolute paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from kpredict.verify.chains import Chain
from kpredict.verify.overview import Overview

SCHEMA_VERSION = 1


def document(seen: Overview, file: str, version: str = "") -> dict[str, Any]:
    """`totals` count events of the file; `ops` sum to them. Times in µs, sizes in bytes."""
    idle = seen.idle
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "kpredict", "version": version},
        "trace": {
            "file": file,
            "gpu": seen.device.name,
            "vendor": seen.device.vendor,
            "sm": seen.device.capability[0] * 10 + seen.device.capability[1],
            "sms": seen.device.sms,
            "devices": seen.devices,
            "streams": seen.streams,
        },
        "totals": {
            "kernels": seen.kernels,
            "memcpy": seen.memcpy,
            "memset": seen.memset,
            "syncs": seen.syncs,
            "launches": seen.launches,
        },
        "library_kernels": seen.library_kernels,
        "graph_kernels": seen.graph_kernels,
        "phases": dict(seen.phases),
        "attribution": {
            "share": round(seen.attributed, 6),
            "in_op": seen.in_op,
            "outside": seen.outside,
            "before_recording": seen.before,
        },
        "ops": [
            {
                "name": r.name, "calls": r.calls, "kernels": r.kernels, "memcpy": r.memcpy,
                "memset": r.memset, "syncs": r.syncs, "time_us": round(r.time, 3),
            }
            for r in seen.ops
        ],
        "kernels": [
            {"name": r.name, "count": r.count, "time_us": round(r.time, 3), "library": r.library}
            for r in seen.families
        ],
        "memcpy": [
            {"direction": r.direction, "count": r.count, "bytes": r.bytes,
             "time_us": round(r.time, 3)}
            for r in seen.copies
        ],
        "device_time": {
            "span_us": round(idle.span, 3),
            "busy_us": round(idle.busy, 3),
            "idle_us": round(idle.idle, 3),
            "gaps": idle.gaps,
            "largest_gaps": [
                {"time_us": round(g.time, 3), "after": g.after, "before": g.before}
                for g in idle.largest
            ],
        },
        "launch_bound": {
            "kernels": idle.launch_bound,
            "share": round(seen.launch_bound_share, 6),
            "idle_us": round(idle.launch_idle, 3),
        },
        "host_wait_us": round(seen.sync_time, 3),
        "chains": [
            {"ops": list(c.ops), "times": c.times, "launches_removed": c.removed,
             "shape": None if c.shape is None else list(c.shape), "dtype": c.dtype,
             "bytes": c.bytes}
            for c in seen.chains
        ],
        "errors": [],
    }  # fmt: skip


def text(seen: Overview, file: str, *, rows: int | None = 12) -> str:
    """The report for a terminal; `rows` limits each table, None shows all."""
    idle = seen.idle
    sms = f", {seen.device.sms} SMs" if seen.device.sms else ""
    lines = [
        f"{file}: {seen.device}{sms}, {_n(seen.devices, 'device')}, {_n(seen.streams, 'stream')}",
        "",
        f"  kernels   {seen.kernels:>9,}   {seen.library_kernels:,} of them in closed libraries"
        + (f", {seen.graph_kernels:,} from CUDA graphs" if seen.graph_kernels else ""),
        f"  launches  {seen.launches:>9,}   calls of the host that start kernels",
        f"  memcpy    {seen.memcpy:>9,}   "
        + ", ".join(f"{c.direction} {c.count:,} ({size(c.bytes)})" for c in seen.copies),
        f"  memset    {seen.memset:>9,}",
        f"  syncs     {seen.syncs:>9,}   the host waited {duration(seen.sync_time)}",
    ]
    lines += [f"  {phase:9} {n:>9,}   kernels and copies" for phase, n in _phases(seen)]
    lines += _notes(seen)
    if seen.kernels + seen.memcpy + seen.memset:
        lines += [
            "",
            f"Device busy {duration(idle.busy)} of {duration(idle.span)}: {_n(idle.gaps, 'gap')}, "
            f"{duration(idle.idle)} idle.",
            f"Launch-bound: before {idle.launch_bound:,} kernels ({seen.launch_bound_share:.0%}) "
            f"the device waited for the host, {duration(idle.launch_idle)} in all.",
        ]
    lines += _table(
        "Ops by launches", ("op", "calls", "kernels", "memcpy", "memset", "syncs", "time"),
        [(r.name, r.calls, r.kernels, r.memcpy, r.memset, r.syncs, duration(r.time))
         for r in seen.ops], rows,
    )  # fmt: skip
    lines += _table(
        "Ops by device time", ("op", "kernels", "time"),
        [(r.name, r.kernels, duration(r.time)) for r in sorted(seen.ops, key=lambda r: -r.time)],
        rows,
    )  # fmt: skip
    lines += _table(
        "Kernels by device time", ("kernel", "count", "time"),
        [(r.name[:70], r.count, duration(r.time)) for r in seen.families], rows,
    )  # fmt: skip
    lines += _table(
        "Longest gaps", ("after", "before", "time"),
        [(g.after[:40], g.before[:40], duration(g.time)) for g in idle.largest], rows,
    )  # fmt: skip
    lines += _chain_table(seen.chains, rows)
    return "\n".join(lines) + "\n"


def _phases(seen: Overview) -> Sequence[tuple[str, int]]:
    return seen.phases if len(seen.phases) > 1 else ()


def _notes(seen: Overview) -> list[str]:
    notes = []
    if seen.device.vendor not in ("NVIDIA", ""):
        notes.append(
            f"An {seen.device.vendor} GPU: names and counts are its own; "
            "kpredict predicts NVIDIA GPUs only."
        )
    if not seen.kernels:
        notes.append("No kernel was recorded: was ProfilerActivity.CUDA on?")
    if seen.before:
        notes.append(
            f"{seen.before:,} pieces of device work were launched before the recording began; "
            "no op can be named for them."
        )
    if seen.outside:
        notes.append(
            f"{seen.outside:,} were launched outside any op; {seen.attributed:.1%} have one."
        )
    return ["", *notes] if notes else []


def _chain_table(chains: Sequence[Chain], rows: int | None) -> list[str]:
    if not chains:
        return []
    removed, moved = sum(c.removed for c in chains), sum(c.bytes or 0 for c in chains)
    saved = f" and {size(moved)} of round trips" if moved else ""
    return [
        *_table(
            "Elementwise chains that one kernel could do",
            ("ops", "times", "array", "launches less", "round trips"),
            [
                (_path(c.ops), c.times,
                 "?" if c.shape is None else f"{c.dtype}[{','.join(map(str, c.shape))}]",
                 c.removed, "?" if c.bytes is None else size(c.bytes))
                for c in chains
            ],
            rows,
        ),
        f"Fusion would remove at most {removed:,} launches{saved}.",
    ]  # fmt: skip


def _path(ops: Sequence[str]) -> str:
    """`mul → copy_ x3`."""
    steps = []
    for op, group in groupby(op.removeprefix("aten::") for op in ops):
        n = len(list(group))
        steps.append(op if n == 1 else f"{op} x{n}")
    return " → ".join(steps)


def _table(
    title: str, head: Sequence[str], body: Iterable[Sequence[object]], rows: int | None
) -> list[str]:
    """Left column left, the others right; what `rows` cuts off is counted."""
    full = [tuple(f"{v:,}" if isinstance(v, int) else str(v) for v in row) for row in body]
    if not full:
        return []
    shown = full[:rows]
    widths = [max(len(r[i]) for r in (tuple(head), *shown)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]
        return f"  {'  '.join(cells)}".rstrip()

    rest = len(full) - len(shown)
    more = [f"  … {rest:,} more (-v shows all)"] if rest else []
    return ["", title, line(head), *map(line, shown), *more]


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(us: float) -> str:
    """µs in the unit that reads best: `950 µs`, `12.3 ms`, `4.1 s`."""
    for limit, unit, scale in ((1e3, "µs", 1.0), (1e6, "ms", 1e3), (float("inf"), "s", 1e6)):
        if us < limit:
            return f"{us / scale:.3g} {unit}"
    raise AssertionError("infinity is larger than any time")


def size(count: int) -> str:
    """Bytes in powers of 1000, as memory bandwidth is given."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"
