"""Products with vectors: mv, addmv, dot, vdot, addr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from kpredict.eager.copying import compact, copy, expand, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.gemm import blas_call, gemv_name
from kpredict.eager.launches import library
from kpredict.eager.registry import rule
from kpredict.eager.rules.matmul import result_of
from kpredict.eager.shaping import unsqueeze
from kpredict.model import Launch, Op, Target, Tensor

_BLAS = "aten/src/ATen/native/cuda/Blas.cpp, 2.6"
_DOTS = {"float32": "cublasSdot_v2", "float64": "cublasDdot_v2", "complex64": "cublasC",
         "complex128": "cublasZ"}  # fmt: skip


@rule("aten.addmv", "aten.addmv_", source=f"{_BLAS} addmv_out_cuda")
def addmv(op: Op, target: Target) -> Iterable[Launch]:
    """The addend is copied into the result unless beta is 0; then one `gemv`."""
    result, addend, mat, vec = result_of(op), op["self"], op["mat"], op["vec"]
    in_place = op.name == "aten.addmv_.default"
    if mat.numel == 0:
        if op["beta"] == 0:
            yield from zero(result)
        else:
            yield from elementwise([result], [expand(addend, result.shape)])
        return
    if not in_place and op["beta"] != 0:
        yield from copy(result, expand(addend, result.shape), because="starts from the addend")
    yield from _gemv(result, mat, vec, target, adds=op["beta"] != 0)


@rule("aten.mv", source=f"{_BLAS} addmv_out_cuda, which mv calls with beta 0")
def mv(op: Op, target: Target) -> Iterable[Launch]:
    """One `gemv`, a GEMM for half types. A matrix without a stride of 1 and a broadcast vector are
    copied before."""
    result, mat = result_of(op), op["self"]
    return _gemv(result, mat, op["vec"], target) if mat.numel else zero(result)


def _gemv(
    result: Tensor, mat: Tensor, vec: Tensor, target: Target, *, adds: bool = False
) -> Iterator[Launch]:
    if result.numel == 0:
        return
    if vec.stride[0] == 0:
        vec, before = compact(vec)
        yield from before
    rows, columns = mat.shape
    by_column = mat.stride[0] == 1 and mat.stride[1] >= max(1, rows)
    by_row = mat.stride[1] == 1 and mat.stride[0] >= max(1, columns)
    if not by_column and not by_row:
        mat, before = compact(mat)
        yield from before
    yield blas_call(
        gemv_name(mat.dtype), rows, 1, columns, [mat, vec, *([result] if adds else [])], [result],
        target, dtype=mat.dtype,
    )  # fmt: skip


@rule("aten.dot", "aten.vdot", source=f"{_BLAS} dot_cuda, vdot_cuda")
def dot(op: Op, target: Target) -> Iterable[Launch]:
    """One cuBLAS call: of complex vectors `dotu`, or `dotc` where one is conjugated."""
    x, other = op.inputs[:2]
    name = _DOTS.get(x.dtype, "cublasDotEx")
    if x.is_complex:
        conjugated = (x.lazy != other.lazy) != (op.name == "aten.vdot.default")
        name += "dotc_v2" if conjugated else "dotu_v2"
    yield library(
        name, [x, other], [op.out], lo=1, hi=2, expected=2 if x.numel > 1 else 1,
        because="partial sums of the blocks, then their sum", flops=2 * x.numel,
    )  # fmt: skip


@rule("aten.addr", source="aten/src/ATen/native/LinearAlgebra.cpp build_addr_iter, 2.6")
def addr(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise pass over the addend and both vectors."""
    result, rows, columns = result_of(op), op["vec1"], op["vec2"]
    reads = [] if op["beta"] == 0 else [expand(op["self"], result.shape)]
    reads += [expand(unsqueeze(rows, 1), result.shape), expand(unsqueeze(columns, 0), result.shape)]
    return elementwise([result], reads) if prod(result.shape) else []
