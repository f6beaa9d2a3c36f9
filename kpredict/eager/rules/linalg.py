"""Factorizations and solvers: copies into columns, cuSOLVER or cuBLAS, the check of errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.calling import Host
from kpredict.eager.copying import compact, copy, expand, fill, like, zero
from kpredict.eager.elementwise import elementwise, indexed
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.matrices import (
    LETTER,
    batch_of,
    check_info,
    cloned_column_major,
    column_major,
    factor_lu,
    factor_qr,
    is_row_or_column_major,
    multiply_reflectors,
    per_matrix,
    pointers,
    solve_triangle,
    solve_triangular,
    solver,
    turned,
)
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.eager.rules.gathering import scatter_into
from kpredict.eager.shaping import unsqueeze
from kpredict.model import Launch, Op, Target, Tensor

_HOST = "aten/src/ATen/native/BatchLinearAlgebra.cpp, 2.6"
_CUDA = f"{_HOST}; cuda/linalg, 2.6 and what 2.13 was seen to launch"


def _tensors(op: Op) -> list[Tensor]:
    return [t for t in op.outputs if isinstance(t, Tensor)]


def _info(a: Tensor) -> Tensor:
    return contiguous(a, shape=a.shape[:-2], dtype="int32")


@rule("aten._linalg_check_errors", source=_HOST)
def check_errors(op: Op, target: Target) -> Iterable[Launch]:
    """`infos.any().item()`: of one matrix a cast and a copy, of a batch a reduction; the host
    waits."""
    return check_info(op["info"], target)


@rule("aten.linalg_cholesky_ex", source=_CUDA)
def cholesky(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns; cuSOLVER `Xpotrf`, for a batch `potrfBatched` with an array of addresses;
    the other triangle set to 0; the check of errors if asked for."""
    factor, info = _tensors(op)[:2]
    if factor.numel == 0:
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


@rule("aten.cholesky_solve", "aten._cholesky_solve_helper", source=_CUDA)
def cholesky_solve(op: Op, target: Target) -> Iterable[Launch]:
    """Copies of both in columns, an error code, then cuSOLVER `Xpotrs` per matrix; a batch with one
    right-hand side in one call."""
    solution, copies = cloned_column_major(op["self"])
    yield from copies
    info = workspace(1, "int32")
    a = op["input2"] if "input2" in op.args else op["A"]
    if op["self"].shape[-1] == 1 and batch_of(solution) > 1:
        factor, copies = cloned_column_major(a)
        yield from (*copies, *zero(info), *pointers(batch_of(a)), *pointers(batch_of(a)))
        name = f"cusolverDn{LETTER[a.dtype]}potrsBatched"
        yield solver(name, [factor, solution], [solution, info])
        return
    yield from zero(info, because="error code")
    factor, copies = cloned_column_major(a)
    yield from copies
    yield from per_matrix("cusolverDnXpotrs", solution, [factor, solution], [solution, info])


@rule("aten.cholesky_inverse", source=_CUDA)
def cholesky_inverse(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns, then the solve with the identity matrix."""
    out, copies = cloned_column_major(op["self"])
    yield from copies
    one = column_major(op["self"])
    diagonal = narrow(one, -1 % one.ndim, 0, 1)
    yield from (*zero(one, because="the identity"), *fill(diagonal, because="the identity"))
    info = workspace(1, "int32")
    yield from zero(info, because="error code")
    yield from per_matrix("cusolverDnXpotrs", out, [out, one], [one, info])
    yield from copy(op.out, one)


@rule("aten.linalg_lu_factor_ex", source=_CUDA)
def lu_factor(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns, then `getrf` per matrix, or one batched call for square matrices below 512
    rows; the check of errors if asked for."""
    lu, pivots, info = _tensors(op)[:3]
    yield from factor_lu(op["A"], lu, pivots, info)
    if op["check_errors"]:
        yield from check_info(info, target)


def _unpack_pivots(host: Host, pivots: Tensor, n: int) -> Tensor:
    """LAPACK's row swaps as a permutation."""
    perm = contiguous(pivots, shape=(*pivots.shape[:-1], n), dtype="int64")
    host.add(indexed(contiguous(perm, shape=(n,)), because="the identity permutation"))
    if perm.ndim > 1:
        one = contiguous(perm, shape=(n,))
        host.add(copy(perm, expand(one, perm.shape), because="one per matrix"))
    host.add([kernel("_elementwise_kernel", [pivots], [perm], because="applies the row swaps")])
    return perm


def solve_lu(
    host: Host, lu: Tensor, pivots: Tensor, b: Tensor, out: Tensor, *, left: bool, adjoint: bool
) -> None:
    """linalg_lu_solve: by two triangular solves and a permutation of rows, or by `getrs`."""
    if out.numel == 0:
        return
    target = host.target
    if not left:
        adjoint, out, b = not adjoint, turned(out), turned(b)
    if not (b.storage == out.storage and b.stride == out.stride):
        host.add(copy(out, b, because="solved in place"))
    if not turned(lu).is_contiguous:
        lu, copies = cloned_column_major(lu)
        host.add(copies)
    n, k, matrices = lu.shape[-1], out.shape[-1], batch_of(out)
    letter = LETTER[lu.dtype]
    way = "triangles"
    if n == k:
        way = "batched" if n <= 16 else "triangles"
    elif n <= 8:
        way = "batched"
    elif n <= 64:
        few = matrices <= 2 and (k <= 64 or adjoint or n <= 32)
        way = "looped" if few else "batched" if k <= 8 else "triangles"
    elif n <= 128 and k <= 2:
        way = "looped" if matrices <= 2 else "batched"
    if way == "batched":
        host.add([*pointers(matrices), *pointers(matrices)])
        host.add([solver(f"cublas{letter}getrsBatched", [lu, pivots, out], [out])])
        return
    if way == "looped":
        info = workspace(1, "int32")
        host.add(zero(info, because="error code"))
        name = f"cusolverDn{letter}getrs"
        host.add(per_matrix(name, out, [lu, pivots, out], [out, info]))
        return
    perm = _unpack_pivots(host, pivots, n)
    if not adjoint:
        identity = contiguous(perm, shape=(n,))
        host.add(indexed(identity, because="to invert the permutation"))
        inverse = contiguous(perm)
        host.add(copy(inverse, perm, because="the result starts as a copy"))
        expanded = expand(identity, perm.shape)
        host.add(scatter_into(inverse, -1, perm, expanded, target, adds=False))
        rows = contiguous(out)
        host.add(copy(rows, out, because="rows in another order need a copy"))
        picks = expand(unsqueeze(inverse, inverse.ndim), out.shape)
        host.add(scatter_into(rows, -2, picks, out, target, adds=False))
        host.add(solve_triangular(lu, rows, out))
        host.add(solve_triangle(lu, out))
        return
    host.add(solve_triangle(lu, out))
    host.add(solve_triangle(lu, out))
    rows = like(out)
    host.add(copy(rows, out, because="rows in another order need a copy"))
    picks = expand(unsqueeze(perm, perm.ndim), out.shape)
    host.add(scatter_into(out, -2, picks, rows, target, adds=False))


@rule("aten.linalg_lu_solve", source=_CUDA)
def lu_solve(op: Op, target: Target) -> Iterable[Launch]:
    """The right-hand side is copied; then `getrs` for small systems, else two triangular solves
    around a permutation of the rows made of arange and scatter kernels."""
    host = Host(target)
    solve_lu(host, op["LU"], op["pivots"], op["B"], op.out, left=op["left"], adjoint=op["adjoint"])
    return host.launches


def _solve(
    host: Host, a: Tensor, b: Tensor, result: Tensor, lu: Tensor, pivots: Tensor, info: Tensor,
    *, left: bool,
) -> None:  # fmt: skip
    host.add(factor_lu(a, lu, pivots, info))
    if b.ndim == 1 or b.ndim == lu.ndim - 1:
        b, result = unsqueeze(b, b.ndim), unsqueeze(result, result.ndim)
    solve_lu(host, lu, pivots, b, result, left=left, adjoint=False)


@rule("aten._linalg_solve_ex", source=_CUDA)
def solve(op: Op, target: Target) -> Iterable[Launch]:
    """LU factors, then their solver; the check of errors if asked for."""
    host = Host(target)
    result, lu, pivots, info = _tensors(op)
    _solve(host, op["A"], op["B"], result, lu, pivots, info, left=op["left"])
    if op["check_errors"]:
        host.add(check_info(info, target))
    return host.launches


@rule("aten.linalg_inv_ex", source=_CUDA)
def inverse(op: Op, target: Target) -> Iterable[Launch]:
    """The result starts as the identity (two fills) and is solved for in place."""
    host = Host(target)
    result, info = _tensors(op)
    a = op["A"]
    if result.numel == 0:
        return host.launches
    n = a.shape[-1]
    step = sum(result.stride[-2:])
    diagonal = replace(result, shape=(*result.shape[:-2], n), stride=(*result.stride[:-2], step))
    host.add(zero(result, because="the identity"))
    host.add(fill(diagonal, because="the identity"))
    pivots = contiguous(a, shape=a.shape[:-1], dtype="int32")
    lu = column_major(a)
    host.add(factor_lu(a, lu, pivots, info))
    solve_lu(host, lu, pivots, result, result, left=True, adjoint=False)
    if op["check_errors"]:
        host.add(check_info(info, target))
    return host.launches


@rule("aten.linalg_solve_triangular", source=_CUDA)
def triangular(op: Op, target: Target) -> Iterable[Launch]:
    """The right-hand side is copied into the result, which `trsm` solves in place; a matrix that
    is neither row- nor column-major is copied too."""
    a, b, out = op["self"], op["B"], op.out
    if out.numel == 0:
        return []
    shape = out.shape[:-2]
    return solve_triangular(expand(a, (*shape, *a.shape[-2:])), expand(b, out.shape), out)


@rule("aten.triangular_solve", source=_CUDA)
def triangular_solve(op: Op, target: Target) -> Iterable[Launch]:
    """Both are copied in columns, then `trsm`."""
    solution, factor = _tensors(op)
    yield from copy(solution, expand(op["self"], solution.shape))
    yield from copy(factor, expand(op["A"], factor.shape))
    yield from solve_triangle(factor, solution)


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
        perm = _unpack_pivots(host, pivots, lu.shape[-2])
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
    host.add(factor_lu(a, data, pivots, _info(a)))
    host.call(
        "aten.lu_unpack.default", p, low, up, LU_data=data, LU_pivots=pivots, unpack_data=True,
        unpack_pivots=True,
    )  # fmt: skip
    return host.launches


@rule("aten.linalg_qr", source=_CUDA)
def qr(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns; `geqrf` for the reflectors; the upper triangle copied out; `orgqr` per
    matrix for Q unless only R is wanted."""
    q, r = _tensors(op)
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
    values, *vectors = _tensors(op)
    a = op["A"]
    if a.numel == 0:
        return
    work = vectors[0] if op["compute_v"] and vectors else column_major(a)
    info = _info(a)
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
    u, s, vh = _tensors(op)
    a = op["A"]
    if a.numel == 0:
        return
    info = _info(a)
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


@rule("aten.linalg_eig", source=_HOST)
def eig(op: Op, target: Target) -> Iterable[Launch]:
    """No GPU library is used by default: the matrix goes to the host and the results come back."""
    a = op["self"]
    outputs = _tensors(op)
    if not is_row_or_column_major(a):
        a, copies = cloned_column_major(a)
        yield from copies
    yield memcpy("DtoH", a, a, because="LAPACK on the host")
    yield sync("the host waits for the matrix")
    for t in outputs:
        yield memcpy("HtoD", t, t, because="results of the host")
        yield sync("the host waits for the copy")


def sign_of_permutation(host: Host, pivots: Tensor) -> Tensor:
    """lu_det_P: 1 or -1 as the number of row swaps is even or odd."""
    n = pivots.shape[-1]
    order, swapped = contiguous(pivots, shape=(n,)), contiguous(pivots, dtype="bool")
    count = contiguous(pivots, shape=pivots.shape[:-1], dtype="int64")
    host.add(indexed(order, because="where no row is swapped"))
    host.call("aten.ne.Tensor", swapped, self=order, other=pivots)
    host.call("aten.sum.dim_IntList", count, self=swapped, dim=(-1,), keepdim=False, dtype="int64")
    host.call("aten.fmod_.Scalar", count, self=count, other=2)
    host.call("aten.mul_.Tensor", count, self=count, other=-2)
    host.call("aten.add_.Tensor", count, self=count, other=1, alpha=1)
    return count


def _factor_for_determinant(host: Host, a: Tensor, lu: Tensor, pivots: Tensor) -> Tensor:
    """The factors (of the transpose if that saves the copy into columns); gives their diagonal."""
    source = turned(a) if a.is_contiguous and not a.is_complex else a
    host.add(factor_lu(source, lu, pivots, _info(a)))
    n = a.shape[-1]
    return replace(lu, shape=(*lu.shape[:-2], n), stride=(*lu.stride[:-2], sum(lu.stride[-2:])))


@rule("aten._linalg_det", source="aten/src/ATen/native/LinearAlgebra.cpp, 2.6")
def det(op: Op, target: Target) -> Iterable[Launch]:
    """LU factors; the product of the diagonal; the sign of the permutation by six small kernels;
    their product."""
    host = Host(target)
    result, lu, pivots = _tensors(op)
    diagonal = _factor_for_determinant(host, op["A"], lu, pivots)
    product = contiguous(result)
    host.call("aten.prod.dim_int", product, self=diagonal, dim=-1, keepdim=False, dtype=None)
    sign = sign_of_permutation(host, pivots)
    host.call("aten.mul.Tensor", result, self=sign, other=product)
    return host.launches


@rule("aten._linalg_slogdet", source="aten/src/ATen/native/LinearAlgebra.cpp, 2.6")
def slogdet(op: Op, target: Target) -> Iterable[Launch]:
    """LU factors; the sign from the permutation and the diagonal's signs; the sum of the logarithms
    of the diagonal."""
    host = Host(target)
    sign, logabsdet, lu, pivots = _tensors(op)
    diagonal = _factor_for_determinant(host, op["A"], lu, pivots)
    parity = sign_of_permutation(host, pivots)
    signs, product = contiguous(diagonal), contiguous(sign)
    host.call("aten.sgn.default", signs, self=diagonal)
    host.call("aten.prod.dim_int", product, self=signs, dim=-1, keepdim=False, dtype=None)
    host.call("aten.mul.Tensor", sign, self=product, other=parity)
    sizes = contiguous(diagonal, dtype=logabsdet.dtype)
    host.call("aten.abs.default", sizes, self=diagonal)
    host.add(elementwise([sizes], [sizes], because="log"))
    host.call("aten.sum.dim_IntList", logabsdet, self=sizes, dim=(-1,), keepdim=False, dtype=None)
    return host.launches
