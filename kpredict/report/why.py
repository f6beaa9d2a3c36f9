"""Why the compiled plan has no fewer launches, and the time that no plan can beat: lines for -v.

Pure functions from an Entry; `text` puts them under the launches.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.bounds import Bound, phases_bound, plan_bound, ratio
from kpredict.model import Entry, Mode, RoundTrip, Target
from kpredict.report.lines import fused_mode, numbered
from kpredict.report.quantities import time


def why_not_fewer(entry: Entry) -> Iterator[str]:
    """One line for each pair of launches of which one reads what the other wrote."""
    mode = fused_mode(entry)
    if mode is None:
        return
    numbers = {id(launch): i for i, (_, launch) in enumerate(numbered(entry, mode), 1)}
    for _, plan in entry.plans[mode]:
        for barrier in plan.barriers:
            pair = (plan.launches[barrier.producer], plan.launches[barrier.consumer])
            writer, reader = (numbers.get(id(launch)) for launch in pair)
            if writer is None or reader is None:
                continue
            detail = f": {barrier.detail}" if barrier.detail else ""
            yield f"#{writer} -> #{reader}  fusion/{barrier.reason}{detail}"


def bounds(entry: Entry, target: Target) -> Iterator[str]:
    """Per mode and phase the least time it can take and what sets it; eager's over compiled's."""
    for mode, phases in entry.plans.items():
        for phase, plan in phases:
            bound = plan_bound(plan, target)
            yield f"{mode.value} {phase.value}: at least {time(bound.total)} ({_parts(bound)})"
    if Mode.EAGER in entry.plans and Mode.COMPILED in entry.plans:
        before, after = (phases_bound(entry.plans[m], target) for m in (Mode.EAGER, Mode.COMPILED))
        yield f"eager's bound is {ratio(before, after):.2f} times the compiled one's"
    if any(
        _fits(trip, target) for ps in entry.plans.values() for _, p in ps for trip in p.round_trips
    ):
        yield (
            f"arrays read back soon may come from the {target.l2} MiB L2 cache: "
            "the part of memory can be less"
        )


def _fits(trip: RoundTrip, target: Target) -> bool:
    """Whether the array can stay in the cache between its writer and a reader."""
    return trip.tensor.nbytes < target.l2 << 20


def _parts(bound: Bound) -> str:
    return (
        f"limited by {bound.limited_by}: launches {time(bound.launches)}, "
        f"memory {time(bound.memory)}, compute {time(bound.compute)}"
    )
