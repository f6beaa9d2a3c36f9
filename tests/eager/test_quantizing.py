"""Fake quantization, its observers, integer weights (host code of release 2.6.0)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .asking import ask, names
from .test_elementwise import E, U, V, array

X = array(64, 128)
MASK = replace(X, dtype="bool")
PAIR = "unrolled_elementwise_kernel_for_multi_outputs"
READ = ["Memcpy DtoH", "synchronize"]
CHANNELS = array(64)
ZEROS = array(64, dtype="int32")
OBSERVER: dict[str, Any] = {
    "self": X, "observer_on": array(1, dtype="int64"), "fake_quant_on": array(1, dtype="int64"),
    "averaging_const": 0.01, "quant_min": 0, "quant_max": 255, "ch_axis": 0,
    "symmetric_quant": False,
}  # fmt: skip


def test_numbers_of_the_host_cost_one_kernel() -> None:
    found = ask("aten.fake_quantize_per_tensor_affine_cachemask.default", X, MASK, self=X,
                scale=0.1, zero_point=0, quant_min=0, quant_max=255)  # fmt: skip
    assert names(found) == [PAIR]


def test_integer_zero_points_are_checked_by_the_host() -> None:
    args: dict[str, Any] = {"self": X, "scale": CHANNELS, "axis": 0}
    name = "aten.fake_quantize_per_channel_affine_cachemask.default"
    checked = names(ask(name, X, MASK, zero_point=ZEROS, **args))
    assert checked == ["reduce_kernel", *READ, "reduce_kernel", *READ, E, E]
    assert names(ask(name, X, MASK, zero_point=CHANNELS, **args)) == [E, E]


def test_an_observer_is_three_kernels_before_the_rounding() -> None:
    found = ask(
        "aten._fused_moving_avg_obs_fq_helper.default", X, MASK, running_min=array(),
        running_max=array(), scale=array(1), zero_point=array(1, dtype="int32"),
        per_row_fake_quant=False, **OBSERVER,
    )  # fmt: skip
    assert names(found) == [
        "reduce_kernel", "MovingAverageMinMax", "ChooseQuantizationParamsKernelImpl", PAIR,
    ]  # fmt: skip


def test_an_observer_per_row_lets_the_host_read_its_switch() -> None:
    found = ask(
        "aten._fused_moving_avg_obs_fq_helper.default", X, MASK, running_min=CHANNELS,
        running_max=CHANNELS, scale=CHANNELS, zero_point=ZEROS, per_row_fake_quant=True, **OBSERVER,
    )  # fmt: skip
    assert names(found)[3:5] == READ
    assert names(found)[-2:] == [E, E]


def test_learned_scales_get_sums_of_gradients() -> None:
    found = ask("aten._fake_quantize_learnable_per_tensor_affine_backward.default", X, array(1),
                array(1), grad=X, self=X, scale=array(1), zero_point=array(1))  # fmt: skip
    kernels = [n for n in names(found) if n not in (*READ, "Memset")]
    assert kernels == [PAIR, "reduce_kernel", "reduce_kernel"]


def test_integers_per_channel_are_checked_and_cast() -> None:
    found = names(
        ask("aten.quantize_per_channel.default", replace(X, dtype="int8"), self=X, scales=CHANNELS,
            zero_points=ZEROS, axis=0)
    )  # fmt: skip
    assert found[:2] == [U, U]
    assert found[2:] == [V, "reduce_kernel", *READ] * 2 + [E]


def test_int8_weights_multiply_in_float() -> None:
    x, weight = array(32, 256, dtype="bfloat16"), array(64, 256, dtype="int8")
    found = ask("aten._weight_int8pack_mm.default", array(32, 64, dtype="bfloat16"), self=x,
                mat2=weight, scales=array(64, dtype="bfloat16"))  # fmt: skip
    assert names(found) == [U, U, "weight_int8pack_mm_kernel"]
    assert (found[-1].grid, found[-1].block) == ((4, 2, 1), (16, 16, 1))
