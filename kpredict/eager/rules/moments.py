"""Norms of vectors, variances and logsumexp: one reduction, or a composite in host code.

Read: aten/src/ATen/native/ReduceOps.cpp, LinearAlgebra.cpp and cuda/Reduce{Norm,Moment}Kernel.cu of
release 2.6.0; the same in 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kpredict.eager.copying import to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import called, contiguous
from kpredict.eager.promoting import real_part
from kpredict.eager.reducing import reduced_dims
from kpredict.eager.registry import rule
from kpredict.eager.rules.unary import size_of
from kpredict.eager.summing import (
    HALVES,
    Dims,
    as_result,
    log_sum_exp,
    part_of,
    reduce_or_fill,
    shaped,
)
from kpredict.model import ITEMSIZE, Launch, Op, Target, Tensor


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
        flat = shaped(out, x)
        if _order(op) == 0:
            found = elementwise([flat], [x], result="bool", op="aten.ne.Scalar_out")
        else:
            found = called("aten.abs.out", size_of(flat, x))
        return [*casts, *found]
    x, casts = as_result(x, out, keep_complex=True)
    size = ITEMSIZE["float32"] if x.dtype in HALVES else ITEMSIZE[real_part(x.dtype)]
    return [*casts, *reduce_or_fill([out], x, dims, target, accumulator=size, because="norm")]


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


def _welford(outs: Sequence[Tensor], x: Tensor, dims: Dims, target: Target) -> Iterator[Launch]:
    """make_reduction casts unless the dtypes agree or a half type goes to float."""
    if x.dtype != outs[0].dtype and not (x.dtype in HALVES and outs[0].dtype == "float32"):
        x, casts = to(x, outs[0].dtype)
        yield from casts
    size = 32 if x.dtype == "float64" else 16
    yield from reduce_or_fill(
        outs, x, dims, target, per_thread=2, accumulator=size, because="Welford's mean and variance"
    )


@rule(
    "aten.logsumexp", "aten.special_logsumexp",
    source="native/ReduceOps.cpp logsumexp_out_impl; 2.6.0",
)  # fmt: skip
def logsumexp(op: Op, target: Target) -> Iterable[Launch]:
    """A composite in host code: amax, mask out infinite maxima (abs, eq, masked_fill), subtract,
    exp in place, sum, log in place, add the maxima back: 9 kernels. Integers are cast first."""
    x, casts = to(op["self"], op.out.dtype)
    return [*casts, *log_sum_exp(op.out, x, op["dim"], target)]
