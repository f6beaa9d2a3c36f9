"""A recorded stream with regions in it → Plan: generated kernels as told, other ops by their rules.

In: the items of one phase (Ops and marks). Out: a Plan. Linear in the number of items.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.compiled.reasons import Made, find_barriers
from kpredict.compiled.region import Entered, Launched, Left, Node, Reached, Region
from kpredict.eager.predict import launches_of
from kpredict.graph import round_trips
from kpredict.model import (
    Access,
    Basis,
    GraphBreak,
    Kind,
    Launch,
    Op,
    Plan,
    Target,
    Unknown,
)  # fmt: skip


def predict_compiled(
    items: Iterable[object], target: Target, graph_breaks: tuple[GraphBreak, ...] = ()
) -> Plan:
    """The plan of one phase of a compiled run."""
    made: list[Made] = []
    unknowns: list[Unknown] = []
    inside: list[tuple[Region, Node | None]] = []
    for item in items:
        region, node = inside[-1] if inside else (None, None)
        if isinstance(item, Entered):
            inside.append((item.region, None))
        elif isinstance(item, Left):
            inside.pop()
        elif isinstance(item, Reached) and inside:
            inside[-1] = (inside[-1][0], item.node)
        elif isinstance(item, Launched):
            made.append(Made(_generated(item, region, node), region, node))
        elif isinstance(item, Op):
            found, unknown = launches_of(item, target)
            made += [Made(_placed(launch, region, node), region, node) for launch in found]
            if unknown is not None:
                lines = node.lines if node is not None and node.lines else unknown.lines
                unknowns.append(replace(unknown, lines=lines))
    launches = tuple(m.launch for m in made)
    trips = round_trips(launches)
    barriers = find_barriers(made, trips, [b.reason for b in graph_breaks])
    return Plan(launches, trips, barriers, tuple(unknowns), graph_breaks)


def _generated(item: Launched, region: Region | None, node: Node | None) -> Launch:
    return Launch(
        Kind.KERNEL,
        item.kernel,
        reads=tuple(Access(t, read) for t, _, read, _ in item.arrays if read),
        writes=tuple(Access(t, written) for t, _, _, written in item.arrays if written),
        basis=Basis.HOST_CODE,
        ops=node.ops if node is not None else (),
        lines=node.lines if node is not None else (),
        phase=item.phase,
        region=region.name if region is not None else "",
    )


def _placed(launch: Launch, region: Region | None, node: Node | None) -> Launch:
    """A launch by an ATen op inside a region gets the region's name and the lines of its node."""
    if region is None:
        return launch
    lines = node.lines if node is not None and node.lines else launch.lines
    return replace(launch, region=region.name, lines=lines)
