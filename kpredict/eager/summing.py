"""Sums, extremes, any and all as host code calls them: casts and fills around the reduction loop.

In: an array, dims, and where the result goes. Out: launches. Follows the set-up of reductions in
aten/src/ATen/native/ReduceOps.cpp (2.6.0), with the vector widths of 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kpredict.eager.copying import copy, fill, like, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import called, contiguous
from kpredict.eager.promoting import real_part
from kpredict.eager.reducing import reduce, reduced_shape, widest
from kpredict.model import Launch, Target, Tensor

HALVES = ("float16", "bfloat16")
SUM = "aten.sum.dim_IntList"
Dims = Sequence[int] | int | None


def sum_to(out: Tensor, x: Tensor, dims: Dims, target: Target) -> Iterator[Launch]:
    """`torch.sum_out`: casts `x` to the output's dtype first, unless a half type sums to float."""
    x, casts = as_result(x, out)
    yield from casts
    if x.numel == 0:
        yield from fill(out)
        return
    kernel = "reduction_sum_kernel" if x.dtype == "complex32" else "reduce_kernel"
    yield from reduce(
        [out], x, dims, target, kernel=kernel, vector=sum_vector(x), accumulator=widest(x.dtype),
        because="sums",
    )  # fmt: skip


def extreme(out: Tensor, x: Tensor, dims: Dims, target: Target) -> list[Launch]:
    """`amax`, `amin`, and `max()`/`min()` of all elements: nothing is cast."""
    return reduce([out], x, dims, target, accumulator=x.itemsize, because="keeps the extreme")


def truth_of(out: Tensor, x: Tensor, dims: Dims, target: Target) -> list[Launch]:
    """`any` or `all` of `x` over `dims`."""
    if x.numel == 1:
        as_bool, casts = to(x, "bool")
        return [*casts, *copy(replace(out, shape=x.shape, stride=x.stride), as_bool)]
    if x.numel == 0:
        return fill(out)
    return reduce([out], x, dims, target, accumulator=x.itemsize, because="any or all")


def log_sum_exp(out: Tensor, x: Tensor, dims: Dims, target: Target) -> Iterator[Launch]:
    """`torch.logsumexp` of floating or complex `x` over `dims`."""
    jit = x.is_complex
    log = "log_kernel" * jit
    if x.numel == 0:
        yield from fill(out)
        yield from elementwise([out], [out], jit=log, op="aten.log_.default")
        return
    real = part_of(x, 0) if x.is_complex else x
    maxes = contiguous(real, shape=reduced_shape(x.shape, dims, True))
    yield from called("aten.amax.default", extreme(maxes, real, dims, target))
    size, mask = contiguous(maxes), contiguous(maxes, dtype="bool")
    yield from elementwise([size], [maxes], because="abs", op="aten.abs.default")
    yield from elementwise([mask], [size], because="is infinite", op="aten.eq.Scalar")
    yield from elementwise(
        [maxes], [maxes, mask], compute=[maxes.dtype, "bool"], because="infinite maxima become 0",
        op="aten.masked_fill_.Scalar",
    )  # fmt: skip
    shifted = like(x)
    yield from elementwise([shifted], [x, maxes], because="x - max", op="aten.sub.Tensor")
    yield from elementwise(
        [shifted], [shifted], jit="exp_kernel" * jit, because="in place", op="aten.exp_.default"
    )
    yield from called(SUM, sum_to(out, shifted, dims, target))
    yield from elementwise([out], [out], jit=log, because="in place", op="aten.log_.default")
    yield from elementwise(
        [out], [out, shaped(maxes, out)], because="adds the maxima", op="aten.add_.Tensor"
    )


def reduce_or_fill(
    outs: Sequence[Tensor], x: Tensor, dims: Dims, target: Target, *, kernel: str = "reduce_kernel",
    per_thread: int = 4, vector: int | None = None, accumulator: int | None = None,
    because: str = "",
) -> Iterator[Launch]:  # fmt: skip
    """The reduction, or of an empty input a fill of each output."""
    if x.numel == 0:
        for out in outs:
            yield from fill(out)
        return
    yield from reduce(
        outs, x, dims, target, kernel=kernel, per_thread=per_thread, vector=vector,
        accumulator=accumulator or widest(x.dtype), because=because,
    )  # fmt: skip


def as_result(x: Tensor, out: Tensor, keep_complex: bool = False) -> tuple[Tensor, list[Launch]]:
    """`x` in the dtype the reduction computes in (make_reduction_from_out_ty)."""
    if x.dtype in HALVES and out.dtype == "float32":
        return x, []
    if keep_complex and x.is_complex:
        return to(x, {"float16": "complex32", "float64": "complex128"}.get(out.dtype, "complex64"))
    return to(x, out.dtype)


def sum_vector(x: Tensor) -> int:
    """2.13 loads 16-bit numbers in vectors of 8 where it sums."""
    return 8 if x.dtype in HALVES else 4


def flattened(x: Tensor) -> Tensor | None:
    """`x.view(-1)`, or None where only a copy could be flat."""
    if x.numel == 0:
        return replace(x, shape=(0,), stride=(1,))
    step, stride = None, 1
    for size, st in reversed(list(zip(x.shape, x.stride, strict=True))):
        if size == 1:
            continue
        if step is None:
            stride = st
        elif st != step:
            return None
        step = st * size
    return replace(x, shape=(x.numel,), stride=(stride,))


def part_of(x: Tensor, which: int) -> Tensor:
    """`x.real` (0) or `x.imag` (1): a strided view of a complex array."""
    return replace(
        x, dtype=real_part(x.dtype), stride=tuple(2 * s for s in x.stride),
        offset=2 * x.offset + which,
    )  # fmt: skip


def shaped(t: Tensor, like: Tensor) -> Tensor:
    """A view with the shape of `like`, which differs in dims of size 1 only."""
    return replace(contiguous(t, shape=like.shape), storage=t.storage, offset=t.offset)
