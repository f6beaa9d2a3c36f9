"""Batches of matrices as LAPACK wants them, and the cuBLAS and cuSOLVER calls on them.

In: metadata. Out: launches. Source: aten/src/ATen/native/BatchLinearAlgebra.cpp,
cuda/linalg/BatchLinearAlgebra.cpp, BatchLinearAlgebraLib.cpp and LibBlas.cpp (2.6; the cuSOLVER
choices of 2.13, where MAGMA is no longer a default).
"""

from __future__ import annotations

from math import prod

from kpredict.eager.calling import Host
from kpredict.eager.copying import copy, expand, read_by_host, zero
from kpredict.eager.elementwise import indexed
from kpredict.eager.launches import contiguous, kernel, library, workspace
from kpredict.eager.reducing import reduce
from kpredict.eager.shaping import permute
from kpredict.eager.summing import truth_of
from kpredict.model import Launch, Op, Target, Tensor

LETTER = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}


def tensors_of(op: Op) -> list[Tensor]:
    """The outputs that there are."""
    return [t for t in op.outputs if isinstance(t, Tensor)]


def error_codes(a: Tensor) -> Tensor:
    """`info`: one number per matrix."""
    return contiguous(a, shape=a.shape[:-2], dtype="int32")


def batch_of(t: Tensor) -> int:
    """How many matrices."""
    return prod(t.shape[:-2])


def turned(t: Tensor) -> Tensor:
    """`t.mT`: rows and columns swapped."""
    return permute(t, [*range(t.ndim - 2), t.ndim - 1, t.ndim - 2])


def column_major(like: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """A fresh batch of matrices, each stored column by column."""
    shape = like.shape if shape is None else shape
    return turned(contiguous(like, shape=(*shape[:-2], shape[-1], shape[-2])))


def is_row_or_column_major(t: Tensor) -> bool:
    return t.is_contiguous or turned(t).is_contiguous


def cloned_column_major(t: Tensor) -> tuple[Tensor, list[Launch]]:
    """cloneBatchedColumnMajor."""
    fresh = column_major(t)
    return fresh, copy(fresh, t, because="LAPACK works on columns, in place")


def pointers(matrices: int) -> list[Launch]:
    """get_device_pointers: the address of each matrix of a batch, made by arange."""
    return indexed(workspace(matrices, "int64"), because="addresses of the matrices")


def solver(
    name: str, reads: list[Tensor], writes: list[Tensor], *, flops: int = 0, several: int = 4
) -> Launch:
    """One call into cuSOLVER or batched cuBLAS; how many kernels it is grows with the size."""
    return library(
        name, reads, writes, lo=1, hi=several, expected=1,
        because="the library works through the matrix in blocks", flops=flops,
    )  # fmt: skip


def per_matrix(name: str, t: Tensor, reads: list[Tensor], writes: list[Tensor], flops: int = 0
               ) -> list[Launch]:  # fmt: skip
    """One call for each matrix of the batch."""
    rows, columns = t.shape[-2:]
    several = 2 + 4 * -(-max(rows, columns) // 32)
    return [solver(name, reads, writes, flops=flops, several=several) for _ in range(batch_of(t))]


def check_info(info: Tensor, target: Target) -> list[Launch]:
    """`_linalg_check_errors`: is any info nonzero? The host reads the answer and waits."""
    answer = contiguous(info, shape=(), dtype="bool")
    return [*truth_of(answer, info, None, target), *read_by_host(answer)]


def factor_lu(a: Tensor, lu: Tensor, pivots: Tensor, info: Tensor) -> list[Launch]:
    """linalg_lu_factor_ex: a copy in columns, then cuSOLVER per matrix; a batch of square matrices
    below 512 rows goes to cuBLAS at once."""
    if lu.numel == 0:
        return zero(info, because="nothing to factor")
    found = copy(lu, a, because="the factors replace a copy of the input")
    rows, columns = lu.shape[-2:]
    letter = LETTER[lu.dtype]
    written = [lu, pivots, info]
    flops = 2 * rows * columns * min(rows, columns) // 3
    if rows != columns or batch_of(lu) == 1 or rows >= 512:
        return found + per_matrix(f"cusolverDn{letter}getrf", lu, [lu], written, flops)
    found += pointers(batch_of(lu))
    flops *= batch_of(lu)
    return [*found, solver(f"cublas{letter}getrfBatched", [lu], written, flops=flops)]


def unpack_pivots(host: Host, pivots: Tensor, n: int) -> Tensor:
    """LAPACK's row swaps as a permutation."""
    perm = contiguous(pivots, shape=(*pivots.shape[:-1], n), dtype="int64")
    host.add(indexed(contiguous(perm, shape=(n,)), because="the identity permutation"))
    if perm.ndim > 1:
        one = contiguous(perm, shape=(n,))
        host.add(copy(perm, expand(one, perm.shape), because="one per matrix"))
    host.add([kernel("_elementwise_kernel", [pivots], [perm], because="applies the row swaps")])
    return perm


def solve_triangle(a: Tensor, b: Tensor) -> list[Launch]:
    """triangular_solve_kernel, in place on `b`: one `trsm` per matrix for up to 8 large ones, else
    one batched call with two arrays of addresses."""
    letter = LETTER[a.dtype]
    n, matrices = a.shape[-1], batch_of(a)
    flops = n * n * b.shape[-1]
    if matrices <= 8 and n >= 64:
        return per_matrix(f"cublas{letter}trsm_v2", a, [a, b], [b], flops)
    found = pointers(matrices) + pointers(matrices)
    return [
        *found, solver(f"cublas{letter}trsmBatched", [a, b], [b], flops=flops * matrices)
    ]  # fmt: skip


def solve_triangular(a: Tensor, b: Tensor, out: Tensor) -> list[Launch]:
    """linalg_solve_triangular: `b` is copied into `out`, which is solved in place; `a` is copied
    when it is neither row- nor column-major."""
    found = copy(out, b, because="solved in place")
    if not is_row_or_column_major(a):
        a, copies = cloned_column_major(a)
        found += copies
    return found + solve_triangle(a, out)


def multiply_reflectors(q: Tensor, tau: Tensor) -> list[Launch]:
    """orgqr: the product of Householder reflectors, one cuSOLVER call per matrix."""
    complex_ = q.is_complex
    name = f"cusolverDn{LETTER[q.dtype]}{'ungqr' if complex_ else 'orgqr'}"
    info = workspace(1, "int32")
    flops = 2 * q.shape[-2] * q.shape[-1] ** 2
    return [*zero(info, because="error code"), *per_matrix(name, q, [q, tau], [q, info], flops)]


def factor_qr(a: Tensor, tau: Tensor) -> list[Launch]:
    """geqrf in place: many small matrices in one cuBLAS call, else one cuSOLVER call each."""
    rows, columns = a.shape[-2:]
    matrices = batch_of(a)
    flops = 2 * rows * columns * columns
    if rows <= 256 and matrices >= max(2, rows // 16):
        return [
            *pointers(matrices), *pointers(matrices),
            solver(f"cublas{LETTER[a.dtype]}geqrfBatched", [a], [a, tau], flops=flops * matrices),
        ]  # fmt: skip
    info = workspace(1, "int32")
    written = [a, tau, info]
    return [
        *zero(info, because="error code"),
        *per_matrix("cusolverDnXgeqrf", a, [a], written, flops),
    ]


def sum_of(out: Tensor, x: Tensor, dims: int | list[int], target: Target) -> list[Launch]:
    return reduce([out], x, dims, target)
