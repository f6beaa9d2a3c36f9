"""Launches in order: a plan, and the plans of all phases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kpredict.model.launches import Barrier, GraphBreak, Launch, Recompile, RoundTrip, Unknown
from kpredict.model.words import ZERO, Count, Kind, Phase


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered launches of one entry point, mode and phase: predicted or measured alike.

    `skipped` are where torch.compile gave up on a whole function, which `notes` tell too.
    """

    launches: tuple[Launch, ...] = ()
    round_trips: tuple[RoundTrip, ...] = ()
    barriers: tuple[Barrier, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    graph_breaks: tuple[GraphBreak, ...] = ()
    notes: tuple[str, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    skipped: tuple[GraphBreak, ...] = ()

    def count(self, *kinds: Kind) -> Count:
        total = ZERO
        for launch in self.launches:
            if launch.kind in kinds:
                total += launch.count
        return total

    @property
    def kernels(self) -> Count:
        """Kernels, those inside library calls included."""
        return self.count(Kind.KERNEL, Kind.LIBRARY)

    @property
    def graph_launches(self) -> int:
        """How often a CUDA graph is launched."""
        return len({launch.replay for launch in self.launches if launch.replay})

    @property
    def host_launches(self) -> Count:
        """What the host tells the device to do: a CUDA graph is one launch, whatever it holds."""
        total = Count.exactly(self.graph_launches)
        for launch in self.launches:
            if not launch.replay and launch.kind is not Kind.SYNC:
                total += launch.count
        return total

    @property
    def library_calls(self) -> int:
        return sum(launch.kind is Kind.LIBRARY for launch in self.launches)

    @property
    def memcpy(self) -> Count:
        return self.count(Kind.MEMCPY)

    @property
    def memset(self) -> Count:
        return self.count(Kind.MEMSET)

    @property
    def syncs(self) -> Count:
        return self.count(Kind.SYNC)

    @property
    def transfers(self) -> tuple[int, int]:
        """(arrays, bytes) read from and written to GPU memory by all launches."""
        arrays = total = 0
        for launch in self.launches:
            arrays += len(launch.reads) + len(launch.writes)
            total += sum(a.bytes for a in launch.reads) + sum(a.bytes for a in launch.writes)
        return arrays, total

    @property
    def round_trip_bytes(self) -> int:
        return sum(r.bytes for r in self.round_trips)


@dataclass(frozen=True, slots=True)
class Phases:
    """The plans of one mode, by phase; None where the phase was not asked for."""

    forward: Plan | None = None
    backward: Plan | None = None
    step: Plan | None = None

    def __iter__(self) -> Iterator[tuple[Phase, Plan]]:
        for phase in Phase:
            plan = getattr(self, phase.value)
            if plan is not None:
                yield phase, plan

    @property
    def kernels(self) -> Count:
        return sum((plan.kernels for _, plan in self), ZERO)
