"""TensorIterator, as far as launches depend on it: shape, order of dims, coalescing, 32-bit splits.

In: output and input Tensors. Out: what the CUDA loops ask of an iterator. Follows
aten/src/ATen/TensorIterator.cpp (compute_shape, reorder_dimensions, coalesce_dimensions,
can_use_32bit_indexing, split).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kpredict.model import Tensor

MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor seen through the iterator: byte strides per iterator dim, fastest dim first."""

    strides: tuple[int, ...]
    dtype: str
    itemsize: int
    address: int  # bytes from a 512-byte aligned allocation, for vectorization
    is_output: bool


@dataclass(frozen=True, slots=True)
class Iterator:
    """`shape` is in elements, fastest dim first, after reordering and coalescing."""

    shape: tuple[int, ...]
    operands: tuple[Operand, ...]
    reduction: bool = False

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """One dim, every operand dense along it (TensorIteratorBase::is_contiguous)."""
        if self.numel == 1:
            return True
        return len(self.shape) == 1 and all(o.strides[0] == o.itemsize for o in self.operands)

    @property
    def is_32bit(self) -> bool:
        """Element count and every byte offset fit 31 bits (can_use_32bit_indexing)."""
        if self.numel > MAX_INT32:
            return False
        return all(
            1 + sum((n - 1) * st for n, st in zip(self.shape, o.strides, strict=True)) <= MAX_INT32
            for o in self.operands
        )

    def pieces(self) -> list[Iterator]:
        """Itself, or the halves it is split into until each can use 32-bit indexing."""
        if self.is_32bit:
            return [self]
        first, second = self._split()
        return first.pieces() + second.pieces()

    def _split(self) -> tuple[Iterator, Iterator]:
        dim = self._dim_to_split()
        size = self.shape[dim]
        head = size // 2
        return self._narrow(dim, 0, head), self._narrow(dim, head, size - head)

    def _dim_to_split(self) -> int:
        best, extent = len(self.shape) - 1, -1
        for dim in range(len(self.shape) - 1, -1, -1):
            if self.shape[dim] == 0:
                continue
            for o in self.operands:
                reach = (self.shape[dim] - 1) * abs(o.strides[dim])
                if reach > extent:
                    best, extent = dim, reach
        return best

    def _narrow(self, dim: int, start: int, size: int) -> Iterator:
        shape = tuple(size if d == dim else n for d, n in enumerate(self.shape))
        operands = tuple(
            replace(o, address=o.address + start * o.strides[dim]) for o in self.operands
        )
        if size > 1 or self.reduction:
            return Iterator(shape, operands, self.reduction)
        sizes, strides = _coalesce(list(shape), [list(o.strides) for o in operands])
        return Iterator(
            tuple(sizes),
            tuple(replace(o, strides=tuple(s)) for o, s in zip(operands, strides, strict=True)),
        )


def broadcast_shape(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    ndim = max((t.ndim for t in tensors), default=0)
    shape = [1] * ndim
    for t in tensors:
        for i, size in enumerate(t.shape):
            at = ndim - t.ndim + i
            if size != 1:
                shape[at] = size
    return tuple(shape)


def iterate(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    shape: tuple[int, ...] | None = None,
    outputs_allocated: bool = True,
    reduction: bool = False,
) -> Iterator:
    """Build the iterator over `outputs` and `inputs` (outputs first, as PyTorch orders operands).

    `shape` overrides the broadcast shape (reductions). The output's strides are taken as they are.
    In a `reduction` the dims along which the output stands still (stride 0) come first.
    """
    tensors = [*outputs, *inputs]
    full = broadcast_shape(tensors) if shape is None else shape
    if not reduction and all(t.shape == full and t.is_contiguous for t in tensors):
        return _in_one_dim(tensors, len(outputs))  # as fast_set_up does
    ndim = len(full)
    strides = [_byte_strides(t, full) for t in tensors]
    perm = _order(full, strides, len(outputs) * reduction) if ndim > 1 else tuple(range(ndim))
    sizes = [full[d] for d in perm]
    ordered = [[s[d] for d in perm] for s in strides]
    sizes, ordered = _coalesce(sizes, ordered)
    operands = tuple(
        Operand(tuple(s), t.dtype, t.itemsize, t.offset * t.itemsize, i < len(outputs))
        for i, (t, s) in enumerate(zip(tensors, ordered, strict=True))
    )
    return Iterator(tuple(sizes), operands, reduction)


def _in_one_dim(tensors: Sequence[Tensor], n_out: int) -> Iterator:
    operands = tuple(
        Operand((t.itemsize,), t.dtype, t.itemsize, t.offset * t.itemsize, i < n_out)
        for i, t in enumerate(tensors)
    )
    return Iterator((tensors[0].numel,), operands)


def _byte_strides(t: Tensor, full: tuple[int, ...]) -> list[int]:
    pad = len(full) - t.ndim
    out = [0] * len(full)
    for i, (size, stride) in enumerate(zip(t.shape, t.stride, strict=True)):
        # a size-1 dim under a larger iterator dim is broadcast; under size 1 its stride is moot
        out[pad + i] = 0 if size == 1 and full[pad + i] != 1 else stride * t.itemsize
    return out


def fastest_first(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    """Dims of one array from the smallest stride to the largest, as an iterator would go."""
    return _order(shape, [list(stride)], 0) if len(shape) > 1 else tuple(range(len(shape)))


def _order(full: tuple[int, ...], strides: list[list[int]], n_reduced: int) -> tuple[int, ...]:
    """Dims sorted by ascending stride, ties kept (TensorIterator reorder_dimensions).

    `n_reduced` is how many of the first operands are outputs of a reduction.
    """
    ndim = len(full)
    perm = list(range(ndim - 1, -1, -1))

    def should_swap(a: int, b: int) -> int:
        for arg, s in enumerate(strides):
            sa, sb = s[a], s[b]
            if arg < n_reduced and (sa == 0) != (sb == 0):
                return 1 if sb == 0 else -1
            if sa == 0 or sb == 0:
                continue
            if sa < sb:
                return -1
            if sa > sb:
                return 1
            if full[a] > full[b]:
                return 1
        return 0

    for i in range(1, ndim):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = should_swap(perm[j], perm[at])
            if verdict > 0:
                perm[j], perm[at] = perm[at], perm[j]
                at = j
            elif verdict < 0:
                break
    return tuple(perm)


def _coalesce(sizes: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    if len(sizes) <= 1:
        return sizes, strides
    prev = 0

    def mergeable(a: int, b: int) -> bool:
        if sizes[a] == 1 or sizes[b] == 1:
            return True
        return all(sizes[a] * s[a] == s[b] for s in strides)

    for dim in range(1, len(sizes)):
        if mergeable(prev, dim):
            if sizes[prev] == 1:
                for s in strides:
                    s[prev] = s[dim]
            sizes[prev] *= sizes[dim]
        else:
            prev += 1
            if prev != dim:
                for s in strides:
                    s[prev] = s[dim]
                sizes[prev] = sizes[dim]
    return sizes[: prev + 1], [s[: prev + 1] for s in strides]


def output_strides(inputs: Sequence[Tensor]) -> tuple[int, ...]:
    """Strides of the result an iterator allocates for `inputs`, in elements.

    Inputs of one shape that are all row-major, all channels-last or all dense with the same strides
    hand them on (fast_set_up); else the dims keep the order the iterator visits them in.
    """
    full = broadcast_shape(inputs)
    if all(t.shape == full for t in inputs):
        if all(t.is_contiguous for t in inputs):
            return _packed(full, range(len(full) - 1, -1, -1))
        if len(full) == 4 and all(t.is_channels_last for t in inputs):
            return _packed(full, (1, 3, 2, 0))
        if all(t.is_dense and t.stride == inputs[0].stride for t in inputs):
            return inputs[0].stride
    return _packed(full, _order(full, [_byte_strides(t, full) for t in inputs], 0))


def _packed(shape: tuple[int, ...], fastest_first: Iterable[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for dim in fastest_first:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)
