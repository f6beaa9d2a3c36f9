"""The Python interface: `predict` and `pretend_cuda`. Imports torch; `import kpredict` does not."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpredict.capture.run import Optimizer
from kpredict.capture.world import current_world, pretend_cuda
from kpredict.model import Entry, Mode, Phase, Report, Target
from kpredict.plans import Call, make_plans

__all__ = ["predict", "pretend_cuda"]


def predict(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    modes: Sequence[str] = ("eager", "compiled"),
    phases: Sequence[str] = ("forward",),
    optimizer: Optimizer | None = None,
    target: str | Target | None = None,
    assume: Mapping[int | str, float] | None = None,
) -> Report:
    """What `fn(*args, **kwargs)` would launch on the target GPU, without one.

    `fn` is a function or module; it runs a few times, on tensors that hold no data. Tensors made
    under `pretend_cuda` are used as they are; outside of it real tensors and modules stand for
    themselves on the target (CPU ones stay on the CPU). `phases` may add "backward" (from a
    returned scalar, else the sum of the outputs) and "step" (of `optimizer`). `assume` gives
    values of data-dependent reads by source line or "*".

    The report has one entry: `report.eager.forward.kernels`, `report.compiled.forward.launches`,
    `report.to_json()`, `str(report)`. Raises what `fn` raises, and KpredictError.
    """
    start = time.perf_counter()
    wanted = tuple(Phase(p) for p in phases)
    file, line = _place(fn)
    call = Call(
        fn, args, kwargs or {}, wanted, optimizer, stated=assume or {}, file=file,
        compiles=Mode.AS_WRITTEN in modes,
    )  # fmt: skip
    with pretend_cuda(target if current_world() is None else None) as world:
        plans = make_plans(world, call, [Mode(m) for m in modes])
        for error in plans.failures.values():
            raise error
        entry = Entry(
            file, getattr(fn, "__qualname__", type(fn).__name__), line, (), plans.by_mode,
            plans.assumptions, array_names=plans.names,
        )  # fmt: skip
        return Report(world.target, (entry,), seconds=time.perf_counter() - start)


def _place(fn: Callable[..., Any]) -> tuple[str, int]:
    """File and first line of `fn`, where Python knows them."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
