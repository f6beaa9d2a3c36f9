"""Functions of matrices made of factorizations and products: pinv, lstsq, matrix_exp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.calling import Host
from kpredict.eager.copying import copy, expand, fill, zero
from kpredict.eager.launches import contiguous, memcpy, sync, workspace
from kpredict.eager.matrices import (
    LETTER,
    batch_of,
    check_info,
    cloned_column_major,
    column_major,
    factor_qr,
    per_matrix,
    pointers,
    solve_triangle,
    solver,
    turned,
)
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.eager.shaping import unsqueeze
from kpredict.model import Launch, Op, Target, Tensor

_LINEAR = "aten/src/ATen/native/LinearAlgebra.cpp, 2.6"
_LAPACK = "aten/src/ATen/native/BatchLinearAlgebra.cpp and cuda/linalg, 2.6"


def _product(host: Host, a: Tensor, b: Tensor) -> Tensor:
    """`matmul` of two batches of matrices."""
    if a.ndim == 2:
        out = contiguous(a, shape=(a.shape[0], b.shape[1]))
        return host.call("aten.mm.default", out, self=a, mat2=b)
    x, y = (replace(t, shape=(batch_of(t), *t.shape[-2:]), stride=t.stride[-3:]) for t in (a, b))
    out = contiguous(x, shape=(x.shape[0], x.shape[1], y.shape[2]))
    host.call("aten.bmm.default", out, self=x, mat2=y)
    return contiguous(out, shape=(*a.shape[:-1], b.shape[-1]))


@rule("aten.linalg_pinv", source=_LINEAR)
def pinv(op: Op, target: Target) -> Iterable[Launch]:
    """Tolerances; the SVD (the eigenvalues, if Hermitian); singular values inverted where they pass
    the tolerance; the product of the factors."""
    host = Host(target)
    a = op["self"]
    rows, columns = a.shape[-2:]
    k, batch = min(rows, columns), a.shape[:-2]
    limits = []
    for name in ("atol", "rtol"):
        limit = op.get(name)
        if not isinstance(limit, Tensor):  # get_atol_rtol: doubles of no dimension
            limit = contiguous(a, shape=(), dtype="float64")
            host.add(fill(limit, because=f"{name} by default"))
        limits.append(unsqueeze(limit, limit.ndim))
    s = contiguous(a, shape=(*batch, k))
    u, vh = column_major(a, (*batch, rows, k)), turned(column_major(a, (*batch, columns, k)))
    if op["hermitian"]:
        host.call("aten._linalg_eigh.default", s, u, A=a, UPLO="L", compute_v=True)
    else:
        host.call(
            "aten._linalg_svd.default", u, s, vh, A=a, full_matrices=False, compute_uv=True,
            driver=None,
        )  # fmt: skip
    if not s.numel:
        return host.launches
    largest = narrow(s, s.ndim - 1, 0, 1)
    absolute, relative = limits
    scaled_limit = contiguous(a, shape=(*batch, 1), dtype=relative.dtype)
    host.call("aten.mul.Tensor", scaled_limit, self=relative, other=largest)
    bound = replace(contiguous(scaled_limit), dtype=absolute.dtype)
    host.call("aten.maximum.default", bound, self=absolute, other=scaled_limit)
    nothing = contiguous(s, shape=())
    host.add(fill(nothing, because="0 below the tolerance"))
    inverse, passes = contiguous(s), contiguous(s, dtype="bool")
    host.call("aten.reciprocal.default", inverse, self=s)
    host.call("aten.gt.Tensor", passes, self=s, other=bound)
    chosen = contiguous(s)
    host.call("aten.where.self", chosen, condition=passes, self=inverse, other=nothing)
    v = turned(vh)
    scaled = column_major(v) if turned(v).is_contiguous else contiguous(v)
    host.call("aten.mul.Tensor", scaled, self=v, other=unsqueeze(chosen, chosen.ndim - 1))
    _product(host, scaled, turned(u))
    return host.launches


@rule("aten.linalg_lstsq", source=_LAPACK)
def lstsq(op: Op, target: Target) -> Iterable[Launch]:
    """Both operands are copied in columns; QR, its transpose times the right side, a triangular
    solve; for many small systems one cuBLAS `gels`; residuals; the check of errors."""
    host = Host(target)
    a, b = op["self"], op["b"]
    rows, columns = a.shape[-2:]
    info = contiguous(a, shape=(max(batch_of(a), 1),) if a.ndim > 2 else (), dtype="int32")
    host.add(zero(info, because="error codes"))
    if b.ndim < a.ndim:
        b = unsqueeze(b, b.ndim)
    solution = column_major(b, (*b.shape[:-2], max(rows, columns), b.shape[-1]))
    host.add(copy(narrow(solution, solution.ndim - 2, 0, rows), b, because="solved in place"))
    work, copies = cloned_column_major(a)
    host.add(copies)
    letter, matrices = LETTER[a.dtype], batch_of(a)
    if rows >= columns and rows <= 256 and matrices >= max(2, rows // 16):
        host.add([*pointers(matrices), *pointers(matrices)])
        host.add([solver(f"cublas{letter}gelsBatched", [work, solution], [solution, info])])
    else:
        tau = contiguous(a, shape=(*a.shape[:-2], min(rows, columns)))
        if rows < columns:  # the reflectors of the transpose
            work, copies = cloned_column_major(turned(a))
            host.add(copies)
        host.add(factor_qr(work, tau))
        error = workspace(1, "int32")
        name = f"cusolverDn{letter}{'unmqr' if a.is_complex else 'ormqr'}"
        turn = [*zero(error, because="error code")]
        turn += per_matrix(name, work, [work, tau, solution], [solution, error])
        back = solve_triangle(narrow(work, work.ndim - 2, 0, min(rows, columns)), solution)
        host.add([*turn, *back] if rows >= columns else [*back, *turn])
    if rows > columns:
        rest = narrow(solution, solution.ndim - 2, columns, rows - columns)
        host.call("aten.pow_.Scalar", rest, self=rest, exponent=2)
        sums = contiguous(rest, shape=(*rest.shape[:-2], rest.shape[-1]))
        host.call("aten.sum.dim_IntList", sums, self=rest, dim=(-2,), keepdim=False, dtype=None)
    host.add(check_info(info, target))
    return host.launches


@rule("aten.linalg_matrix_exp", source=f"{_LINEAR} mexp_impl")
def matrix_exp(op: Op, target: Target) -> Iterable[Launch]:
    """The 1-norm of every matrix is read by the host, which picks a polynomial for each; supposed
    here: all are so small that the first, I + A, will do."""
    host = Host(target)
    a, out = op["self"], op.out
    if a.numel == 0:
        return host.launches
    n = a.shape[-1]
    if n == 1:
        host.call("aten.exp.default", out, self=a)
        return host.launches
    if a.ndim == 2:
        a = unsqueeze(a, 0)
    a = replace(a, shape=(batch_of(a), n, n), stride=a.stride[-3:])
    sizes, sums = contiguous(a), contiguous(a, shape=a.shape[:-1])
    norms = contiguous(a, shape=a.shape[:1])
    host.call("aten.abs.default", sizes, self=a)
    host.call("aten.sum.dim_IntList", sums, self=sizes, dim=(-2,), keepdim=False, dtype=None)
    picks = contiguous(norms, dtype="int64")
    host.call("aten.max.dim", norms, picks, self=sums, dim=-1, keepdim=False)
    host.add([memcpy("DtoH", norms, norms), sync("the host picks a polynomial by the norm")])
    host.add(fill(out, because="NaN until set"))
    host.add([memcpy("HtoD", picks, picks), sync("the host waits for the copy")])
    chosen = contiguous(a)
    host.call("aten.index_select.default", chosen, self=a, dim=0, index=picks)
    powers = contiguous(a, shape=(2, *a.shape))
    first, second = contiguous(a), contiguous(a)
    ones = contiguous(a, shape=(n,))
    host.add(fill(contiguous(ones, shape=(1,)), because="ones"))
    identity = contiguous(a, shape=(n, n))
    host.add(zero(identity, because="the identity"))
    diagonal = replace(identity, shape=(n,), stride=(n + 1,))
    host.add(copy(diagonal, replace(ones, stride=(0,)), because="the identity"))
    host.add(copy(first, expand(identity, first.shape), because="A to the power of 0"))
    host.add(copy(second, chosen, because="A to the power of 1"))
    total = contiguous(a)
    host.call("aten.sum.dim_IntList", total, self=powers, dim=(0,), keepdim=False, dtype=None)
    host.call(
        "aten._index_put_impl_.default", out, self=replace(a, storage=out.storage),
        indices=(picks,), values=total, accumulate=False, unsafe=False,
    )  # fmt: skip
    return host.launches
