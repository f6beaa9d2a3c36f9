"""A recorded stream with regions in it → Plan: generated kernels as told, other ops by their rules.

In: the items of one phase (Ops and marks). Out: a Plan. Linear in the number of items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kpredict.compiled.helping import told_why
from kpredict.compiled.intervals import maybe_more, maybe_taken_in
from kpredict.compiled.reasons import Made, find_barriers
from kpredict.compiled.region import (
    Copied,
    Ended,
    Entered,
    Launched,
    Left,
    Node,
    Reached,
    Region,
    Replayed,
    Ungraphed,
)
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
    Recompile,
    Target,
    Unknown,
)


def predict_compiled(
    items: Iterable[object],
    target: Target,
    graph_breaks: tuple[GraphBreak, ...] = (),
    notes: Sequence[str] = (),
    recompiles: tuple[Recompile, ...] = (),
) -> Plan:
    """The plan of one phase of a compiled run."""
    stream = _Stream(target)
    for item in items:
        stream.take(item)
    made = told_why(stream.made)
    launches = tuple(m.launch for m in made)
    trips = round_trips(launches)
    barriers = find_barriers(made, trips, graph_breaks)
    told = tuple(dict.fromkeys((*notes, *stream.notes, *stream.graph_notes())))
    unknowns = tuple(stream.unknowns)
    return Plan(launches, trips, barriers, unknowns, graph_breaks, told, recompiles)


@dataclass(slots=True)
class _Stream:
    """Reads items in order and keeps where it is: in which region, node and CUDA graph."""

    target: Target
    made: list[Made] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    nodes: list[Node | None] = field(default_factory=list)
    copying: int | None = None
    replay: int = 0
    replays: dict[int, tuple[int, int]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def take(self, item: object) -> None:
        match item:
            case Entered():
                self.notes |= dict.fromkeys(item.region.notes)
                self.regions.append(item.region)
                self.nodes.append(None)
            case Left():
                self.regions.pop()
                self.nodes.pop()
            case Reached() if self.nodes:
                self.nodes[-1] = item.node
            case Ungraphed():
                self.notes[item.reason] = None
            case Copied():
                self.copying = item.number
            case Replayed():
                self.copying = None
                self.replays[len(self.replays) + 1] = item.number, 0
                self.replay = len(self.replays)
            case Ended():
                self.replay = 0
            case Launched():
                self._keep(self._generated(item))
            case Op():
                self._by_rule(item)

    @property
    def region(self) -> Region | None:
        return self.regions[-1] if self.regions else None

    @property
    def node(self) -> Node | None:
        return self.nodes[-1] if self.nodes else None

    def graph_notes(self) -> list[str]:
        return [
            f"CUDA graph {graph}: one graph launch replays {count} of these"
            for graph, count in self.replays.values()
            if count
        ]

    def _by_rule(self, op: Op) -> None:
        """An op that is not a generated kernel launches what it launches eagerly."""
        launches, unknown = launches_of(op, self.target)
        lines = self.node.lines if self.node is not None else ()
        for launch in launches:
            if self.region is not None:
                launch = replace(launch, region=self.region.name, lines=lines or launch.lines)
                launch = maybe_more(launch, op, self.region)
            self._keep(launch)
        if unknown is not None:
            self.unknowns.append(replace(unknown, lines=lines or unknown.lines))

    def _keep(self, launch: Launch) -> None:
        if self.replay:
            graph, count = self.replays[self.replay]
            self.replays[self.replay] = graph, count + 1
            launch = replace(launch, replay=self.replay)
        elif self.copying is not None:
            because = f"copies inputs to the addresses that CUDA graph {self.copying} reads"
            launch = replace(launch, because=because, lines=())
        self.made.append(Made(launch, self.region, self.node))

    def _generated(self, item: Launched) -> Launch:
        region, node = self.region, self.node
        launch = Launch(
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
        return maybe_taken_in(launch, region, node)
