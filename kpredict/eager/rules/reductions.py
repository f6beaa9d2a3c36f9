"""Reductions: one pass of the reduction loop, after the casts and copies its host code makes.

Sums, means, products, extremes with and without indices, any/all, norms of vectors, variances,
logsumexp and count_nonzero. Read: aten/src/ATen/native/ReduceOps.cpp, ReduceAllOps.cpp,
TensorCompare.cpp, LinearAlgebra.cpp and cuda/Reduce*.cu of release 2.6.0; kernel templates as
torch 2.13.0 instantiates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kpredict.eager.copying import compact, copy, fill, like, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import called, contiguous
from kpredict.eager.promoting import category, real_part
from kpredict.eager.reducing import reduce, reduced_dims, reduced_shape, widest
from kpredict.eager.registry import rule
from kpredict.eager.rules.unary import size_of
from kpredict.model import ITEMSIZE, Launch, Op, Target, Tensor

HALVES = ("float16", "bfloat16")
_SUM = "aten.sum.dim_IntList"
Dims = Sequence[int] | int | None


def sum_to(out: Tensor, x: Tensor, dims: Dims, target: Target) -> Iterator[Launch]:
    """`torch.sum_out`: casts `x` to the output's dtype first, unless a half type sums to float."""
    x, casts = _as_result(x, out)
    yield from casts
    if x.numel == 0:
        yield from fill(out)
        return
    kernel = "reduction_sum_kernel" if x.dtype == "complex32" else "reduce_kernel"
    yield from reduce(
        [out], x, dims, target, kernel=kernel, vector=_wide(x), accumulator=widest(x.dtype),
        because="sums",
    )  # fmt: skip


def extreme(out: Tensor, x: Tensor, dims: Dims, target: Target) -> list[Launch]:
    """`amax`, `amin`, and `max()`/`min()` of all elements: nothing is cast."""
    return reduce([out], x, dims, target, accumulator=x.itemsize, because="keeps the extreme")


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
    x, casts = _as_result(x, out)
    yield from casts
    kernel = "reduction_nansum_kernel" if x.is_complex else "reduce_kernel"
    yield from _filled_or([out], x, op["dim"], target, kernel=kernel, because="sums but NaN")


@rule("aten.mean", source="native/ReduceOps.cpp mean_out, cuda/ReduceMomentKernel.cu; 2.6.0")
def mean(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction kernel that scales as it stores; casts as sum does."""
    x, casts = _as_result(op["self"], op.out)
    yield from casts
    yield from _filled_or(
        [op.out], x, op.get("dim"), target, vector=_wide(x), because="sums and scales"
    )


@rule("aten.prod", source="native/ReduceOps.cpp impl_func_prod, cuda/ReduceSumProdKernel.cu; 2.6.0")
def prod(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction kernel, compiled at run time (jiterator) for every dtype but bool."""
    x, casts = _as_result(op["self"], op.out)
    yield from casts
    kernel = "reduce_kernel" if x.dtype == "bool" else "reduction_prod_kernel"
    yield from _filled_or([op.out], x, op.get("dim"), target, kernel=kernel, because="multiplies")


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


def truth_of(out: Tensor, x: Tensor, dims: Dims, target: Target) -> list[Launch]:
    """`any` or `all` of `x` over `dims`."""
    if x.numel == 1:
        as_bool, casts = to(x, "bool")
        return [*casts, *copy(replace(out, shape=x.shape, stride=x.stride), as_bool)]
    if x.numel == 0:
        return fill(out)
    return reduce([out], x, dims, target, accumulator=x.itemsize, because="any or all")


@rule("aten.count_nonzero", source="native/TensorAdvancedIndexing.cpp count_nonzero_cuda; 2.6.0")
def count_nonzero(op: Op, target: Target) -> Iterable[Launch]:
    """`x != 0` unless bool already, then the sum of bools: a cast to int64 and a reduction."""
    x: Tensor = op["self"]
    if x.dtype != "bool":
        mask = like(x, "bool")
        yield from elementwise([mask], [x], because="x != 0", op="aten.ne.Scalar")
        x = mask
    yield from called(_SUM, sum_to(op.out, x, op.get("dim"), target))


@rule(
    "aten.linalg_vector_norm", "aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dim_dtype",
    "aten.norm.Scalar", "aten.norm.ScalarOpt_dtype", "aten.norm.out", "aten.norm.dtype_out",
    source="native/LinearAlgebra.cpp linalg_vector_norm_out; 2.6.0",
)  # fmt: skip
def vector_norm(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction for any order. Over dims of size 1 only it is an elementwise abs (or != 0);
    another dtype is cast first, but a half type to float in the kernel."""
    x: Tensor = op["self"]
    out = op.out
    dims = op.get("dim")
    if all(x.shape[d] == 1 for d in reduced_dims(dims, x.ndim)):
        casts: list[Launch] = []
        if op.get("dtype"):
            x, casts = to(x, op["dtype"])
        flat = _shaped(out, x)
        if _order(op) == 0:
            found = elementwise([flat], [x], result="bool", op="aten.ne.Scalar_out")
        else:
            found = called("aten.abs.out", size_of(flat, x))
        return [*casts, *found]
    x, casts = _as_result(x, out, keep_complex=True)
    size = ITEMSIZE["float32"] if x.dtype in HALVES else ITEMSIZE[real_part(x.dtype)]
    return [*casts, *_filled_or([out], x, dims, target, accumulator=size, because="norm")]


def _order(op: Op) -> float:
    """The order of the norm: `ord`, or `p` of the older ops, where None means 2."""
    found = op.get("ord", op.get("p"))
    return 2 if found is None else found


@rule(
    "aten.var", "aten.std", "aten.var_mean", "aten.std_mean",
    source="native/ReduceOps.cpp std_var_out, cuda/ReduceMomentKernel.cu; 2.6.0",
)  # fmt: skip
def variance(op: Op, target: Target) -> Iterable[Launch]:
    """One reduction of Welford states, two values per thread at a time, one or two outputs. A
    complex input is reduced twice, once per part, and the parts are joined elementwise."""
    x: Tensor = op["self"]
    outs: list[Tensor] = [t for t in op.outputs if isinstance(t, Tensor)]
    dims = op.get("dim")
    if not x.is_complex:
        yield from _welford(outs, x, dims, target)
        return
    part = real_part(x.dtype)
    parts = [[contiguous(t, dtype=part) for t in outs] for _ in range(2)]
    for i, results in enumerate(parts):
        yield from _welford(results, part_of(x, i), dims, target)
    both = [parts[0][0], parts[1][0]]
    yield from elementwise([outs[0]], both, because="real plus imaginary", op="aten.add.out")
    if "std" in op.name:
        yield from elementwise([outs[0]], [outs[0]], because="square root", op="aten.sqrt.out")
    if len(outs) > 1:
        means = [parts[0][1], parts[1][1]]
        yield from elementwise([outs[1]], means, result=x.dtype, op="aten.complex.out")


@rule(
    "aten.logsumexp", "aten.special_logsumexp",
    source="native/ReduceOps.cpp logsumexp_out_impl; 2.6.0",
)  # fmt: skip
def logsumexp(op: Op, target: Target) -> Iterable[Launch]:
    """A composite in host code: amax, mask out infinite maxima (abs, eq, masked_fill), subtract,
    exp in place, sum, log in place, add the maxima back: 9 kernels. Integers are cast first."""
    x, casts = to(op["self"], op.out.dtype)
    return [*casts, *log_sum_exp(op.out, x, op["dim"], target)]


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
    yield from called(_SUM, sum_to(out, shifted, dims, target))
    yield from elementwise([out], [out], jit=log, because="in place", op="aten.log_.default")
    yield from elementwise(
        [out], [out, _shaped(maxes, out)], because="adds the maxima", op="aten.add_.Tensor"
    )


def _welford(outs: Sequence[Tensor], x: Tensor, dims: Dims, target: Target) -> Iterator[Launch]:
    """make_reduction casts unless the dtypes agree or a half type goes to float."""
    if x.dtype != outs[0].dtype and not (x.dtype in HALVES and outs[0].dtype == "float32"):
        x, casts = to(x, outs[0].dtype)
        yield from casts
    size = 32 if x.dtype == "float64" else 16
    yield from _filled_or(
        outs, x, dims, target, per_thread=2, accumulator=size, because="Welford's mean and variance"
    )


def _filled_or(
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


def _as_result(x: Tensor, out: Tensor, keep_complex: bool = False) -> tuple[Tensor, list[Launch]]:
    """`x` in the dtype the reduction computes in (make_reduction_from_out_ty)."""
    if x.dtype in HALVES and out.dtype == "float32":
        return x, []
    if keep_complex and x.is_complex:
        return to(x, {"float16": "complex32", "float64": "complex128"}.get(out.dtype, "complex64"))
    return to(x, out.dtype)


def _wide(x: Tensor) -> int:
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


def _scalar(t: Tensor) -> Tensor:
    return replace(t, shape=(), stride=())


def _shaped(t: Tensor, like: Tensor) -> Tensor:
    """A view with the shape of `like`, which differs in dims of size 1 only."""
    return replace(contiguous(t, shape=like.shape), storage=t.storage, offset=t.offset)
