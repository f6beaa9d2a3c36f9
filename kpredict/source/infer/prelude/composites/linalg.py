# ruff: noqa
# mypy: ignore-errors
"""Decompositions, solvers, powers and norms of matrices (BatchLinearAlgebra.cpp)."""

import math

import torch


def _checked(info, name):
    """The host reads whether a factorization failed."""
    aten._linalg_check_errors(info, api_name=name, is_matrix=False)
    sync(name, info)


def linalg_cholesky(input, upper=False):
    factor, info = aten.linalg_cholesky_ex(input, upper=upper)
    _checked(info, "linalg.cholesky")
    return factor


def cholesky(input, upper=False):
    return aten.linalg_cholesky_ex(input, upper=upper)[0]


def linalg_eigh(A, UPLO="L"):
    return aten._linalg_eigh(A, UPLO, True)


def linalg_eigvalsh(A, UPLO="L"):
    return aten._linalg_eigh(A, UPLO, False)[0]


def linalg_inv(A):
    inverse, info = aten.linalg_inv_ex(A)
    _checked(info, "linalg.inv")
    return inverse


def inverse(input):
    return linalg_inv(input)


def linalg_solve_ex(A, B, left=True, check_errors=False):
    result, _, _, info = aten._linalg_solve_ex(A, B, left=left)
    return result, info


def linalg_solve(A, B, left=True):
    result, _, _, info = aten._linalg_solve_ex(A, B, left=left)
    _checked(info, "linalg.solve")
    return result


def linalg_tensorsolve(A, B, dims=None):
    n = B.numel()
    return linalg_solve(A.reshape(n, n), B.reshape(n)).reshape(A.shape[B.dim() :])


def linalg_svd(A, full_matrices=True, driver=None):
    return aten._linalg_svd(A, full_matrices, True, driver=driver)


def svd(input, some=True, compute_uv=True):
    u, s, vh = aten._linalg_svd(input, not some, True)
    return u, s, vh.mH


def linalg_svdvals(A, driver=None):
    return aten._linalg_svd(A, False, False, driver=driver)[1]


def linalg_det(A):
    return aten._linalg_det(A)[0]


def det(input):
    return aten._linalg_det(input)[0]


def linalg_slogdet(A):
    sign, logabsdet, _, _ = aten._linalg_slogdet(A)
    return sign, logabsdet


def slogdet(input):
    return linalg_slogdet(input)


def logdet(input):
    sign, logabsdet = linalg_slogdet(input)
    return where(aten.eq(sign, -1.0), math.nan, logabsdet)


def linalg_pinv(input, atol=None, rtol=None, hermitian=False):
    atol = torch.zeros((), device=input.device)
    rtol = torch.full((), 1e-6, device=input.device)
    u, s, vh = aten._linalg_svd(input, False, True)
    least = aten.maximum(atol, aten.mul(rtol, s.narrow(-1, 0, 1)))
    kept = where(aten.gt(s, least), aten.reciprocal(s), 0.0)
    return matmul(vh.mH, aten.mul(kept.unsqueeze(-1), u.mH))


def pinverse(input, rcond=1e-15):
    return linalg_pinv(input)


def linalg_matrix_rank(A, atol=None, rtol=None, hermitian=False):
    atol = torch.zeros((), device=A.device)
    rtol = torch.full((), 1e-6, device=A.device)
    s = linalg_svdvals(A)
    least = aten.maximum(atol, aten.mul(rtol, s.narrow(-1, 0, 1)))
    return aten.sum(aten.gt(s, least), (-1,))


def linalg_cond(A, p=None):
    if p is None or p == 2:
        s = linalg_svdvals(A)
        return aten.div(s.select(-1, 0), s.select(-1, -1))
    return missing("linalg.cond", A)


def linalg_lstsq(A, B, rcond=None, driver=None):
    out = aten.linalg_lstsq(A, B)
    sync("linalg.lstsq", A)
    return out


def linalg_lu_factor(A, pivot=True):
    lu, pivots, info = aten.linalg_lu_factor_ex(A)
    _checked(info, "linalg.lu_factor")
    return lu, pivots


def linalg_matrix_power(A, n):
    """LinearAlgebra.cpp: by squaring; a negative power inverts first."""
    if n < 0:
        return linalg_matrix_power(linalg_inv(A), -n)
    if n == 0:
        return torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    out = None
    square = A
    while n > 0:
        if n % 2 == 1:
            out = square if out is None else matmul(out, square)
        n = n // 2
        if n > 0:
            square = matmul(square, square)
    return out


def matrix_power(input, n):
    return linalg_matrix_power(input, n)


def linalg_matrix_exp(A):
    return aten.linalg_matrix_exp(A)


def matrix_exp(input):
    return aten.linalg_matrix_exp(input)


def linalg_multi_dot(tensors):
    out = tensors[0]
    for t in tensors[1:]:
        out = matmul(out, t)
    return out


def linalg_vecdot(x, y, dim=-1):
    return aten.sum(aten.mul(x.conj() if x.is_complex() else x, y), (dim,))


def cross(input, other, dim=None):
    if dim is None and known(input.shape):
        dim = [i for i, n in enumerate(input.shape) if n == 3][0]
    return aten.linalg_cross(input, other, dim=dim)


def _basis(A, q, niter):
    """torch/_lowrank.py get_approximate_basis."""
    r = torch.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    found = aten.linalg_qr(matmul(A, r))[0]
    for _ in range(niter):
        found = aten.linalg_qr(matmul(A.mH, found))[0]
        found = aten.linalg_qr(matmul(A, found))[0]
    return found


def svd_lowrank(A, q=6, niter=2, M=None):
    found = _basis(A, q, niter)
    u, s, vh = aten._linalg_svd(matmul(found.mH, A), False, True)
    return matmul(found, u), s, vh.mH


def pca_lowrank(A, q=None, center=True, niter=2):
    q = sorted([6, *A.shape[-2:]])[0] if q is None else q
    if center:
        A = aten.sub(A, aten.mean(A, (-2,), True))
    return svd_lowrank(A, q, niter)


def qr(input, some=True):
    return aten.linalg_qr(input)


def linalg_matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, dtype=None):
    if ord == "fro":
        return aten.linalg_vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if ord in ("nuc", 2, -2):
        s = linalg_svdvals(A if dim == (-2, -1) or A.dim() == 2 else missing("matrix_norm", A))
        if ord == "nuc":
            return aten.sum(s, (-1,), keepdim)
        return aten.amax(s, (-1,), keepdim) if ord == 2 else aten.amin(s, (-1,), keepdim)
    first, second = (dim[0], dim[1]) if ord in (1, -1) else (dim[1], dim[0])
    sums = aten.linalg_vector_norm(A, 1, (first,), True)
    best = aten.amax(sums, (second,), True) if ord > 0 else aten.amin(sums, (second,), True)
    return best if keepdim else aten.squeeze(best, dim)
