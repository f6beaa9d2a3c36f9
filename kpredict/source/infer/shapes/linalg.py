"""Decompositions of matrices: results are stored by columns, as LAPACK wants them."""

from __future__ import annotations

from kpredict.source.infer.shapes.pointwise import broadcast
from kpredict.source.infer.shapes.registry import (
    Arguments,
    dims,
    fresh,
    known,
    like,
    rank,
    shape,
)  # fmt: skip
from kpredict.source.infer.values import Array, Dim

REAL = {"complex64": "float32", "complex128": "float64"}


def smaller(m: Dim, n: Dim) -> Dim:
    return None if m is None or n is None else min(m, n)


def column_major(x: Array) -> Array:
    """A new array of its shape whose matrices are stored by columns, as LAPACK wants them."""
    out = like(x, x.shape)
    if out.stride is None or len(out.stride) < 2 or out.sizes is None:
        return out
    rows = out.sizes[-2]
    return fresh(out.sizes, out.dtype, out.device, (*out.stride[:-2], 1, max(rows, 1)))


@shape("linalg_cholesky_ex", "linalg_inv_ex")
def cholesky_ex(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["self"] if "self" in a else a["A"]
    return column_major(x), fresh(dims(x)[:-2], "int32", x.device)


@shape("_linalg_eigh")
def eigh(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["A"]
    vectors = column_major(x) if a.get("compute_v", True) is not False else like(x, (0,))
    return like(x, dims(x)[:-1]), vectors


@shape("linalg_qr")
def qr(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["A"]
    *batch, m, n = dims(x)
    k = smaller(m, n) if a.get("mode", "reduced") == "reduced" else m
    return column_major(like(x, (*batch, m, k))), column_major(like(x, (*batch, k, n)))


@shape("_linalg_svd")
def svd(a: Arguments) -> tuple[Array, Array, Array]:
    x: Array = a["A"]
    *batch, m, n = dims(x)
    k = smaller(m, n)
    values = fresh((*batch, k), REAL.get(x.dtype or "", x.dtype), x.device)
    if a.get("compute_uv") is False:
        return like(x, (0,)), values, like(x, (0,))
    full = known(a.get("full_matrices"))
    u = like(x, (*batch, m, m if full else k))
    vh = like(x, (*batch, n if full else k, n))
    return column_major(u), values, column_major(vh)


@shape("_linalg_solve_ex")
def solve(a: Arguments) -> tuple[Array, ...]:
    x, b = a["A"], a["B"]
    pivots = fresh(dims(x)[:-1], "int32", x.device)
    out = column_major(b) if rank(b) > 1 else like(b, b.shape)
    return out, column_major(x), pivots, fresh(dims(x)[:-2], "int32", x.device)


@shape("_linalg_det")
def det(a: Arguments) -> tuple[Array, ...]:
    x: Array = a["A"]
    return like(x, dims(x)[:-2]), column_major(x), fresh(dims(x)[:-1], "int32", x.device)


@shape("_linalg_slogdet")
def slogdet(a: Arguments) -> tuple[Array, ...]:
    x: Array = a["A"]
    batch = dims(x)[:-2]
    real = fresh(batch, REAL.get(x.dtype or "", x.dtype), x.device)
    return like(x, batch), real, column_major(x), fresh(dims(x)[:-1], "int32", x.device)


@shape("linalg_lu_factor_ex")
def lu_factor(a: Arguments) -> tuple[Array, ...]:
    x: Array = a["A"]
    *batch, m, n = dims(x)
    pivots = fresh((*batch, smaller(m, n)), "int32", x.device)
    return column_major(x), pivots, fresh(batch, "int32", x.device)


@shape("linalg_lstsq")
def lstsq(a: Arguments) -> tuple[Array, ...]:
    x, b = a["self"], a["b"]
    *batch, _, n = dims(x)
    solution = like(x, (*batch, n, *dims(b)[len(batch) + 1 :]))
    return solution, like(x, (0,)), fresh((0,), "int64", x.device), like(x, (0,))


@shape("linalg_cross")
def cross(a: Arguments) -> Array:
    return like(a["self"], broadcast([a["self"].shape, a["other"].shape]))


@shape("linalg_solve_triangular")
def solve_triangular(a: Arguments) -> Array:
    return column_major(a["B"])


@shape("linalg_householder_product", "linalg_matrix_exp")
def same(a: Arguments) -> Array:
    return column_major(a.get("input", a.get("self")))


@shape("_linalg_check_errors")
def check_errors(a: Arguments) -> tuple[()]:
    return ()


@shape("cholesky_solve")
def cholesky_solve(a: Arguments) -> Array:
    return column_major(a["self"])
