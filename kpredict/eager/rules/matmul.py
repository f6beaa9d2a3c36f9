"""Matrix products: mm, addmm and its activations, bmm, baddbmm, int8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpredict.eager.copying import copy, expand, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.gemm import (
    LOW_PRECISION,
    as_blas_batch,
    as_blas_matrix,
    batched_name,
    blas_call,
    gemm_name,
    release,
)
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.operands import view
from kpredict.eager.registry import rule
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_BLAS = "aten/src/ATen/native/cuda/Blas.cpp, 2.6 and main of 2026"
_LT_DTYPES = ("float64", "float32", "float16", "bfloat16")


def result_of(op: Op) -> Tensor:
    """Where the op writes: its `out`, or what it returns."""
    out = op.get("out")
    return out if isinstance(out, Tensor) else op.out


def multiply(
    result: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    target: Target,
    *,
    addend: Tensor | None = None,
    name: str = "",
    because: str = "",
) -> Iterator[Launch]:
    """One 2-D product into `result`, after copies of operands cuBLAS cannot take as they are."""
    c, after = as_blas_matrix(result)
    a, before_a = as_blas_matrix(mat1, c.is_contiguous)
    b, before_b = as_blas_matrix(mat2, c.is_contiguous)
    # for a row-major result cuBLAS computes the transposed product: mat2 is prepared first
    yield from after if c is not result else []
    yield from (*before_b, *before_a) if c.is_contiguous else (*before_a, *before_b)
    m, k = mat1.shape
    n = mat2.shape[1]
    reads = [a, b] + ([addend] if addend is not None else [])
    yield blas_call(
        name or gemm_name(mat1.dtype), m, n, k, reads, [c], target, dtype=mat1.dtype,
        because=because,
    )  # fmt: skip
    if c is not result:
        yield from copy(result, c)


@rule("aten.mm", source=_BLAS)
def mm(op: Op, target: Target) -> Iterable[Launch]:
    """One cuBLAS call (`cublasSgemm`, `GemmEx` for half types). An operand of which neither stride
    is 1 is copied before. An empty sum fills the result with 0."""
    result, a, b = result_of(op), op["self"], op["mat2"]
    if result.numel == 0:
        return
    if a.shape[1] == 0:
        yield from zero(result)
        return
    yield from multiply(result, a, b, target)


def fuses_bias(result: Tensor, bias: Tensor, mat1: Tensor, mat2: Tensor, beta: float) -> bool:
    """Whether cublasLt adds the 1-D bias in its epilogue (isInputCompliesAddmmCudaLt)."""
    squeezed = sum(s != 1 for s in bias.shape)
    return (
        beta == 1
        and result.is_contiguous
        and bias.is_contiguous
        and (bias.ndim == 1 or squeezed == 1)
        and bias.ndim > 0
        and bias.shape[-1] == mat2.shape[1]
        and mat1.dtype in _LT_DTYPES
        and min(mat2.shape) > 1
    )


def _adds_in_place_of_copy(
    result: Tensor, bias: Tensor, mat1: Tensor, mat2: Tensor, target: Target
) -> bool:
    """From 2.14 cublasLt reads a half-precision 2-D addend apart from the result: no copy."""
    return (
        release(target) >= (2, 14)
        and mat1.dtype in LOW_PRECISION
        and bias.shape == result.shape
        and bias.is_contiguous
        and min(*mat1.shape, *mat2.shape) > 1
    )


def add_product(op: Op, target: Target, activation: str = "") -> Iterator[Launch]:
    result, bias, a, b = result_of(op), op["self"], op["mat1"], op["mat2"]
    beta = op["beta"]
    in_place = bias.storage == result.storage >= 0 and bias.shape == result.shape
    lt = fuses_bias(result, bias, a, b, beta) or (
        bool(activation)
        and beta == 1
        and bias.ndim == 2
        and result.is_contiguous
        and a.dtype in _LT_DTYPES
        and min(b.shape) > 1
    )
    epilogue = lt and bias.ndim == 1
    apart = not in_place and not lt and _adds_in_place_of_copy(result, bias, a, b, target)
    if result.numel == 0:
        return
    if not in_place and beta != 0 and not epilogue and not apart:
        yield from copy(result, expand(bias, result.shape), because="starts from the addend")
    if a.shape[1] == 0:
        if beta == 0:
            yield from zero(result)
        else:
            yield from elementwise([result], [expand(bias, result.shape)])
        return
    if lt or apart:
        addend = bias if epilogue or apart else result
        why = (
            "cublasLt adds the bias in its epilogue" if epilogue else "cublasLt adds to the result"
        )
        yield from multiply(result, a, b, target, addend=addend, name="cublasLtMatmul", because=why)
        return
    yield from multiply(result, a, b, target, addend=result if beta != 0 else None)
    if activation:
        yield from elementwise([result], [result], because=activation)


@rule("aten.addmm", source=_BLAS)
def addmm(op: Op, target: Target) -> Iterable[Launch]:
    """One cublasLt call with the bias in its epilogue when beta is 1, the bias is 1-D and
    contiguous, the result contiguous, the dtype float and no dim of mat2 is 1. Else the addend is
    copied into the result (a memcpy when it has its shape and layout) and cuBLAS adds onto it."""
    return add_product(op, target)


@rule("aten._addmm_activation", source=_BLAS)
def addmm_activation(op: Op, target: Target) -> Iterable[Launch]:
    """As addmm, with ReLU or GELU in cublasLt's epilogue; else a kernel of its own."""
    return add_product(op, target, "gelu" if op["use_gelu"] else "relu")


def multiply_batch(
    result: Tensor, batch1: Tensor, batch2: Tensor, target: Target, *, adds: bool = False
) -> Iterator[Launch]:
    """A batch of products; a batch of one is a plain GEMM."""
    size, rows, cols = result.shape
    k = batch1.shape[2]
    c, row_major = result, False
    if result.stride[1] == 1 and (cols == 1 or result.stride[2] >= max(1, rows)):
        pass
    elif result.stride[2] == 1 and (rows == 1 or result.stride[1] >= max(1, cols)):
        row_major = True
    else:
        c = contiguous(result)
        yield from copy(c, result)
    m, n = (cols, rows) if row_major else (rows, cols)
    first, second = (batch2, batch1) if row_major else (batch1, batch2)
    x, before_x = as_blas_batch(first, row_major, m, k)
    y, before_y = as_blas_batch(second, row_major, k, n)
    yield from (*before_x, *before_y)
    name = gemm_name(batch1.dtype) if size == 1 else batched_name(batch1.dtype)
    yield blas_call(
        name, rows, cols, k, [y, x] + ([result] if adds else []), [c], target, batch=size,
        dtype=batch1.dtype,
    )  # fmt: skip
    if c is not result:
        yield from copy(result, c)


def _is_outer_product(a: Tensor, b: Tensor) -> bool:
    return a.shape[2] == 1 and b.shape[1] == 1 and a.numel > 0 and b.numel > 0 and not a.is_complex


def _outer_grid(a: Tensor, b: Tensor) -> Dim3:
    batch, m, _ = a.shape
    n = b.shape[2]
    tall = _power_of_2(m) if m <= 32 else 32 if m <= 96 else 64 if m <= 192 else 128
    wide = min(_power_of_2(n), 128)
    return (batch * -(-m // tall) * -(-n // wide), 1, 1)


def _power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length()


@rule("aten.bmm", source=f"{_BLAS}; torch/_native/ops/bmm_outer_product, 2.13")
def bmm(op: Op, target: Target) -> Iterable[Launch]:
    """One strided-batched cuBLAS call, a plain GEMM for a batch of one; operands of which neither
    inner stride is 1 are copied before. With an inner dimension of 1 PyTorch's own Triton kernel
    for outer products runs instead."""
    result, a, b = result_of(op), op["self"], op["mat2"]
    if release(target) >= (2, 13) and op.overload == "default" and _is_outer_product(a, b):
        yield kernel(
            "_bmm_outer_product_kernel", [a, b], [result], grid=_outer_grid(a, b),
            because="the inner dimension is 1: PyTorch's own Triton kernel",
        )  # fmt: skip
        return
    if result.numel == 0:
        return
    if a.shape[2] == 0:
        yield from zero(result)
        return
    yield from multiply_batch(result, a, b, target)


@rule("aten.baddbmm", source=_BLAS)
def baddbmm(op: Op, target: Target) -> Iterable[Launch]:
    """The addend is copied into the result unless beta is 0 (a memcpy when it has its shape and
    layout), then one strided-batched cuBLAS call adds onto it."""
    result, addend, a, b = result_of(op), op["self"], op["batch1"], op["batch2"]
    beta = op["beta"]
    in_place = addend.storage == result.storage >= 0 and addend.shape == result.shape
    if not in_place and beta != 0:
        yield from copy(result, expand(addend, result.shape), because="starts from the addend")
    if result.numel == 0:
        return
    if a.shape[2] == 0:
        if beta == 0:
            yield from zero(result)
        else:
            yield from elementwise([result], [result])
        return
    yield from multiply_batch(result, a, b, target, adds=beta != 0)


@rule("aten.addbmm", source="aten/src/ATen/native/LinearAlgebra.cpp addbmm_impl_, 2.6")
def addbmm(op: Op, target: Target) -> Iterable[Launch]:
    """The addend is copied into the result unless beta is 0; then one GEMM per matrix adds onto
    it."""
    result, addend, a, b = result_of(op), op["self"], op["batch1"], op["batch2"]
    beta = op["beta"]
    if beta != 0 and not addend.storage == result.storage >= 0:
        yield from copy(result, expand(addend, result.shape), because="starts from the addend")
    if a.shape[0] == 0:
        yield from zero(result) if beta == 0 else elementwise([result], [result])
    for matrix in range(a.shape[0]):
        args = {"self": result, "mat1": _matrix(a, matrix), "mat2": _matrix(b, matrix)}
        step = Op("aten.addmm_.default", {**args, "beta": beta, "alpha": op["alpha"]}, (result,))
        yield from add_product(step, target)
        beta = 1


def _matrix(t: Tensor, i: int) -> Tensor:
    return view(t, t.shape[1:], t.stride[1:], i * t.stride[0])


@rule("aten._int_mm", source=_BLAS)
def int_mm(op: Op, target: Target) -> Iterable[Launch]:
    """int8 products in cublasLt, summed in int32."""
    yield from multiply(result_of(op), op["self"], op["mat2"], target, name="cublasLtMatmul")
