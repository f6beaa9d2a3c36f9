"""The Python interface: `predict` and `pretend_cuda`. Imports torch; `import kpredict` does not."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from kpredict import __version__
from kpredict.bounds import Bound, phases_bound
from kpredict.capture.run import Optimizer
from kpredict.capture.world import current_world, pretend_cuda
from kpredict.model import Entry, Mode, Phase, Report, Target
from kpredict.plans import Call, make_plans
from kpredict.report import json, text

__all__ = ["predict", "pretend_cuda"]


@dataclass(frozen=True, slots=True)
class Prediction(Report):
    """A report that renders itself and knows its bounds."""

    @property
    def bound(self) -> Mapping[str, Bound]:
        """By mode, the time that no plan of all its phases can beat: never a measurement.

        `prediction.bound["compiled"].total` in microseconds, and what sets it: `.limited_by`.
        """
        (entry,) = self.entries
        return {mode: phases_bound(phases, self.target) for mode, phases in entry.plans.items()}

    def to_json(self) -> str:
        """JSON text, in the shape of `report.schema.json`."""
        return json.render(self, __version__)

    def __str__(self) -> str:
        """The text that `kpredict show` prints."""
        return text.render(self)


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
    compile_options: Mapping[str, Any] | None = None,
) -> Prediction:
    """What `fn(*args, **kwargs)` would launch on the target GPU, without one.

    `fn` is a function or module; it runs a few times, on tensors that hold no data. Tensors made
    under `pretend_cuda` are used as they are. Outside of it, real tensors among the arguments, and
    the parameters of modules, stand for the same arrays on the GPU; they are not changed, and what
    a function closes over stays on the CPU. `phases` may add "backward" (from a
    returned scalar, else the sum of the outputs) and "step" (of `optimizer`). `assume` gives
    values of data-dependent reads by source line or "*". `compile_options` are torch.compile's
    (mode, options, dynamic, fullgraph) in the compiled plan.

    The report has one entry: `report.eager.forward.kernels`, `report.compiled.forward.launches`,
    `report.to_json()`, `str(report)`. Raises what `fn` raises, and KpredictError.
    """
    start = time.perf_counter()
    wanted = tuple(Phase(p) for p in phases)
    file, line = _place(fn)
    call = Call(
        fn, args, kwargs or {}, wanted, optimizer, stated=assume or {}, file=file,
        compiles=Mode.AS_WRITTEN in modes, compile_options=compile_options or {},
    )  # fmt: skip
    inside = current_world() is not None
    with pretend_cuda(None if inside else target) as world:
        if not inside:
            call = _on_gpu(call)
        plans = make_plans(world, call, [Mode(m) for m in modes])
        for error in plans.failures.values():
            raise error
        entry = Entry(
            file, getattr(fn, "__qualname__", type(fn).__name__), line, (), plans.by_mode,
            plans.assumptions, array_names=plans.names,
        )  # fmt: skip
        return Prediction(world.target, (entry,), seconds=time.perf_counter() - start)


def _on_gpu(call: Call) -> Call:
    """The call with CUDA tensors in place of its real ones: a copy that copies no data."""
    modules = [
        x
        for x in (
            call.fn,
            getattr(call.fn, "__self__", None),
            *tree_leaves((call.args, call.kwargs)),
        )
        if isinstance(x, torch.nn.Module)
    ]
    tensors = [t for m in modules for t in (*m.parameters(), *m.buffers())]
    tensors += [t for t in tree_leaves((call.args, dict(call.kwargs))) if _is_plain(t)]
    optimizer: Any = call.optimizer
    if isinstance(optimizer, torch.optim.Optimizer):
        tensors += [p for group in optimizer.param_groups for p in group["params"]]
        tensors += [t for t in tree_leaves(dict(optimizer.state)) if _is_plain(t) and t.dim()]
    memo: dict[int, Any] = {id(t): _cuda_like(t) for t in tensors}
    fn, args, kwargs, optimizer = copy.deepcopy(
        (call.fn, tuple(call.args), dict(call.kwargs), optimizer), memo
    )
    return replace(call, fn=fn, args=args, kwargs=kwargs, optimizer=optimizer)


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _cuda_like(tensor: torch.Tensor) -> torch.Tensor:
    """An array of the same shape, strides and dtype on the pretended GPU."""
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)


def _place(fn: Callable[..., Any]) -> tuple[str, int]:
    """File and first line of `fn`, where Python knows them."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
