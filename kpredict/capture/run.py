"""Run a callable in the pretended world and keep its ops, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kpredict.capture.convert import Converter
from kpredict.capture.recorder import Recorder
from kpredict.capture.values import Values
from kpredict.capture.world import World
from kpredict.model import Assumption, Op, Phase


@dataclass(frozen=True, slots=True)
class Captured:
    """The ops of each phase, and what had to be assumed to get them."""

    ops: Mapping[Phase, tuple[Op, ...]]
    assumptions: tuple[Assumption, ...]


def capture(
    world: World,
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    stated: Mapping[int | str, float] | None = None,
    warmups: int = 1,
) -> Captured:
    """Call `fn` in its steady state (after `warmups` unrecorded calls) and return what it did."""
    values = Values(stated)
    recorder = Recorder(values, Converter())
    mode = world.mode
    outer, mode.listener = mode.listener, recorder
    try:
        recorder.active = False
        for _ in range(warmups):
            fn(*args, **(kwargs or {}))
        recorder.active = True
        fn(*args, **(kwargs or {}))
    finally:
        mode.listener = outer
    return Captured(
        {Phase.FORWARD: tuple(recorder.ops)}, tuple(recorder.values.assumptions.values())
    )
