"""When the device had nothing to do, and how often because the host had not asked yet.

In: a Trace. Out: an Idle; times in µs. Work on several streams of one device counts as one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from kpredict.model import Kind
from kpredict.verify.names import family
from kpredict.verify.trace import Trace

_SMALLEST = 1.0  # µs: between kernels that were queued in time the device rests about this long


@dataclass(frozen=True, slots=True)
class Gap:
    """The device rested `time` µs between the end of `after` and the start of `before`."""

    time: float
    after: str
    before: str


@dataclass(frozen=True, slots=True)
class Idle:
    """`span` is from the first work to the last; `launch_bound` counts kernels that the host asked
    for only after the device had run out of work, and `launch_idle` the rest before them."""

    span: float = 0.0
    busy: float = 0.0
    gaps: int = 0
    idle: float = 0.0
    launch_bound: int = 0
    launch_idle: float = 0.0
    largest: tuple[Gap, ...] = ()


def idle_time(trace: Trace, largest: int = 5) -> Idle:
    busy_until: dict[int, float] = {}
    last: dict[int, str] = {}
    first: dict[int, float] = {}
    gaps = bound = 0
    idle = bound_idle = 0.0
    top: list[tuple[float, int, Gap]] = []
    for i, work in enumerate(trace.activities()):
        name = family(work.name)
        until = busy_until.get(work.device)
        if until is None:
            first[work.device] = work.start
        elif (rest := work.start - until) > _SMALLEST:
            gaps += 1
            idle += rest
            heapq.heappush(top, (rest, -i, Gap(rest, last[work.device], name)))
            if len(top) > largest:
                heapq.heappop(top)
            asked_late = work.call is not None and work.call.start >= until
            if asked_late and work.kind is Kind.KERNEL:
                bound += 1
                bound_idle += rest
        if until is None or work.end >= until:
            busy_until[work.device], last[work.device] = work.end, name
    span = sum(busy_until[d] - first[d] for d in first)
    ordered = tuple(gap for _, _, gap in sorted(top, reverse=True))
    return Idle(span, span - idle, gaps, idle, bound, bound_idle, ordered)
