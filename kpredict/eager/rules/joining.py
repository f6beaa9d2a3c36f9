"""cat, stack, block_diag: several arrays into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kpredict.eager.copying import copy, expand, zero
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.eager.shaping import (
    CONTIGUOUS,
    fits_32bit,
    is_dense_in,
    suggested_format,
    unsqueeze,
    wrap,
)
from kpredict.model import Launch, Op, Target, Tensor

BATCH = 128
"""Inputs one kernel takes when all are contiguous; half as many when it needs their strides."""

_MAX_DIMS = 4
_ALIGNMENT = 16


@rule("aten.cat", source="native/cuda/Shape.cu cat_out_cuda, TensorShape.cpp cat; main of 2026")
def cat(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per 128 inputs when all have the output's dtype, 4 dims at most, 32-bit offsets
    and the output's memory format; per 64 when some are strided. Else one copy per input.

    The kernel is `_vectorized` when every row of every array is a multiple of 16 bytes and aligned,
    `_alignedK_contig` when only the addresses are, `_contig` when they are not.
    """
    return join(op.out, op["tensors"], op["dim"])


def join(out: Tensor, tensors: Sequence[Tensor], dim: int) -> list[Launch]:
    """`torch.cat(tensors, dim, out=out)`."""
    if out.numel == 0:
        return []
    dim = wrap(dim, out.ndim)
    kept = [t for t in tensors if t.shape != (0,)]
    memory_format = _format_of(tensors)
    batched = (
        len(tensors) > 1
        and out.ndim <= _MAX_DIMS
        and fits_32bit(out, *tensors)
        and all(t.dtype == out.dtype for t in tensors)
    )
    if (
        batched
        and len(kept) == len(tensors)
        and all(is_dense_in(t, memory_format) for t in (*tensors, out))
    ):
        return list(_batches(out, tensors, dim, memory_format, BATCH, True))
    if batched and memory_format == CONTIGUOUS:
        return list(_batches(out, tensors, dim, memory_format, BATCH // 2, False))
    found: list[Launch] = []
    start = 0
    for t in kept:
        size = t.shape[dim]
        found += copy(narrow(out, dim, start, size), t, because="one copy per input")
        start += size
    return found


def _format_of(tensors: Sequence[Tensor]) -> str:
    """The format all inputs suggest, else contiguous (cat_compute_output_memory_format)."""
    formats = {suggested_format(t) for t in tensors}
    return formats.pop() if len(formats) == 1 else CONTIGUOUS


def _batches(
    out: Tensor, tensors: Sequence[Tensor], dim: int, memory_format: str, size: int, dense: bool
) -> Iterator[Launch]:
    """One launch per `size` inputs; an unaligned input spoils the batches after it too."""
    rows = dense and memory_format == CONTIGUOUS and _is_row_aligned(out, out, dim)
    aligned = True
    for i in range(0, len(tensors), size):
        batch = [t for t in tensors[i : i + size] if t.numel]
        for t in batch:
            rows = rows and _is_row_aligned(t, out, dim) and _is_aligned(t)
            aligned = aligned and _is_aligned(t)
        if not any(t.numel for t in tensors[: i + size]):
            continue
        yield kernel(_variant(out.itemsize, dense, rows, aligned), batch, _share(out, dim, batch))


def _share(out: Tensor, dim: int, batch: Sequence[Tensor]) -> list[Tensor]:
    return [narrow(out, dim, 0, sum(t.shape[dim] for t in batch))] if batch else []


def _is_aligned(t: Tensor) -> bool:
    return t.offset * t.itemsize % _ALIGNMENT == 0


def _is_row_aligned(t: Tensor, out: Tensor, dim: int) -> bool:
    """Everything from `dim` on is a multiple of 16 bytes, as if the strides were contiguous."""
    if t is out and dim == 0:
        return _is_aligned(out)
    n = t.numel if dim == 0 else contiguous(t).stride[dim - 1]
    return n * t.itemsize % _ALIGNMENT == 0


def _variant(itemsize: int, dense: bool, rows: bool, aligned: bool) -> str:
    if rows:
        return "CatArrayBatchedCopy_vectorized"
    if dense and aligned and 2 <= itemsize <= 8:
        return "CatArrayBatchedCopy_alignedK_contig"
    return "CatArrayBatchedCopy_contig" if dense else "CatArrayBatchedCopy"


@rule("aten.stack", "aten._stack", source="native/TensorShape.cpp stack; 2.6.0")
def stack(op: Op, target: Target) -> Iterable[Launch]:
    """A cat: along an inner dim of the inputs as they are, along the last one with a dim added."""
    tensors: Sequence[Tensor] = op["tensors"]
    out = op.out
    dim = op["dim"] % out.ndim
    if dim < tensors[0].ndim:
        shape = list(tensors[0].shape)
        shape[dim] *= len(tensors)
        joined = view(out, shape, contiguous(out, shape=tuple(shape)).stride)
        return join(joined, tensors, dim)
    return join(out, [unsqueeze(t, dim) for t in tensors], dim)


@rule("aten.block_diag", source="native/TensorShape.cpp block_diag; 2.6.0")
def block_diag(op: Op, target: Target) -> Iterator[Launch]:
    """Zeros, then a copy of each input into its block."""
    out = op.out
    yield from zero(out, because="what is off the diagonal")
    row = column = 0
    for t in op["tensors"]:
        rows, columns = (1,) * (2 - t.ndim) + t.shape
        block = narrow(narrow(out, 0, row, rows), 1, column, columns)
        yield from copy(block, expand(t, (rows, columns)), because="one block")
        row, column = row + rows, column + columns
