"""The totals of a phase: one row per measure, one column per mode, and what compiling saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kpredict.bounds import Bound, plan_bound, ratio
from kpredict.model import Count, Mode, Phase, Plan, Target
from kpredict.report.quantities import expected, likely, plural, size, time
from kpredict.report.style import TITLES, Style, aligned

BOUND = "bound on time"  # what no GPU of the target can beat; never a measurement


def totals(phase: Phase, plans: Mapping[Mode, Plan], target: Target, style: Style) -> Iterator[str]:
    modes = [m for m in Mode if m in plans]
    compare = Mode.EAGER in plans and Mode.COMPILED in plans
    table: list[list[str]] = [[phase.value, *(TITLES[m] for m in modes)]]
    if compare:
        table[0].append("saved")
    for measure in _MEASURES:
        values = [measure.cell(plans[m]) for m in modes]
        if measure.label in _OPTIONAL and all(v == "0" for v in values):
            continue
        if measure.label == _HOST and not any(plans[m].graph_launches for m in modes):
            continue
        line = [measure.label, *values]
        if compare:
            line.append(measure.saved(plans[Mode.EAGER], plans[Mode.COMPILED]))
        table.append(line)
    bounds = {m: plan_bound(plans[m], target) for m in modes}
    line = [BOUND, *(bound_cell(bounds[m]) for m in modes)]
    if compare:
        line.append(f"{ratio(bounds[Mode.EAGER], bounds[Mode.COMPILED]):.3g}x")
    table.append(line)
    yield from aligned(table, style)


def bound_cell(bound: Bound) -> str:
    """`5 us, launches`: the least time, and what sets it."""
    return f"{time(bound.total)}, {bound.limited_by}" if bound.total else "0"


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


def _host(plan: Plan) -> str:
    graphs = plan.graph_launches
    return f"{plan.host_launches}" + (f" ({plural(graphs, 'CUDA graph')})" if graphs else "")


_HOST = "host launches"


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
    _Measure(_HOST, _host, lambda a, b: _less(a.host_launches, b.host_launches)),
    _Measure("syncs", lambda p: str(p.syncs), lambda a, b: _less(a.syncs, b.syncs)),
    _Measure(
        "transfers", lambda p: _arrays(*p.transfers), lambda a, b: _fewer(a.transfers, b.transfers)
    ),
    _Measure(
        "intermediates", lambda p: _arrays(*_trips(p)), lambda a, b: _fewer(_trips(a), _trips(b))
    ),
)
_OPTIONAL = {"library calls", "memcpy", "memset", "syncs"}
