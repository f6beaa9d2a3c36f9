"""`pretend_cuda`: a world in which every library call finds the target GPU.

Joins the C++ pretence, the `torch.cuda` stand-ins, the routes and the fake-tensor mode. Nests (the
inner entry joins the outer world) and can be entered many times in one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor

from kpredict.capture.convert import Converter
from kpredict.capture.cuda_api import cuda_api
from kpredict.capture.device_runtime import device_runtime
from kpredict.capture.disguise import undetected
from kpredict.capture.mode import PretendGpu
from kpredict.capture.modules import movable_modules
from kpredict.capture.profilers import unmeasured
from kpredict.capture.recorder import Recorder
from kpredict.capture.routes import cuda_routes
from kpredict.capture.tensors import dataless_tensors
from kpredict.capture.triton_kernels import triton_kernels
from kpredict.capture.values import Values
from kpredict.model import Target
from kpredict.targets import target as find_target


class World:
    """The pretended machine: its target and the mode that holds its tensors."""

    def __init__(self, target: Target) -> None:
        self.target = target
        idle = Recorder(Values(), Converter())  # outside a capture: data-dependent ops still answer
        idle.active = False
        self.mode = PretendGpu(idle)

    def on_sync(self, what: str) -> None:
        self.mode.listener.sync(what)

    def on_kernel(
        self, name: str, reads: Sequence[torch.Tensor], writes: Sequence[torch.Tensor]
    ) -> None:
        self.mode.listener.kernel(name, reads, writes)


_current: ContextVar[World | None] = ContextVar("kpredict_world", default=None)


def current_world() -> World | None:
    return _current.get()


@contextmanager
def _no_real_context() -> Iterator[None]:
    """A CUDA build makes a real context for the first fake tensor; here there is no driver for it.
    Releases differ in when they do; one that has no such function needs nothing."""
    import torch._subclasses.fake_tensor as fakes

    with mock.patch.object(fakes, "init_gpu_context", create=True):
        yield


@contextmanager
def _foreach_takes_fakes() -> Iterator[None]:
    """Optimizers and clip_grad choose foreach by exact type; a fake parameter counts as one."""
    import torch.optim.optimizer as optimizer
    import torch.utils._foreach_utils as foreach

    lists = (optimizer._foreach_supported_types, foreach._foreach_supported_types)
    for types in lists:
        types.append(FakeTensor)
    try:
        yield
    finally:
        for types in lists:
            types.remove(FakeTensor)


@contextmanager
def pretend_cuda(target: str | Target | None = None) -> Iterator[World]:
    """Code under it sees one CUDA GPU: CUDA tensors and modules can be built and run, as metadata.

    `target` is a name (`kpredict targets`) or a Target; default h100. An inner entry without a
    target joins the outer world.
    """
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    profile = (
        target
        if isinstance(target, Target)
        else find_target(target, torch=torch.__version__.split("+")[0])
    )
    world = World(profile)
    token = _current.set(world)
    try:
        with ExitStack() as stack:
            stack.enter_context(device_runtime(bfloat16=profile.sm >= 80))
            stack.enter_context(cuda_api(profile, world.on_sync))
            stack.enter_context(cuda_routes(profile))
            stack.enter_context(movable_modules())
            stack.enter_context(dataless_tensors())
            stack.enter_context(unmeasured(world.mode))
            stack.enter_context(_foreach_takes_fakes())
            stack.enter_context(undetected())
            stack.enter_context(_no_real_context())
            stack.enter_context(triton_kernels(profile, world.on_kernel))
            stack.enter_context(world.mode)
            yield world
    finally:
        _current.reset(token)
