"""Which attention back end CUDA takes, and the names of the memory-efficient kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpredict.eager.attending import (
    ALL,
    CUDNN,
    EFFICIENT,
    FLASH,
    MATH,
    Attention,
    choose,
    default_order,
)
from kpredict.targets import target

from .asking import ask, names
from .test_elementwise import array


def chosen(
    gpu: str, shape: tuple[int, ...] = (2, 8, 128, 64), dtype: str = "bfloat16", **more: Any
) -> str | None:
    q = array(*shape, dtype=dtype)
    call = Attention(q, more.pop("key", q), more.pop("value", q), None, 0.0, False, False)
    call = replace(call, **more)
    on = target(gpu)
    return choose(call, on, default_order(on), ALL)


@pytest.mark.parametrize(
    ("gpu", "dtype", "found"),
    [
        ("h100", "bfloat16", CUDNN), ("a100", "bfloat16", FLASH), ("t4", "float16", EFFICIENT),
        ("t4", "bfloat16", MATH), ("h100", "float32", EFFICIENT), ("h100", "float64", MATH),
    ],
)  # fmt: skip
def test_by_gpu_and_dtype(gpu: str, dtype: str, found: str) -> None:
    assert chosen(gpu, dtype=dtype) == found


def test_a_mask_rules_flash_out() -> None:
    assert chosen("a100", mask=array(128, 128, dtype="bfloat16")) == EFFICIENT
    assert chosen("a100", causal=True) == FLASH


def test_head_sizes() -> None:
    assert chosen("a100", (2, 8, 128, 256)) == FLASH
    assert chosen("a100", (2, 8, 128, 264)) == EFFICIENT
    assert chosen("h100", (2, 8, 128, 264)) == EFFICIENT


def test_grouped_heads_are_not_for_the_efficient_kernels() -> None:
    kv = array(2, 2, 128, 64, dtype="float32")
    assert chosen("a100", dtype="float32", key=kv, value=kv, grouped=True) == MATH
    half = replace(kv, dtype="bfloat16")
    assert chosen("a100", key=half, value=half, grouped=True) == FLASH


def test_what_is_switched_off_is_not_taken() -> None:
    q = array(2, 8, 128, 64, dtype="bfloat16")
    on = target("a100")
    call = Attention(q, q, q, None, 0.0, False, False)
    assert choose(call, on, default_order(on), ALL - {FLASH}) == EFFICIENT
    assert choose(call, on, default_order(on), frozenset({MATH})) == MATH


@pytest.mark.parametrize(
    ("gpu", "shape", "dtype", "name"),
    [
        ("h100", (2, 8, 128, 64), "float32", "fmha_cutlassF_f32_aligned_64x64_rf_sm80"),
        ("h100", (1, 16, 4096, 128), "bfloat16", "fmha_cutlassF_bf16_aligned_64x128_rf_sm80"),
        ("t4", (2, 8, 128, 64), "float32", "fmha_cutlassF_f32_aligned_64x64_rf_sm75"),
    ],
)
def test_efficient_forward(gpu: str, shape: tuple[int, ...], dtype: str, name: str) -> None:
    q = array(*shape, dtype=dtype)
    launches = ask(
        "aten._scaled_dot_product_efficient_attention.default", q, array(*shape[:3]),
        on=target(gpu), query=q, key=q, value=q, attn_bias=None, compute_log_sumexp=False,
        dropout_p=0.0, is_causal=False,
    )  # fmt: skip
    assert names(launches) == [name]
    batch, heads, length, size = shape
    assert launches[0].flops == 4 * batch * heads * length * length * size
