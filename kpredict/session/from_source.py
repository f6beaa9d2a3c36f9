"""Without torch: what the source alone tells of a file's entries. Nothing is imported or run.

In: a Request and the text. Out: an Entry for each function that launches something, its eager plan
with intervals where shapes or ways are open, and a note that says what is missing for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kpredict.graph import round_trips
from kpredict.model import (
    Basis,
    Count,
    Entry,
    Kind,
    Launch,
    Mode,
    Phases,
    Plan,
    Span,
    Target,
    Unknown,
)
from kpredict.request import Request
from kpredict.session.told import init_specs, specs
from kpredict.source.entries import read_source
from kpredict.source.fusion import estimate
from kpredict.source.infer.comments import value_of
from kpredict.source.infer.counting import kernels, launches
from kpredict.source.infer.entries import Read, read_conventional, read_file
from kpredict.source.infer.trace import Fork, Item, Missing, Repeat, Step, Sync

NOTE = (
    "read from the source alone, since torch is not installed: counts are intervals where shapes "
    "are not told, and there is no compiled plan; pip install 'torch-kpredict[torch]'"
)


def read_entries(request: Request, text: str, target: Target) -> Iterator[Entry]:
    """The file's conventional entry, else every function that launches something."""
    conventional = read_conventional(text, request.file, target)
    if conventional is not None and not request.names:
        found: Iterable[Read] = (conventional,)
    else:
        given = _given(request, text)
        found = read_file(
            text, request.file, target, follow=True, dims=request.dims, given=given
        ).functions
    for read in found:
        if request.names and read.name not in request.names:
            continue
        plan = _Reader(target).plan(read)
        if plan.launches or plan.unknowns or request.names:
            inputs = tuple(w if n.isdigit() else f"{n}={w}" for n, w in read.inputs)
            plans = {Mode.EAGER: Phases(plan)}
            yield Entry(request.file, read.name, read.line, inputs, plans, source=text)


def _given(request: Request, text: str) -> dict[str, dict[str, Any]]:
    """What directives, annotations, configuration and flags say of each entry's inputs."""
    source = read_source(request.file, text)
    out: dict[str, dict[str, Any]] = {}
    for entry in source.entries:
        values = {n: value_of(s, request.dims) for n, s in specs(entry, request).items()}
        if values:
            out[entry.name] = out[f"{entry.name}.forward"] = values
        owner = entry.name.rpartition(".")[0] or entry.name
        init = init_specs(source, entry, owner, request)
        if init:
            out[f"{owner}.__init__"] = {n: value_of(s, request.dims) for n, s in init.items()}
    return out


@dataclass
class _Reader:
    """Items of a trace → launches and unknowns, in order."""

    target: Target
    launches: list[Launch] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)

    def plan(self, read: Read) -> Plan:
        self._items(read.items, sure=True)
        if not read.complete:
            self._unknown("the rest", "reading it was cut short", Span(read.name, read.line))
        fused = estimate(read.items, read.returned, lambda s: kernels(s, self.target).lo or 1)
        guess = f"compiled it would be about {fused} kernels, by a small model of fusion"
        notes = (NOTE,) if fused is None else (NOTE, guess)
        found = tuple(self.launches)
        return Plan(found, round_trips(found), unknowns=tuple(self.unknowns), notes=notes)

    def _items(self, items: Iterable[Item], sure: bool) -> None:
        for item in items:
            match item:
                case Step():
                    self._step(item, sure)
                case Fork(branches):
                    for branch in branches:
                        self._items(branch, sure=False)
                case Repeat(body, place):
                    self._items(body, sure=False)
                    self._unknown("a loop", "how often it runs is not known", place.span)
                case Missing(what, place):
                    self._unknown(what, "it cannot be looked into", place.span)
                case Sync(what, place):
                    lines = (place.span,)
                    self.launches.append(
                        Launch(Kind.SYNC, "synchronize", because=what, lines=lines)
                    )

    def _step(self, step: Step, sure: bool) -> None:
        lines = (step.place.span,)
        found = launches(step, self.target) if step.known else None
        if found is not None:
            for launch in found:
                count = launch.count if sure else Count(0, launch.count.hi)
                self.launches.append(replace(launch, count=count, ops=(step.name,), lines=lines))
            return
        interval = kernels(step, self.target)
        if interval.hi is None:
            self._unknown(step.name, "its shapes are not known", step.place.span)
        elif interval.hi:
            count = Count(interval.lo if sure else 0, interval.hi)
            why = "the shapes are not told"
            launch = Launch(Kind.KERNEL, step.short, count, because=why, ops=(step.name,))
            self.launches.append(replace(launch, basis=Basis.ASSUMED, lines=lines))

    def _unknown(self, what: str, why: str, span: Span) -> None:
        self.unknowns.append(Unknown(what, why, (span,)))
