"""The Python interface: `predict` and `pretend_cuda`. Imports torch; `import kpredict` does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpredict.capture.run import capture
from kpredict.capture.world import current_world, pretend_cuda
from kpredict.eager.predict import predict_eager
from kpredict.model import Entry, Mode, Op, Phase, Phases, Report

__all__ = ["predict", "pretend_cuda"]


def predict(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    modes: Sequence[str] = ("eager", "compiled"),
    phases: Sequence[str] = ("forward",),
    optimizer: Any = None,
    target: str | None = None,
) -> Report:
    """What `fn(*args, **kwargs)` would launch on the target GPU, without one."""
    start = time.perf_counter()
    with pretend_cuda(target if current_world() is None else None) as world:
        captured = capture(world, fn, args, kwargs)
        plans: dict[Mode, Phases] = {}
        if "eager" in modes:
            plans[Mode.EAGER] = Phases(
                **{
                    Phase(p).value: predict_eager(
                        [o for o in ops if isinstance(o, Op)], world.target
                    )
                    for p, ops in captured.items.items()
                }
            )
        entry = Entry("", getattr(fn, "__name__", "fn"), 0, (), plans, captured.assumptions)
        return Report(world.target, (entry,), seconds=time.perf_counter() - start)
