"""Phases → Totals, and what a change is worth: the time that its launches and bytes take."""

from __future__ import annotations

from kpredict.model import Kind, Mode, Outcome, Phases, Target, Totals

_LITTLE = 0.01


def totals(phases: Phases) -> Totals:
    """One mode, all its phases."""
    plans = [plan for _, plan in phases]
    expected = sum(
        x.count.lo if x.expected is None else x.expected
        for plan in plans
        for x in plan.launches
        if x.kind in (Kind.KERNEL, Kind.LIBRARY)
    )
    return Totals(
        phases.kernels, expected, sum(len(p.round_trips) for p in plans),
        sum(p.transfers[1] for p in plans), sum(p.syncs.hi for p in plans),
        sum(len(p.graph_breaks) + len(p.skipped) for p in plans),
    )  # fmt: skip


def value(outcome: Outcome, target: Target) -> float:
    """Microseconds saved, over all modes: launches and waits at their cost on the host, bytes at
    the target's bandwidth. A graph break costs where something is compiled only."""
    total = 0.0
    for mode, after in outcome.after.items():
        if outcome.kind == "graph-break" and mode is Mode.EAGER:
            continue
        before = outcome.before[mode]
        fewer = before.expected - after.expected + before.syncs - after.syncs
        total += fewer * target.launch_us
        total += (before.bytes - after.bytes) / (target.bandwidth * 1e3)
    return total


def helps(outcome: Outcome, target: Target) -> bool:
    """Whether a change is worth speaking of: something launches less, or clearly fewer bytes."""
    pairs = [(outcome.before[m], after) for m, after in outcome.after.items()]
    return value(outcome, target) > 0 and any(
        a.expected < b.expected
        or a.syncs < b.syncs
        or a.graph_breaks < b.graph_breaks
        or b.bytes - a.bytes > _LITTLE * b.bytes
        for b, a in pairs
    )
