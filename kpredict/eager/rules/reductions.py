"""Reductions: one pass of the reduction loop, after the casts and copies its host code makes.

Sums, means, products, extremes with and without indices, any/all, count_nonzero. Read:
aten/src/ATen/native/ReduceOps.cpp, ReduceAllOps.cpp, TensorCompare.cpp and cuda/Reduce*.cu of
release 2.6.0; kernel templates as torch 2.13.0 instantiates them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.copying import compact, copy, fill, like
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import called
from kpredict.eager.promoting import category
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.eager.summing import (
    SUM,
    as_result,
    extreme,
    flattened,
    reduce_or_fill,
    sum_to,
    sum_vector,
    truth_of,
)
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten.sum", source="native/ReduceOps.cpp sum_out, cuda/ReduceSumProdKernel.cu; 2.6.0, 2.13.0")
def sum_(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction kernel. Integers and bools are cast to int64 by a copy first; half types are
    summed in float in the same kernel. 16-bit inputs load vectors of 8 (2.13), others of 4."""
    return sum_to(op.out, op["self"], op.get("dim"), target)


@rule("aten.nansum", source="native/ReduceOps.cpp nansum_out; 2.6.0")
def nansum(op: Op, target: Target) -> Iterable[Launch]:
    """As sum, with vectors of 4; integers have no NaN and take sum's way; complex is jiterated."""
    out, x = op.out, op["self"]
    if category(x.dtype) < 2:
        yield from sum_to(out, x, op["dim"], target)
        return
    x, casts = as_result(x, out)
    yield from casts
    kernel = "reduction_nansum_kernel" if x.is_complex else "reduce_kernel"
    yield from reduce_or_fill([out], x, op["dim"], target, kernel=kernel, because="sums but NaN")


@rule("aten.mean", source="native/ReduceOps.cpp mean_out, cuda/ReduceMomentKernel.cu; 2.6.0")
def mean(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction kernel that scales as it stores; casts as sum does."""
    x, casts = as_result(op["self"], op.out)
    yield from casts
    yield from reduce_or_fill(
        [op.out], x, op.get("dim"), target, vector=sum_vector(x), because="sums and scales"
    )


@rule("aten.prod", source="native/ReduceOps.cpp impl_func_prod, cuda/ReduceSumProdKernel.cu; 2.6.0")
def prod(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction kernel, compiled at run time (jiterator) for every dtype but bool."""
    x, casts = as_result(op["self"], op.out)
    yield from casts
    kernel = "reduce_kernel" if x.dtype == "bool" else "reduction_prod_kernel"
    yield from reduce_or_fill(
        [op.out], x, op.get("dim"), target, kernel=kernel, because="multiplies"
    )


@rule("aten.amax", "aten.amin", source="native/ReduceOps.cpp amax_out; 2.6.0")
def amax(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction kernel over any dims; nothing is cast."""
    return extreme(op.out, op["self"], op.get("dim"), target)


@rule(
    "aten.max.default", "aten.min.default", "aten.max.unary_out", "aten.min.unary_out",
    source="native/ReduceAllOps.cpp; 2.6.0",
)  # fmt: skip
def max_all(op: Op, target: Target) -> Iterable[Launch]:
    """All elements at once: a copy when the input is not contiguous, then one reduction."""
    x, copies = compact(op["self"])
    return [*copies, *extreme(op.out, x, None, target)]


@rule(
    "aten.max.dim", "aten.min.dim", "aten.max.dim_max", "aten.min.dim_min",
    source="native/TensorCompare.cpp minmax_out_impl; 2.6.0",
)  # fmt: skip
def max_dim(op: Op, target: Target) -> Iterable[Launch]:
    """Values and indices from one reduction kernel; of a 0-dim tensor a copy and a fill."""
    values, indices = op.outputs
    x: Tensor = op["self"]
    if x.ndim == 0:
        return [*copy(values, x), *fill(indices)]
    return reduce(
        [values, indices], x, op["dim"], target, accumulator=16, because="value and index"
    )


@rule("aten.argmax", "aten.argmin", source="native/ReduceOps.cpp argmax_argmin_impl; 2.6.0")
def argmax(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction; without a dim the input is flattened, which copies it when it has no one
    stride; a dim of size 1 is a fill with 0."""
    x: Tensor = op["self"]
    dim = op["dim"]
    if dim is not None and x.ndim and x.shape[dim] == 1:
        return fill(op.out)
    copies: list[Launch] = []
    if dim is None:
        flat = flattened(x)
        if flat is None:
            x, copies = compact(x)
            flat = flattened(x)
        x = flat or x
        return [*copies, *reduce([_scalar(op.out)], x, None, target, accumulator=16)]
    return reduce([op.out], x, dim, target, accumulator=16, because="index of the extreme")


@rule("aten.aminmax", source="native/ReduceOps.cpp aminmax_out; 2.6.0")
def aminmax(op: Op, target: Target) -> Iterable[Launch]:
    """Both extremes from one reduction; without a dim the input is made contiguous first."""
    x: Tensor = op["self"]
    dim = op["dim"]
    copies: list[Launch] = []
    if dim is None:
        x, copies = compact(x)
    pair = 2 * x.itemsize
    return [*copies, *reduce(op.outputs, x, dim, target, accumulator=pair, because="min and max")]


@rule("aten.any", "aten.all", source="native/ReduceOps.cpp allany_impl; 2.6.0")
def any_all(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction that reads the input as it is; of one element a cast (if not bool) and a
    copy; of none a fill."""
    return truth_of(op.out, op["self"], op.get("dim"), target)


@rule("aten.count_nonzero", source="native/TensorAdvancedIndexing.cpp count_nonzero_cuda; 2.6.0")
def count_nonzero(op: Op, target: Target) -> Iterable[Launch]:
    """`x != 0` unless bool already, then the sum of bools: a cast to int64 and a reduction."""
    x: Tensor = op["self"]
    if x.dtype != "bool":
        mask = like(x, "bool")
        yield from elementwise([mask], [x], because="x != 0", op="aten.ne.Scalar")
        x = mask
    yield from called(SUM, sum_to(op.out, x, op.get("dim"), target))


def _scalar(t: Tensor) -> Tensor:
    return replace(t, shape=(), stride=())
