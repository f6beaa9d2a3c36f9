"""Views and memory formats on metadata: what host code does to a tensor before it launches.

In: a Tensor. Out: a Tensor on the same memory (views), or a fresh one in a format with the copy it
costs. Follows c10/core/TensorImpl.h and MemoryFormat.h (2.13.0 headers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kpredict.eager.copying import compact, copy
from kpredict.eager.iterator import MAX_INT32
from kpredict.eager.launches import contiguous
from kpredict.eager.operands import view
from kpredict.model import Launch, Tensor

CONTIGUOUS, CHANNELS_LAST, CHANNELS_LAST_3D = "contiguous", "channels_last", "channels_last_3d"

_ORDERS = {CHANNELS_LAST: (0, 2, 3, 1), CHANNELS_LAST_3D: (0, 2, 3, 4, 1)}


def suggested_format(t: Tensor) -> str:
    """`t.suggest_memory_format()`: channels last when the strides of a 4-D or 5-D tensor ascend in
    that order; whatever is ambiguous (one channel, 1x1 planes) counts as contiguous."""
    for name, order in _ORDERS.items():
        if t.ndim == len(order) and _strides_like(t, order):
            return name
    return CONTIGUOUS


def _strides_like(t: Tensor, order: tuple[int, ...]) -> bool:
    channels = t.stride[1]
    if channels == 0:
        return False
    least = 0
    for d in reversed(order):
        if t.shape[d] == 0 or t.stride[d] < least or (d == 0 and least == channels):
            return False
        least = t.stride[d] * max(t.shape[d], 1)
    return True


def is_dense_in(t: Tensor, memory_format: str) -> bool:
    """`t.is_contiguous(memory_format)`."""
    if memory_format == CONTIGUOUS:
        return t.is_contiguous
    order = _ORDERS[memory_format]
    return t.ndim == len(order) and t.is_contiguous_in(order)


def fresh(shape: tuple[int, ...], dtype: str, memory_format: str = CONTIGUOUS) -> Tensor:
    """A new dense array on the GPU."""
    made = contiguous(Tensor((), (), dtype), shape=shape)
    if memory_format == CONTIGUOUS:
        return made
    strides, step = [0] * len(shape), 1
    for d in reversed(_ORDERS[memory_format]):
        strides[d] = step
        step *= max(shape[d], 1)
    return replace(made, stride=tuple(strides))


def formatted(t: Tensor, memory_format: str) -> tuple[Tensor, list[Launch]]:
    """`t.contiguous(memory_format)`: itself, or a copy."""
    if memory_format == CONTIGUOUS:
        return compact(t)
    if is_dense_in(t, memory_format):
        return t, []
    made = fresh(t.shape, t.dtype, memory_format)
    return made, copy(made, t, because=f"the kernel wants it {memory_format.replace('_', ' ')}")


def fits_32bit(*tensors: Tensor) -> bool:
    """Element count and offsets of each are below 2^31 - 1 (canUse32BitIndexMath)."""
    for t in tensors:
        reach = sum((n - 1) * st for n, st in zip(t.shape, t.stride, strict=True))
        if t.numel >= MAX_INT32 or (t.numel > 0 and reach >= MAX_INT32):
            return False
    return True


def unsqueeze(t: Tensor, dim: int) -> Tensor:
    """`t.unsqueeze(dim)`, dim counted from 0."""
    stride = t.shape[dim] * t.stride[dim] if dim < t.ndim else 1
    return view(t, (*t.shape[:dim], 1, *t.shape[dim:]), (*t.stride[:dim], stride, *t.stride[dim:]))


def squeeze(t: Tensor, dim: int) -> Tensor:
    """`t.squeeze(dim)`: without that dim, which has size 1."""
    return view(t, (*t.shape[:dim], *t.shape[dim + 1 :]), (*t.stride[:dim], *t.stride[dim + 1 :]))


def permute(t: Tensor, dims: Sequence[int]) -> Tensor:
    """`t.permute(dims)`."""
    return view(t, [t.shape[d] for d in dims], [t.stride[d] for d in dims])


def flat(t: Tensor) -> Tensor:
    """`t.view(-1)` of a contiguous tensor."""
    return view(t, (t.numel,), (1,))


def reshape(t: Tensor, shape: Sequence[int]) -> tuple[Tensor, list[Launch]]:
    """`t.reshape(shape)`: a view where the strides allow, else one of a contiguous copy."""
    stride = view_strides(t, shape)
    if stride is not None:
        return view(t, shape, stride), []
    made, copies = compact(t)
    return reshape(made, shape)[0], copies


def view_strides(t: Tensor, shape: Sequence[int]) -> list[int] | None:
    """Strides of `t.view(shape)` (computeStride in ATen/TensorUtils.cpp): each run of dims that are
    one in memory is divided into new dims; None where a new dim would cross two runs."""
    if t.numel == 0:
        return list(contiguous(t, shape=tuple(shape)).stride)
    stride: list[int] = []
    at, run, base = len(shape) - 1, 1, t.stride[-1] if t.ndim else 1
    for d in range(t.ndim - 1, -1, -1):
        run *= t.shape[d]
        if d and (t.shape[d - 1] == 1 or t.stride[d - 1] == run * base):
            continue
        made = 1
        while at >= 0 and (made < run or shape[at] == 1):
            stride.append(made * base)
            made *= shape[at]
            at -= 1
        if made != run:
            return None
        if d:
            run, base = 1, t.stride[d - 1]
    stride += [1] * (at + 1)
    return stride[::-1]


def at_least_1d(t: Tensor) -> Tensor:
    """A 0-dim tensor as a vector of one element."""
    return t if t.ndim else view(t, (1,), (1,))


def wrap(dim: int, ndim: int) -> int:
    """A dim counted from the front; of a 0-dim tensor, 0."""
    return dim % ndim if ndim else 0
