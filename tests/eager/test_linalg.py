"""Linear algebra: cuSOLVER and cuBLAS calls and the kernels around them, as 2.13.0 made them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.model import Tensor

from .asking import ask, names
from .test_elementwise import U, V, array

E, I = "elementwise_kernel", "elementwise_kernel_with_index"  # noqa: E741
COPY = "Memcpy DtoD"


def columns(t: Tensor) -> Tensor:
    """The same shape, each matrix stored column by column."""
    return replace(t, stride=(*t.stride[:-2], 1, t.shape[-2]))


def codes(a: Tensor) -> Tensor:
    return array(*a.shape[:-2], dtype="int32")


@pytest.mark.parametrize(
    ("a", "found"),
    [
        (array(32, 32), [E, "cusolverDnXpotrf", "triu_tril_kernel"]),
        (array(8, 32, 32), [E, I, "cusolverDnSpotrfBatched", "triu_tril_kernel"]),
    ],
)
def test_cholesky(a: Tensor, found: list[str]) -> None:
    launches = ask("aten.linalg_cholesky_ex.default", columns(a), codes(a), self=a, upper=False,
                   check_errors=False)  # fmt: skip
    assert names(launches) == found


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((32, 32), [E, "cusolverDnSgetrf"]),
        ((512, 512), [E, "cusolverDnSgetrf"]),
        ((8, 32, 32), [E, I, "cublasSgetrfBatched"]),
        ((3, 600, 600), [E, *["cusolverDnSgetrf"] * 3]),
        ((0, 0), [V]),
    ],
)
def test_lu(shape: tuple[int, ...], found: list[str]) -> None:
    a = array(*shape)
    pivots = array(*shape[:-1], dtype="int32")
    launches = ask("aten.linalg_lu_factor_ex.default", columns(a), pivots, codes(a), A=a,
                   pivot=True, check_errors=False)  # fmt: skip
    assert names(launches) == found


def solved(n: int, right: int) -> list[str]:
    a, b = array(n, n), array(n, right)
    pivots = array(n, dtype="int32")
    launches = ask("aten._linalg_solve_ex.default", columns(b), columns(a), pivots, codes(a), A=a,
                   B=b, left=True, check_errors=True)  # fmt: skip
    return names(launches)


def test_solve() -> None:
    permutation = [I, "_elementwise_kernel", I, COPY]
    scattered = ["_scatter_gather_elementwise_kernel", E, "_scatter_gather_elementwise_kernel", E]
    check = [U, COPY, "Memcpy DtoH", "synchronize"]
    triangles = ["cublasStrsm_v2"] * 2
    found = [E, "cusolverDnSgetrf", E, *permutation, *scattered, *triangles, *check]
    assert solved(512, 8) == found
    assert "cublasSgetrsBatched" in solved(8, 2)


def test_qr_of_many_small_matrices_is_one_call_but_for_q() -> None:
    a = array(8, 32, 32)
    launches = ask("aten.linalg_qr.default", columns(a), columns(a), A=a, mode="reduced")
    assert names(launches) == [
        E, I, I, "cublasSgeqrfBatched", "triu_tril_kernel", V, *["cusolverDnSorgqr"] * 8,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("n", "name"), [(32, "cusolverDnSgesvdjBatched"), (512, "cusolverDnSgesvdj")]
)
def test_svd_by_size(n: int, name: str) -> None:
    a = array(n, n)
    launches = ask("aten._linalg_svd.default", columns(a), array(n), a, A=a, full_matrices=False,
                   compute_uv=True, driver=None)  # fmt: skip
    assert names(launches) == [
        V, E, name, "Memcpy DtoH", "synchronize", U, COPY, "Memcpy DtoH", "synchronize",
    ]  # fmt: skip


def test_eigh_is_batched_for_one_too() -> None:
    a = array(32, 32)
    launches = ask("aten._linalg_eigh.default", array(32), columns(a), A=a, UPLO="L",
                   compute_v=True)  # fmt: skip
    assert names(launches)[:3] == [E, V, "cusolverDnXsyevBatched"]


def test_complex_matrices_take_the_complex_entries() -> None:
    a = array(8, 4, dtype="complex128")
    r = array(4, 4, dtype="complex128")
    launches = ask("aten.linalg_qr.default", columns(a), columns(r), A=a, mode="reduced")
    assert "cusolverDnZungqr" in names(launches)
