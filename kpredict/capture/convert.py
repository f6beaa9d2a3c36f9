"""A dispatched call → Op: arguments by schema name, tensors as metadata, torch objects as strings.

Storage ids are kept unique for as long as the converter lives: it holds every storage it saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from kpredict.capture import sparse
from kpredict.capture.precision import precision_of
from kpredict.model import Op, Phase, Span, Tensor


@cache
def _schema(func: OpOverload) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (a.name, plain(a.default_value) if a.has_default_value() else None)
        for a in func._schema.arguments
    )


@cache
def _tags(func: OpOverload) -> frozenset[str]:
    tags = {"pointwise"} if torch.Tag.pointwise in func.tags else set()
    if hasattr(torch.Tag, "reduction") and torch.Tag.reduction in func.tags:
        tags.add("reduction")
    if func.is_view:
        tags.add("view")
    return frozenset(tags)


@cache
def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def plain(value: Any) -> Any:
    """Torch's own objects as strings, symbolic numbers as the number they stand for."""
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    if isinstance(value, (torch.UntypedStorage, torch.TypedStorage)):
        return "storage"
    if isinstance(value, torch.SymInt):
        return int(value)
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return value.node.hint
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    return value


def _lazy(t: torch.Tensor) -> str:
    return " ".join(n for n, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on)


class Converter:
    """Turns calls into Ops, with ids for storages in the order they were first seen."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._storages: dict[int, int] = {}
        self._alive: list[Any] = []

    def storage(self, tensor: torch.Tensor) -> int:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # sparse tensors have none
            return self._id(id(tensor), tensor)
        return self._id(storage._cdata, storage)

    def _id(self, key: int, owner: Any) -> int:
        found = self._storages.get(key)
        if found is None:
            found = self._storages[key] = len(self._storages)
            self._alive.append(owner)
        return found

    def join(self, tensor: torch.Tensor, other: torch.Tensor) -> None:
        """Let `tensor` count as the memory of `other`: on a GPU it would have been."""
        if tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        self._alive.append(storage)
        self._storages[storage._cdata] = self.storage(other)

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """Call the array of `tensor` by `name` in reports, unless it has a name already."""
        self.names.setdefault(self.storage(tensor), name)

    def tensor(self, t: torch.Tensor) -> Tensor:
        shape = tuple(int(s) for s in t.shape)
        device = "cuda" if t.device.type == "cuda" else "cpu"
        dtype, storage = dtype_name(t.dtype), self.storage(t)
        if t.layout is not torch.strided:
            layout, parts = sparse.metadata(t, device)
            return Tensor(shape, (0,) * len(shape), dtype, device, storage, 0, "", layout, parts)
        stride = tuple(int(s) for s in t.stride())
        return Tensor(shape, stride, dtype, device, storage, int(t.storage_offset()), _lazy(t))

    def value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            return tuple(self.value(v) for v in value)
        return plain(value)

    def op(
        self,
        func: OpOverload,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        *,
        span: Span | None,
        stack: tuple[Span, ...],
        module: str,
        phase: Phase,
        index: int,
        assumed: float | None = None,
    ) -> Op:
        bound: dict[str, Any] = {}
        for i, (name, default) in enumerate(_schema(func)):
            if i < len(args):
                bound[name] = self.value(args[i])
            elif name in kwargs:
                bound[name] = self.value(kwargs[name])
            else:
                bound[name] = default
        outputs = self.value(result if isinstance(result, (list, tuple)) else (result,))
        return Op(
            str(func), bound, _flat(outputs), span, module, phase, index, stack,
            _tags(func), torch.is_grad_enabled(), assumed, precision_of(func),
        )  # fmt: skip


def _flat(values: tuple[Any, ...]) -> tuple[Any, ...]:
    out: list[Any] = []
    for v in values:
        if isinstance(v, tuple):
            out += _flat(v)
        else:
            out.append(v)
    return tuple(out)
