"""Run a callable under torch.compile in the pretended world, and plan what its regions launch.

`compiling(world)` makes torch.compile decide for the target while it is entered; the `Compiler` it
gives wraps a callable, keeps graph breaks and regions, and turns a capture into plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from kpredict.capture.run import Captured
from kpredict.capture.world import World
from kpredict.compiled.dynamo import Heard, Kind, dynamo, is_ours, why_compile_failed
from kpredict.compiled.inductor import inductor
from kpredict.compiled.options import in_words
from kpredict.compiled.patching import check_release
from kpredict.compiled.plan import predict_compiled
from kpredict.compiled.region import Region
from kpredict.compiled.timing import Timed
from kpredict.model import GraphBreak, KpredictError, Phase, Plan, Recompile


@dataclass(slots=True)
class Compiler:
    """torch.compile for the target: what it made of one callable."""

    world: World
    options: Mapping[str, Any] = field(default_factory=dict)
    heard: Heard = field(default_factory=Heard)
    timed: Timed = field(default_factory=Timed)
    regions: list[Region] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def wrap(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.compile(fn)` with the options given; nothing is compiled for a real device."""
        return torch.compile(fn, **self.options)

    @property
    def graph_breaks(self) -> tuple[GraphBreak, ...]:
        return self.heard.of(Kind.BREAK)

    @property
    def skipped(self) -> tuple[GraphBreak, ...]:
        """Frames dynamo gave up on: all of their ops run eagerly."""
        return self.heard.of(Kind.SKIP)

    def plans(self, captured: Captured) -> dict[Phase, Plan]:
        """The plan of each phase; what dynamo said goes to the phase in which it said it."""
        return {
            phase: replace(
                predict_compiled(
                    items,
                    self.world.target,
                    self.heard.of(Kind.BREAK, phase),
                    self._notes(phase),
                    self._recompiles(phase),
                ),
                skipped=self.heard.of(Kind.SKIP, phase),
            )
            for phase, items in captured.items.items()
        }

    def _notes(self, phase: Phase) -> list[str]:
        options = [f"compiled by {in_words(self.options)}"] if self.options else []
        skipped = [
            f"torch.compile skips {_where(s)}, all of it runs eagerly: {s.reason}"
            for s in self.heard.of(Kind.SKIP, phase)
        ]
        unsettled = [
            f"{name} is compiled again in every call; after recompile_limit of them it runs eagerly"
            for name in self.heard.unsettled
            if any(r.function == name for r in self._recompiles(phase))
        ]
        return [*options, *skipped, *unsettled, *self.remarks]

    def _recompiles(self, phase: Phase) -> tuple[Recompile, ...]:
        """Once everything ran, what may vary in the code compiled again is known."""
        dynamic = {r.name: r.dynamic for r in self.regions if r.phase is Phase.FORWARD}
        return tuple(
            replace(again, dynamic=dynamic.get(again.region, ()))
            for said, again in self.heard.recompiles
            if said is phase
        )

    def _runs(self, frame: str) -> int:
        return sum(
            r.runs
            for r in self.regions
            if r.phase is Phase.FORWARD and r.name.startswith(f"{frame}/")
        )


def _where(said: GraphBreak) -> str:
    return f"{said.line.function} (line {said.line.line})" if said.line else "a frame"


@contextmanager
def compiling(
    world: World, options: Mapping[str, Any] | None = None, templates_win: bool = False
) -> Iterator[Compiler]:
    """While entered, torch.compile (ours and the user's own) decides for the world's target.

    Where Inductor would time Triton templates against a library, the library wins, or they do with
    `templates_win`.

    Raises KpredictError where torch.compile itself gives up with an error, as it would on a GPU.
    """
    check_release()
    compiler = Compiler(world, dict(options or {}))
    compiler.heard.calls = compiler._runs
    with (
        inductor(world, compiler.regions, templates_win) as compiler.timed,
        dynamo(world, compiler.heard),
    ):
        try:
            yield compiler
        except Exception as error:
            failed = why_compile_failed(error)
            if failed is None:
                raise
            words, line = failed
            if is_ours(error):
                raise KpredictError(
                    f"kpredict could not follow torch.compile here: {words}",
                    "The eager plan is not affected.",
                ) from error
            where = f"line {line.line} of {line.function}" if line else "this code"
            raise KpredictError(
                f"torch.compile fails on {where}: {words}",
                "Most likely on a GPU too; the eager plan is what runs without torch.compile.",
            ) from error
