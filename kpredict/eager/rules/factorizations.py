"""Factorizations: copies into columns, cuSOLVER or cuBLAS, the check of errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.calling import Host
from kpredict.eager.copying import compact, copy, fill, zero
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.matrices import (
    LETTER,
    batch_of,
    check_info,
    cloned_column_major,
    column_major,
    error_codes,
    factor_lu,
    factor_qr,
    multiply_reflectors,
    per_matrix,
    pointers,
    solver,
    tensors_of,
    turned,
    unpack_pivots,
)
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.eager.rules.gathering import scatter_into
from kpredict.eager.shaping import unsqueeze
from kpredict.model import Launch, Op, Target, Tensor

_HOST = "aten/src/ATen/native/BatchLinearAlgebra.cpp, 2.6"
_CUDA = f"{_HOST}; cuda/linalg, 2.6 and what 2.13 was seen to launch"


@rule("aten._linalg_check_errors", source=_HOST)
def check_errors(op: Op, target: Target) -> Iterable[Launch]:
    """`infos.any().item()`: of one matrix a cast and a copy, of a batch a reduction; the host
    waits."""
    return check_info(op["info"], target)


@rule("aten.linalg_cholesky_ex", source=_CUDA)
def cholesky(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns; cuSOLVER `Xpotrf`, for a batch `potrfBatched` with an array of addresses;
    the other triangle set to 0; the check of errors if asked for."""
    factor, info = tensors_of(op)[:2]
    if factor.numel == 0:
        yield from zero(info)
        return
    yield from copy(factor, op["self"], because="the factor replaces a copy of the input")
    n, matrices = factor.shape[-1], batch_of(factor)
    flops = n**3 // 3
    if matrices > 1:
        name = f"cusolverDn{LETTER[factor.dtype]}potrfBatched"
        yield from pointers(matrices)
        yield solver(name, [factor], [factor, info], flops=flops * matrices)
    else:
        yield from per_matrix("cusolverDnXpotrf", factor, [factor], [factor, info], flops)
    yield kernel("triu_tril_kernel", [factor], [factor], because="clears the other triangle")
    if op["check_errors"]:
        yield from check_info(info, target)


@rule("aten.cholesky", source=_CUDA)
def old_cholesky(op: Op, target: Target) -> Iterable[Launch]:
    """As linalg_cholesky_ex; the errors are checked before the other triangle is cleared."""
    host = Host(target)
    info = error_codes(op["self"])
    if op["self"].numel == 0:
        return []
    host.call("aten.linalg_cholesky_ex.default", op.out, info, self=op["self"], upper=op["upper"],
              check_errors=False)  # fmt: skip
    *factor, cleared = host.launches
    return [*factor, *check_info(info, target), cleared]


@rule("aten.linalg_lu_factor_ex", source=_CUDA)
def lu_factor(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns, then `getrf` per matrix, or one batched call for square matrices below 512
    rows; the check of errors if asked for."""
    lu, pivots, info = tensors_of(op)[:3]
    yield from factor_lu(op["A"], lu, pivots, info)
    if op["check_errors"]:
        yield from check_info(info, target)


@rule("aten.lu_unpack", source=f"{_HOST}; cuda/linalg/BatchLinearAlgebra.cpp")
def lu_unpack(op: Op, target: Target) -> Iterable[Launch]:
    """L and U each by a triangle kernel and, for L, a fill of the diagonal with 1; the permutation
    matrix by a scatter into zeros."""
    p, low, up = op.outputs
    lu, pivots = op["LU_data"], op["LU_pivots"]
    host = Host(target)
    if op["unpack_data"] and isinstance(low, Tensor):
        host.add([kernel("triu_tril_kernel", [lu], [up]), kernel("triu_tril_kernel", [lu], [low])])
        n = min(low.shape[-2:])
        step = sum(low.stride[-2:])
        host.add(fill(replace(low, shape=(*low.shape[:-2], n), stride=(*low.stride[:-2], step))))
    if op["unpack_pivots"] and isinstance(p, Tensor):
        perm = unpack_pivots(host, pivots, lu.shape[-2])
        host.add(zero(p, because="a permutation matrix"))
        host.add(scatter_into(p, -2, unsqueeze(perm, perm.ndim - 1), None, target, adds=False))
    return host.launches


@rule("aten.linalg_lu", source=_HOST)
def lu(op: Op, target: Target) -> Iterable[Launch]:
    """Factors as linalg_lu_factor, then unpacked."""
    p, low, up = op.outputs
    a = op["A"]
    host = Host(target)
    data = column_major(a)
    pivots = contiguous(a, shape=(*a.shape[:-2], min(a.shape[-2:])), dtype="int32")
    host.add(factor_lu(a, data, pivots, error_codes(a)))
    host.call(
        "aten.lu_unpack.default", p, low, up, LU_data=data, LU_pivots=pivots, unpack_data=True,
        unpack_pivots=True,
    )  # fmt: skip
    return host.launches


@rule("aten.linalg_ldl_factor_ex", source=_CUDA)
def ldl_factor(op: Op, target: Target) -> Iterable[Launch]:
    """The lower triangle is copied out, then cuSOLVER `sytrf` per matrix; the check of errors if
    asked for."""
    factor, pivots, info = tensors_of(op)
    if factor.numel == 0:
        yield from zero(info)
        return
    yield kernel("triu_tril_kernel", [op["self"]], [factor], because="the lower triangle")
    name = f"cusolverDn{LETTER[factor.dtype]}sytrf"
    written = [factor, pivots, info]
    yield from per_matrix(name, factor, [factor], written, factor.shape[-1] ** 3 // 3)
    if op["check_errors"]:
        yield from check_info(info, target)


@rule("aten.linalg_qr", source=_CUDA)
def qr(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns; `geqrf` for the reflectors; the upper triangle copied out; `orgqr` per
    matrix for Q unless only R is wanted."""
    q, r = tensors_of(op)
    a, mode = op["A"], op["mode"]
    if a.numel == 0:
        return
    rows, columns = a.shape[-2:]
    wants_q = mode != "r"
    tau = contiguous(a, shape=(*a.shape[:-2], min(rows, columns)))
    if wants_q and q.shape[-1] == columns:
        work = q
    elif r.shape[-2] == rows:
        work = r
    else:
        work = column_major(a)
    yield from copy(work, a, because="the factors replace a copy of the input")
    yield from factor_qr(work, tau)
    if work is r:
        if wants_q and rows < columns:
            yield from copy(q, narrow(r, r.ndim - 1, 0, rows))
        elif wants_q:
            yield from copy(narrow(q, q.ndim - 1, 0, columns), r)
        yield kernel("triu_tril_kernel", [r], [r], because="R is the upper triangle")
    else:
        yield kernel("triu_tril_kernel", [work], [r], because="R is the upper triangle")
    if wants_q:
        yield from multiply_reflectors(q, tau)


@rule("aten.linalg_householder_product", source=_CUDA)
def householder_product(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns, then `orgqr` per matrix."""
    out = op.out
    tau, copies = compact(op["tau"])
    yield from (*copy(out, op["input"]), *copies, *multiply_reflectors(out, tau))


@rule("aten.ormqr", source=_CUDA)
def ormqr(op: Op, target: Target) -> Iterable[Launch]:
    """The other operand is copied in columns, the reflectors too unless they are; then `ormqr`."""
    a, tau, other, out = op["self"], op["input2"], op["input3"], op.out
    yield from copy(out, other, because="multiplied in place")
    if not turned(a).is_contiguous:
        a, copies = cloned_column_major(a)
        yield from copies
    name = f"cusolverDn{LETTER[a.dtype]}{'unmqr' if a.is_complex else 'ormqr'}"
    info = workspace(1, "int32")
    yield from zero(info, because="error code")
    yield from per_matrix(name, a, [a, tau, out], [out, info])


@rule("aten._linalg_eigh", source=_CUDA)
def eigh(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns, error codes, `XsyevBatched` for one or many, the check of errors."""
    values, *vectors = tensors_of(op)
    a = op["A"]
    if a.numel == 0:
        return
    work = vectors[0] if op["compute_v"] and vectors else column_major(a)
    info = error_codes(a)
    yield from copy(work, a, because="the vectors replace a copy of the input")
    yield from zero(info, because="error codes")
    flops = 9 * a.shape[-1] ** 3 * batch_of(a)
    yield solver(
        "cusolverDnXsyevBatched", [work], [values, work, info], flops=flops,
        several=8 + a.shape[-1] // 4,
    )  # fmt: skip
    yield from check_info(info, target)


@rule("aten._linalg_svd", source=_CUDA)
def svd(op: Op, target: Target) -> Iterable[Launch]:
    """Error codes and a copy in columns; Jacobi: `gesvdjBatched` when rows and columns are at most
    32, else `gesvdj` per matrix (`gesvd` or `gesvda` if the caller says so); the host reads whether
    it converged; the check of errors."""
    u, s, vh = tensors_of(op)
    a = op["A"]
    if a.numel == 0:
        return
    info = error_codes(a)
    yield from zero(info, because="error codes")
    rows, columns = a.shape[-2:]
    work, copies = cloned_column_major(a)
    letter, driver = LETTER[a.dtype], op["driver"] or "gesvdj"
    reduced = op["compute_uv"] and not op["full_matrices"]
    written = [u, s, vh, info]
    flops = 12 * rows * columns * min(rows, columns)
    if driver == "gesvd":
        tall = rows >= columns
        yield from copies if tall else copy(column_major(a, turned(a).shape), turned(a))
        yield from per_matrix("cusolverDnXgesvd", a, [work], written, flops)
    elif driver == "gesvdj" and max(rows, columns) <= 32:
        yield from copies
        name = f"cusolverDn{letter}gesvdjBatched"
        yield solver(name, [work], written, flops=flops * batch_of(a), several=8)
        if reduced and rows != columns:
            square = column_major(u, (*u.shape[:-1], max(rows, columns)))
            part = narrow(square, square.ndim - 1, 0, min(rows, columns))
            result = u if rows > columns else turned(vh)
            yield from copy(result, replace(part, shape=result.shape))
    elif driver == "gesvdj":
        yield from copies
        yield from per_matrix(f"cusolverDn{letter}gesvdj", a, [work], written, flops)
    else:
        yield from copies
        name = f"cusolverDn{letter}gesvdaStridedBatched"
        yield solver(name, [work], written, flops=flops * batch_of(a), several=8)
    if driver != "gesvd":
        yield memcpy("DtoH", info, info, because="did every matrix converge?")
        yield sync("the host waits for the answer")
    yield from check_info(info, target)
