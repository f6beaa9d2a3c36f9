"""Matrix products: the cuBLAS entry, the copies before it, what a bias costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpredict.model import Kind, Tensor
from kpredict.targets import target

from .asking import ask, names
from .test_elementwise import E, V, array

COPY = "Memcpy DtoD"


def turned(t: Tensor) -> Tensor:
    return replace(t, shape=(*t.shape[:-2], t.shape[-1], t.shape[-2]),
                   stride=(*t.stride[:-2], t.stride[-1], t.stride[-2]))  # fmt: skip


def product(a: Tensor, b: Tensor, **more: Any) -> list[str]:
    out = array(a.shape[0], b.shape[1], dtype=a.dtype)
    return names(ask("aten.mm.default", out, self=a, mat2=b, **more))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "cublasSgemm_v2"), ("float64", "cublasDgemm_v2"),
        ("float16", "cublasGemmEx"), ("bfloat16", "cublasGemmEx"),
        ("complex64", "cublasCgemm_v2"), ("complex128", "cublasZgemm_v2"),
    ],
)  # fmt: skip
def test_entry_point_by_dtype(dtype: str, name: str) -> None:
    assert product(array(16, 32, dtype=dtype), array(32, 8, dtype=dtype)) == [name]


def test_a_transposed_operand_is_taken_as_it_is() -> None:
    assert product(turned(array(32, 16)), array(32, 8)) == ["cublasSgemm_v2"]


def test_an_operand_without_a_stride_of_1_is_copied() -> None:
    every_other = Tensor((16, 32), (128, 2), "float32")
    assert product(every_other, array(32, 8)) == [E, "cublasSgemm_v2"]


def test_nothing_to_sum_is_zeros() -> None:
    assert product(array(16, 0), array(0, 8)) == [V]
    assert product(array(0, 16), array(16, 8)) == []


def test_flops() -> None:
    (call,) = ask("aten.mm.default", array(16, 8), self=array(16, 32), mat2=array(32, 8))
    assert call.kind is Kind.LIBRARY
    assert call.flops == 2 * 16 * 32 * 8


def test_cublas_conjugates_only_what_it_transposes() -> None:
    a, b = array(16, 32, dtype="complex64"), array(32, 8, dtype="complex64")
    assert product(replace(a, lazy="conj"), b)[-1] == "cublasCgemm_v2"
    assert len(product(replace(a, lazy="conj"), b)) == 2
    adjoint = replace(turned(array(32, 16, dtype="complex64")), lazy="conj")
    assert product(adjoint, b) == ["cublasCgemm_v2"]


def addmm(bias: Tensor, dtype: str = "float32", torch: str = "2.13.0", **more: Any) -> list[str]:
    out = array(16, 8, dtype=dtype)
    args = {"beta": 1, "alpha": 1, **more}
    on = target("h100", torch=torch)
    a, b = array(16, 32, dtype=dtype), array(32, 8, dtype=dtype)
    return names(ask("aten.addmm.default", out, self=bias, mat1=a, mat2=b, on=on, **args))


def test_a_bias_goes_into_the_epilogue() -> None:
    assert addmm(array(8)) == ["cublasLtMatmul"]
    assert addmm(array(8, dtype="bfloat16"), "bfloat16") == ["cublasLtMatmul"]


def test_a_matrix_is_copied_and_added_onto() -> None:
    assert addmm(array(16, 8)) == [COPY, "cublasSgemm_v2"]
    assert addmm(array(16, 8), beta=0) == ["cublasSgemm_v2"]
    assert addmm(array(8), beta=0.5) == [E, "cublasSgemm_v2"]


def test_half_matrices_need_no_copy_from_2_14() -> None:
    bias = array(16, 8, dtype="bfloat16")
    assert addmm(bias, "bfloat16") == [COPY, "cublasGemmEx"]
    assert addmm(bias, "bfloat16", torch="2.14.1") == ["cublasLtMatmul"]


def batched(a: Tensor, b: Tensor) -> list[str]:
    out = array(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype)
    return names(ask("aten.bmm.default", out, self=a, mat2=b))


def test_batches() -> None:
    assert batched(array(8, 16, 32), array(8, 32, 4)) == ["cublasSgemmStridedBatched"]
    assert batched(array(1, 16, 32), array(1, 32, 4)) == ["cublasSgemm_v2"]
    half = array(8, 16, 16, dtype="float16")
    assert batched(half, half) == ["cublasGemmStridedBatchedEx"]


def test_outer_products_are_a_triton_kernel() -> None:
    assert batched(array(8, 16, 1), array(8, 1, 4)) == ["_bmm_outer_product_kernel"]


def test_products_with_vectors() -> None:
    v, m = array(32), array(16, 32)
    assert names(ask("aten.mv.default", array(16), self=m, vec=v)) == ["cublasSgemv_v2"]
    half = [replace(t, dtype="float16") for t in (array(16), m, v)]
    assert names(ask("aten.mv.default", half[0], self=half[1], vec=half[2])) == ["cublasGemmEx"]
    added = ask("aten.addmv.default", array(16), self=array(16), mat=m, vec=v, beta=1, alpha=1)
    assert names(added) == [COPY, "cublasSgemv_v2"]


@pytest.mark.parametrize(
    ("op", "dtype", "lazy", "name"),
    [
        ("dot", "float32", "", "cublasSdot_v2"), ("dot", "bfloat16", "", "cublasDotEx"),
        ("dot", "complex64", "", "cublasCdotu_v2"), ("dot", "complex64", "conj", "cublasCdotc_v2"),
        ("vdot", "complex128", "", "cublasZdotc_v2"),
    ],
)  # fmt: skip
def test_dots(op: str, dtype: str, lazy: str, name: str) -> None:
    x = array(100, dtype=dtype)
    found = ask(f"aten.{op}.default", array(dtype=dtype), self=replace(x, lazy=lazy), other=x)
    assert names(found) == [name]


def test_scaled_products() -> None:
    a, b = array(32, 64, dtype="float8_e4m3fn"), turned(array(16, 64, dtype="float8_e4m3fn"))
    out = array(32, 16, dtype="bfloat16")
    rows, columns = array(32, 1), array(1, 16)
    for scale_a, scale_b, gpu, name in (
        (array(), array(), "l4", "cublasLtMatmul"), (rows, columns, "h100", "cublasLtMatmul"),
        (rows, columns, "l4", "Kernel"),
    ):  # fmt: skip
        found = ask(
            "aten._scaled_mm.default", out, on=target(gpu), self=a, mat2=b, scale_a=scale_a,
            scale_b=scale_b, bias=None,
        )  # fmt: skip
        assert names(found) == [name]


def test_groups_are_one_kernel_on_hopper_and_a_loop_before() -> None:
    half = "bfloat16"
    a, b, out = array(256, 64, dtype=half), array(4, 64, 32, dtype=half), array(256, 32, dtype=half)
    offsets = array(4, dtype="int32")

    def on(gpu: str) -> list[str]:
        return names(ask("aten._grouped_mm.default", out, on=target(gpu), self=a, mat2=b,
                         offs=offsets))  # fmt: skip

    assert on("h100") == ["prepare_grouped_gemm_data", "device_kernel"]
    assert on("a100") == ["Memcpy DtoH", "synchronize", *["cublasGemmEx"] * 4]
