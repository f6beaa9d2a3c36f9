"""Cumulative ops: one scan kernel along a dim, or CUB's scan of a vector.

Read: aten/src/ATen/native/ReduceOps.cpp, cuda/ScanKernels.cpp (2.6.0), cuda/ScanUtils.cuh
(2.13.0 headers). Which kernel: a tensor that is all one row goes to CUB (two kernels), the last
dim to an inner scan, any other dim to an outer one; with indices there is no CUB variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from kpredict.eager import cub
from kpredict.eager.copying import compact, copy, fill, to
from kpredict.eager.launches import called, contiguous, kernel
from kpredict.eager.registry import rule
from kpredict.eager.shaping import wrap
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_THREADS = 512
_MAX_GRID_X = 2**31 - 1
_MAX_GRID_Y = 65535


@rule(
    "aten.cumsum", "aten.cumprod",
    source="native/ReduceOps.cpp impl_func_cum_ops, cuda/ScanKernels.cpp; 2.6.0",
)  # fmt: skip
def cumsum(op: Op, target: Target) -> Iterable[Launch]:
    """Integers are cast to int64 first; the input is made contiguous; then one scan: CUB's two
    kernels when the dim holds all elements, else an inner or outer scan kernel."""
    x: Tensor = op["self"]
    out = op.out
    if x.ndim == 0:
        yield from copy(out, x)
        return
    if x.numel == 0:
        return
    x, casts = to(x, out.dtype)
    yield from casts
    yield from scan_dim([out], x, op["dim"])


@rule(
    "aten.logcumsumexp", "aten._logcumsumexp",
    source="native/cuda/ScanKernels.cpp _logcumsumexp_out_cuda; 2.6.0",
)  # fmt: skip
def logcumsumexp(op: Op, target: Target) -> Iterable[Launch]:
    """One scan as for cumsum, with log-add-exp as its operator."""
    x: Tensor = op["self"]
    if x.ndim == 0:
        return copy(op.out, x)
    if x.numel == 0:
        return ()
    return called("aten._logcumsumexp.default", scan_dim([op.out], x, op["dim"]))


@rule(
    "aten.cummax", "aten.cummin",
    source="native/ReduceOps.cpp cummax_out, cuda/ScanUtils.cuh scan_dim_with_indices; 2.6.0",
)  # fmt: skip
def cummax(op: Op, target: Target) -> Iterable[Launch]:
    """Values and indices from one scan kernel, after making the input contiguous."""
    x: Tensor = op["self"]
    values, indices = op.outputs
    if x.ndim == 0:
        return [*copy(values, x), *fill(indices)]
    if x.numel == 0:
        return ()
    helper = f"{op.name.split('.')[1]}_helper"
    return called(f"aten._{helper}.default", scan_dim([values, indices], x, op["dim"]))


@rule(
    "aten._cummax_helper", "aten._cummin_helper",
    source="native/cuda/ScanKernels.cpp cummax_helper_cuda; 2.6.0",
)  # fmt: skip
def cummax_helper(op: Op, target: Target) -> Iterable[Launch]:
    """The scan of cummax, into arrays given."""
    return scan_dim([op["values"], op["indices"]], op["self"], op["dim"])


def scan_dim(outs: Sequence[Tensor], x: Tensor, dim: int) -> Iterator[Launch]:
    """Scan of non-empty `x` along `dim` into one output, or two with indices (scan_dim,
    scan_dim_with_indices). Outputs that are not contiguous are written through copies."""
    dim = wrap(dim, x.ndim)
    results = [t if t.is_contiguous else contiguous(t) for t in outs]
    x, copies = compact(x)
    yield from copies
    row = x.shape[dim]
    suffix = "_with_indices" if len(outs) > 1 else ""
    if row == x.numel and not suffix:
        yield from cub.scan(x, results[0])
    elif dim == x.ndim - 1:
        grid, block = _inner(x.numel // row, row)
        yield kernel(
            f"tensor_kernel_scan_innermost_dim{suffix}", [x], results, grid=grid, block=block,
            because="scans rows that lie dense",
        )  # fmt: skip
    else:
        grid, block = _outer(prod(x.shape[:dim]), prod(x.shape[dim + 1 :]))
        yield kernel(
            f"tensor_kernel_scan_outer_dim{suffix}", [x], results, grid=grid, block=block,
            because="one thread walks each column",
        )  # fmt: skip
    for out, result in zip(outs, results, strict=True):
        if result is not out:
            yield from copy(out, result)


def _inner(rows: int, row: int) -> tuple[Dim3, Dim3]:
    """512 threads, shared between x and y in about the ratio of row size to rows."""
    ratio = (row - 1).bit_length() - (rows - 1).bit_length()
    half = (9 + ratio) % 2**32 // 2  # unsigned arithmetic in the source
    x = 1 << min(max(4, half), 9)
    y = _THREADS // x
    return (min(_MAX_GRID_X, -(-rows // y)), 1, 1), (x, y, 1)


def _outer(outer: int, inner: int) -> tuple[Dim3, Dim3]:
    x = min(_THREADS, inner)
    return (min(_MAX_GRID_Y, outer), min(_MAX_GRID_Y, -(-inner // x)), 1), (x, 1, 1)
