"""Inductor's generated code, run on fake tensors: it allocates, calls and launches in its order.

The code that Inductor writes around its kernels is plain Python: allocations, extern calls, kernel
launches. We execute exactly that code, with a stand-in for each generated kernel. So outputs have
the layout Inductor chose, mutation and aliasing are right, extern and fallback ops are heard as the
ops they are, and every launch is marked at its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol

import torch

from kpredict.compiled.constants import CudaConstant
from kpredict.compiled.region import Entered, KernelCall, Launched, Left, Mark, Reached, Region
from kpredict.model import Phase, Tensor

# imports of the generated code that only a GPU build or an installed Triton has
_ABSENT = re.compile(
    r"^(import triton\b.*|from torch\._C import _cuda_getCurrentRawStream.*)$", re.MULTILINE
)
_ALIGNMENT = 16  # bytes, torch._inductor.utils.ALIGNMENT


class Ear(Protocol):
    """Where marks go: the recorder of the run under way."""

    active: bool

    def mark(self, item: Any) -> None: ...

    def paused(self) -> AbstractContextManager[None]: ...

    @property
    def converter(self) -> Any: ...


class Ears(AbstractContextManager[Any], Protocol):
    """The pretended GPU: tensors are made under it, and it knows the recorder."""

    @property
    def listener(self) -> Any: ...


class StandIn:
    """A generated kernel that is not compiled: its launch is only told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.launched: Callable[[str, Sequence[Any]], None] | None = None

    def run(self, *args: Any, stream: Any = None, **_: Any) -> None:
        if self.launched is not None:
            self.launched(self.name, args)


class CpuStandIn:
    """A generated CPU kernel: nothing is launched on the GPU."""

    def __call__(self, *_: Any) -> None: ...


def running_phase() -> Phase:
    """Backward when autograd's engine runs the code."""
    return Phase.FORWARD if torch._C._current_autograd_node() is None else Phase.BACKWARD


def load(region: Region, constants: Mapping[str, Any], mode: Ears) -> ModuleType:
    """The region's code as a module whose `call(args)` runs it and marks the stream."""
    module = ModuleType(f"kpredict region {region.name}")
    module.__file__ = f"<region {region.name}>"
    at: SimpleNamespace = SimpleNamespace(call=None)
    scope = module.__dict__

    def reach(i: int) -> None:
        at.call = None
        if mode.listener.active:
            mode.listener.mark(Reached(region.nodes[i], running_phase()))

    def call_number(i: int) -> None:
        at.call = region.calls[i]

    def launched(name: str, args: Sequence[Any]) -> None:
        listener = mode.listener
        if listener.active:
            mark: Mark = Launched(name, _arrays(at.call, args, listener), running_phase())
            listener.mark(mark)

    scope.update({name: _constant(value, mode) for name, value in constants.items()})
    scope["_kpredict_reach"] = reach
    scope["_kpredict_call"] = call_number
    exec(compile(_ABSENT.sub("", region.code), module.__file__, "exec"), scope)
    scope.update(
        empty_strided_cuda=_empty_on("cuda:0", mode), empty_strided_cpu=_empty_on("cpu", mode),
        empty_strided_cpu_pinned=_empty_on("cpu", mode), reinterpret_tensor=_reinterpreter(mode),
        get_raw_stream=lambda *_: 0, assert_size_stride=_nothing, assert_alignment=_nothing,
        copy_if_misaligned=_aligned,
    )  # fmt: skip
    for value in scope.values():
        if isinstance(value, StandIn):
            value.launched = launched
    inner = scope["call"]

    def call(args: list[Any]) -> Any:
        listener = mode.listener
        region.runs += 1
        if not listener.active:
            return inner(args)
        listener.mark(Entered(region, running_phase()))
        try:
            return inner(args)
        finally:
            listener.mark(Left(region, running_phase()))

    call._boxed_call = True  # type: ignore[attr-defined]
    scope["call"] = call
    return module


def _arrays(
    call: KernelCall | None, args: Sequence[Any], listener: Ear
) -> tuple[tuple[Tensor, str, int, int], ...]:
    found: list[tuple[Tensor, str, int, int]] = []
    for i, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            name, read, written, whole = call.arrays[i] if call is not None else ("", 0, 0, 0)
            tensor = listener.converter.tensor(arg)
            extent = _extent(tensor)
            if whole and extent and whole != extent:  # compiled for other sizes
                read, written = read * extent // whole, written * extent // whole
            found.append((tensor, name, read, written))
    return tuple(found)


def _constant(value: Any, mode: Ears) -> Any:
    """A constant of the graph as the code finds it at run time: one on the GPU is fake."""
    if not isinstance(value, CudaConstant):
        return value
    with mode:
        return _empty_on("cuda:0", mode)(value.size(), value.stride(), value.dtype)


def _extent(tensor: Tensor) -> int:
    """Bytes from the first to the last element, as Inductor counts a buffer's storage."""
    if tensor.numel == 0:
        return 0
    last = sum((n - 1) * st for n, st in zip(tensor.shape, tensor.stride, strict=True))
    return (last + 1) * tensor.itemsize


def _empty_on(device: str, mode: Ears) -> Callable[..., torch.Tensor]:
    def empty(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        with mode.listener.paused():
            return torch.empty_strided(size, stride, dtype=dtype, device=device)

    return empty


def _reinterpreter(mode: Ears) -> Callable[..., torch.Tensor]:
    def reinterpret(t: torch.Tensor, size: Any, stride: Any, increment: int = 0) -> torch.Tensor:
        with mode.listener.paused():
            return torch.as_strided(t, size, stride, int(t.storage_offset()) + increment)

    return reinterpret


def _aligned(value: Any) -> Any:
    """Kernels compiled for aligned input get a copy of one that is not, as at run time."""
    if isinstance(value, torch.Tensor) and value.storage_offset() * value.itemsize % _ALIGNMENT:
        return value.clone()
    return value


def _nothing(*_: Any, **__: Any) -> None:
    return None
