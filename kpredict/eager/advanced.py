"""Advanced indexing `x[i, :, mask]`: from the index list to the operands of one loop.

In: the indexed tensor and its indices. Out: the restrided tensor, the index tensors, and what
preparing them launches. Follows aten/src/ATen/native/IndexingUtils.h, TensorAdvancedIndexing.cpp
and TensorAdvancedIndexingUtils.h (2.6.0; the same in main of 2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpredict.eager.copying import compact, copy, expand, to
from kpredict.eager.indexing import nonzero
from kpredict.eager.iterator import broadcast_shape
from kpredict.eager.launches import contiguous
from kpredict.eager.operands import view
from kpredict.eager.shaping import permute
from kpredict.model import Launch, Tensor

MASKS = ("bool", "uint8")
Indices = Sequence[Tensor | None]


@dataclass(frozen=True, slots=True)
class Located:
    """`tensor` with its indexed dims side by side, `indices` broadcast to one shape, one per dim
    (None: the whole dim). `order` is the permutation that brought them together, if any."""

    tensor: Tensor
    indices: tuple[Tensor | None, ...]
    order: tuple[int, ...] | None

    @property
    def given(self) -> tuple[Tensor, ...]:
        return tuple(i for i in self.indices if i is not None)

    @property
    def indexed(self) -> range:
        """The dims that have an index."""
        dims = [d for d, i in enumerate(self.indices) if i is not None]
        return range(dims[0], dims[-1] + 1) if dims else range(0)

    @property
    def result_shape(self) -> tuple[int, ...]:
        at = self.indexed
        shape = self.tensor.shape
        return (*shape[: at.start], *self.given[0].shape, *shape[at.stop :])


def located(
    x: Tensor, indices: Indices, found: list[Launch], *, selected: int | None = None
) -> Located:
    """Masks become integer indices (each `selected` long), all are broadcast together, and when
    `None` separates them the tensor is permuted. What that launches is appended to `found`."""
    plain: list[Tensor | None] = []
    for i in indices:
        if i is None or i.dtype not in MASKS:
            plain.append(i)
        elif i.is_cuda:
            columns, launches = nonzero(i, i.numel // 2 if selected is None else selected)
            plain += columns
            found += launches
        else:
            plain += _on_host(i, i.numel // 2 if selected is None else selected)
    shape = broadcast_shape([i for i in plain if i is not None])
    plain = [None if i is None else expand(i, shape) for i in plain]
    plain += [None] * (x.ndim - len(plain))
    dims = [d for d, i in enumerate(plain) if i is not None]
    if not dims or dims == list(range(dims[0], dims[-1] + 1)):
        return Located(x, tuple(plain), None)
    order = (*dims, *(d for d in range(x.ndim) if d not in dims))
    return Located(permute(x, order), tuple(plain[d] for d in order), order)


def _on_host(mask: Tensor, n: int) -> list[Tensor]:
    """A mask on the CPU: the columns of the row-major (n, dims) array that nonzero gives there."""
    return [Tensor((n,), (mask.ndim,), "int64", "cpu", mask.storage, d) for d in range(mask.ndim)]


def on_device(at: Located, found: list[Launch]) -> Located:
    """Index tensors on the CPU are copied to the GPU, then int32 ones are cast to int64."""
    moved: list[Tensor | None] = []
    for i in at.indices:
        if i is not None and not i.is_cuda:
            there = replace(contiguous(i), device="cuda")
            found += copy(there, i, because="the index is on the CPU")
            i = there
        moved.append(i)
    return replace(at, indices=tuple(_long(i, found) for i in moved))


def _long(i: Tensor | None, found: list[Launch]) -> Tensor | None:
    if i is None or i.dtype != "int32":
        return i
    casted, launches = to(i, "int64")
    found += launches
    return casted


def restrided(at: Located) -> Tensor:
    """The tensor as the loop sees it: indexed dims have the result's sizes and stride 0."""
    x, span = at.tensor, at.indexed
    shape = at.given[0].shape
    return view(
        x,
        (*x.shape[: span.start], *shape, *x.shape[span.stop :]),
        (*x.stride[: span.start], *(0,) * len(shape), *x.stride[span.stop :]),
    )


def loop_indices(at: Located, found: list[Launch]) -> list[Tensor]:
    """The indices with a size-1 dim for every dim that has none. Two or more must have the same
    strides: else each one is copied to be contiguous."""
    span = at.indexed
    before, after = (1,) * span.start, (1,) * (at.tensor.ndim - span.stop)
    ready = list(at.given)
    if len(ready) > 1 and any(i.stride != ready[0].stride for i in ready):
        for n, i in enumerate(ready):
            ready[n], launches = compact(i)
            found += launches
    return [
        view(i, (*before, *i.shape, *after), (*(0,) * len(before), *i.stride, *(0,) * len(after)))
        for i in ready
    ]
