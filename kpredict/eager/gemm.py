"""Matrix products: the cuBLAS call, the operands it can take as they are, and how many kernels.

In: operands of one GEMM. Out: launches. Follows aten/src/ATen/native/cuda/Blas.cpp and
cuda/CUDABlas.cpp (2.6 and main of 2026). cuBLAS itself is closed: `kernels_of` gives its interval.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.copying import copy
from kpredict.eager.launches import Array, contiguous, library
from kpredict.eager.splitting import kernels_of
from kpredict.model import Launch, Target, Tensor

_LETTER = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}
LOW_PRECISION = ("float16", "bfloat16")


def release(target: Target) -> tuple[int, int]:
    """The target's torch release as numbers: (2, 13)."""
    major, minor = target.torch.split(".")[:2]
    return int(major), int(minor)


def gemm_name(dtype: str) -> str:
    """The entry point at::cuda::blas::gemm calls; half types go through the typed `GemmEx`."""
    return f"cublas{_LETTER[dtype]}gemm_v2" if dtype in _LETTER else "cublasGemmEx"


def batched_name(dtype: str) -> str:
    letter = _LETTER.get(dtype)
    return f"cublas{letter}gemmStridedBatched" if letter else "cublasGemmStridedBatchedEx"


def gemv_name(dtype: str) -> str:
    """cuBLAS has no half gemv: at::cuda::blas::gemv takes a GEMM with one column instead."""
    return f"cublas{_LETTER[dtype]}gemv_v2" if dtype in _LETTER else "cublasGemmEx"


def flops_of(m: int, n: int, k: int, batch: int, dtype: str) -> int:
    """2*m*n*k, and four times that for complex numbers."""
    return 2 * m * n * k * batch * (4 if dtype.startswith("complex") else 1)


def blas_call(
    name: str,
    m: int,
    n: int,
    k: int,
    reads: Iterable[Array],
    writes: Iterable[Array],
    target: Target,
    *,
    batch: int = 1,
    dtype: str,
    because: str = "",
) -> Launch:
    """The library call for a batch of m by k times k by n, with its interval of kernels."""
    split = kernels_of(m, n, k, batch, dtype, target)
    return library(
        name, reads, writes, lo=split.lo, hi=split.hi, expected=split.expected,
        because=f"{because}; {split.because}" if because else split.because,
        flops=flops_of(m, n, k, batch, dtype),
    )  # fmt: skip


def as_blas_matrix(t: Tensor, row_major_result: bool = True) -> tuple[Tensor, list[Launch]]:
    """prepare_matrix_for_cublas: taken as it is when dense, or when one stride is 1 and the other
    spans it; else a contiguous copy. cuBLAS conjugates only what it also transposes."""
    rows, cols = t.shape
    if t.is_dense:
        by_row = t.is_contiguous
    elif t.stride[0] == 1 and t.stride[1] >= max(1, rows):
        by_row = False
    elif t.stride[1] == 1 and t.stride[0] >= max(1, cols):
        by_row = True
    else:
        return copied(t)
    return _conjugated(t) if by_row == row_major_result else (t, [])


def _conjugated(t: Tensor) -> tuple[Tensor, list[Launch]]:
    """`t.resolve_conj()`: itself, or a conjugated copy."""
    return copied(t) if t.lazy == "conj" else (t, [])


def as_blas_batch(
    t: Tensor, result_is_row_major: bool, m: int, n: int
) -> tuple[Tensor, list[Launch]]:
    """prepare_batch_matrix_for_cublas: as it is when one inner stride is 1 and the other at least
    the length beside it, or when contiguous without stride 0; else a contiguous copy."""
    fast, leading = (2, 1) if result_is_row_major else (1, 2)
    if t.stride[fast] == 1 and t.stride[leading] >= max(1, m):
        return _conjugated(t)
    if t.stride[leading] == 1 and t.stride[fast] >= max(1, n):
        return t, []
    if t.is_contiguous and t.stride[1] != 0 and t.stride[2] != 0:
        return _conjugated(t) if result_is_row_major else (t, [])
    return copied(t)


def copied(t: Tensor) -> tuple[Tensor, list[Launch]]:
    """`t.clone(contiguous)`, whatever its layout."""
    fresh = contiguous(t)
    return fresh, copy(fresh, t, because="cuBLAS cannot take these strides")
