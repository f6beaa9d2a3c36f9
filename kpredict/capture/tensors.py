"""Tensor methods that need data or a CUDA runtime, on tensors that have neither.

`numpy()` gives zeros, `print` runs torch's own formatting (whose launches count), pinning is free,
pickling keeps shape and device. Each stand-in falls through to torch for real tensors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map_only

_LEGACY = {
    "Float": torch.float32, "Double": torch.float64, "Half": torch.float16,
    "BFloat16": torch.bfloat16, "Long": torch.int64, "Int": torch.int32, "Short": torch.int16,
    "Char": torch.int8, "Byte": torch.uint8, "Bool": torch.bool,
}  # fmt: skip


class Generator(torch.Generator):
    """`torch.Generator(device)`: the CUDA one is a CPU generator that says cuda."""

    _device: torch.device

    def __new__(cls, device: Any = "cpu") -> Generator:
        made = super().__new__(cls)
        made._device = torch.device(device)
        if made._device.type == "cuda" and made._device.index is None:
            made._device = torch.device("cuda", 0)
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self._device


def rebuild(
    shape: Any, stride: Any, dtype: torch.dtype, device: str, requires_grad: bool, is_param: bool
) -> torch.Tensor:
    """Unpickle a pretended tensor: the same metadata, in the mode that is active now."""
    made = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    if is_param:
        return torch.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad)


def _reduce(self: torch.Tensor, protocol: Any) -> Any:
    arguments = (
        tuple(self.shape), self.stride(), self.dtype, str(self.device), self.requires_grad,
        isinstance(self, torch.nn.Parameter),
    )  # fmt: skip
    return rebuild, arguments


def _numpy(self: torch.Tensor, *, force: bool = False) -> Any:
    import numpy

    if self.device.type == "cuda":
        if not force:
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        self.cpu()
    if self.requires_grad and not force:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    dtype = str(self.dtype).removeprefix("torch.")
    return numpy.zeros(tuple(self.shape), dtype=dtype)


def _tolist(self: torch.Tensor) -> Any:
    """One copy to the host, then a list of the value supposed."""
    host = self.cpu()
    if host.dim() == 0:
        return host.item()
    value = host.flatten()[0].item() if host.numel() else 0

    def nested(shape: Sequence[int]) -> list[Any]:
        if len(shape) == 1:
            return [value] * shape[0]
        return [nested(shape[1:]) for _ in range(shape[0])]

    return nested(tuple(self.shape))


def _array(self: torch.Tensor, dtype: Any = None, *_: Any, **__: Any) -> Any:
    made = _numpy(self)
    return made if dtype is None else made.astype(dtype)


def _repr(self: torch.Tensor, *, tensor_contents: Any = None) -> str:
    """Printing a CUDA tensor launches kernels and waits: run torch's own formatter on it."""
    if self.device.type == "cuda" and torch._guards.TracingContext.try_get() is None:
        with contextlib.suppress(Exception), torch.no_grad():
            torch._tensor_str._tensor_str(self.detach(), 8)
    shape = f"size={tuple(self.shape)}"
    return f"tensor(..., device='{self.device}', {shape}, dtype={self.dtype})"


def _format(self: torch.Tensor, spec: str) -> str:
    if self.dim() == 0 and spec:
        return format(self.item(), spec)
    return str(self)


def _pinned(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    return self


def _on_fakes(name: str, stand_in: Callable[..., Any]) -> Any:
    """Patch a Tensor method to use `stand_in` for fake tensors only."""
    original = getattr(torch.Tensor, name)

    def method(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, FakeTensor):
            return stand_in(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    return mock.patch.object(torch.Tensor, name, method)


class _Legacy(type):
    """The type of `torch.cuda.FloatTensor` and its kin: makes and recognises CUDA tensors."""

    dtype: torch.dtype

    def __call__(cls, *args: Any, **_: Any) -> torch.Tensor:
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            return torch.tensor(args[0], dtype=cls.dtype, device="cuda")
        return torch.empty(args, dtype=cls.dtype, device="cuda")

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Tensor) and (
            instance.dtype is cls.dtype and instance.device.type == "cuda"
        )


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.load` with `map_location` for pretended tensors too."""

    def load(*args: Any, **kwargs: Any) -> Any:
        with torch.serialization.safe_globals([rebuild]):
            loaded = original(*args, **kwargs)
        where = kwargs.get("map_location", args[1] if len(args) > 1 else None)
        if isinstance(where, (str, torch.device)):
            loaded = tree_map_only(FakeTensor, lambda t: t.to(where), loaded)
        return loaded

    return load


_METHODS: dict[str, Callable[..., Any]] = {
    "numpy": _numpy,
    "tolist": _tolist,
    "__array__": _array,
    "__repr__": _repr,
    "__format__": _format,
    "__reduce_ex__": _reduce,
    "record_stream": lambda self, stream: None,
    "is_pinned": lambda self, device=None: False,
}


@contextmanager
def dataless_tensors() -> Iterator[None]:
    """Install the stand-ins."""
    with ExitStack() as stack:
        for name, stand_in in _METHODS.items():
            stack.enter_context(_on_fakes(name, stand_in))
        for name, dtype in _LEGACY.items():
            stack.enter_context(
                mock.patch.object(
                    torch.cuda, f"{name}Tensor", _Legacy(f"{name}Tensor", (), {"dtype": dtype})
                )
            )
        stack.enter_context(mock.patch.object(torch.Tensor, "pin_memory", _pinned))
        for name in ("__repr__", "tolist"):  # FakeTensor has its own
            stack.enter_context(mock.patch.object(FakeTensor, name, getattr(torch.Tensor, name)))
        stack.enter_context(mock.patch.object(torch, "Generator", Generator))
        stack.enter_context(mock.patch.object(torch, "load", _load(torch.load)))
        yield
