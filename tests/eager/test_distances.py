"""Distances of all pairs, trilinear sums."""

from __future__ import annotations

from .asking import ask, names
from .test_elementwise import V, array


def distances(rows: int, p: float = 2.0, mode: int | None = None) -> list[str]:
    x, out = array(rows, 64), array(rows, rows)
    return names(ask("aten._cdist_forward.default", out, x1=x, x2=x, p=p, compute_mode=mode))


def test_few_rows_are_one_block_per_pair() -> None:
    assert distances(10) == distances(1000, p=1.0) == ["cdist_kernel_cuda_impl"]
    assert distances(1000, mode=2) == ["cdist_kernel_cuda_impl"]


def test_many_rows_are_a_matrix_product() -> None:
    cat = "CatArrayBatchedCopy_alignedK_contig"
    assert distances(1000) == [
        V, "reduce_kernel", V, V, "reduce_kernel", V, V, cat, cat, "cublasSgemm_v2", V, V,
    ]  # fmt: skip
    assert distances(10, mode=1)[9] == "cublasSgemm_v2"


def test_gradient_is_summed_over_the_other_side() -> None:
    x, d = array(10, 64), array(10, 10)
    launches = ask("aten._cdist_backward.default", x, grad=d, x1=x, x2=x, p=2.0, cdist=d)
    assert names(launches) == ["cdist_backward_kernel_cuda_impl", "reduce_kernel"]


def test_bilinear_sums_over_each_output() -> None:
    x, w, y = array(100, 20), array(40, 20, 30), array(100, 30)
    launches = ask(
        "aten._trilinear.default", array(100, 40), i1=x, i2=w, i3=y, expand1=(1, 3), expand2=(0,),
        expand3=(1, 2), sumdim=(2, 3), unroll_dim=1,
    )  # fmt: skip
    found = names(launches)
    assert found[0] == V
    assert found.count("cublasSgemm_v2") == found.count("cublasSgemmStridedBatched") == 40
