"""Convolutions: who computes them, the copies of layouts, the bias, the gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpredict.model import Tensor
from kpredict.targets import target

from .asking import ask, names
from .test_elementwise import E, array

CUDNN = "cudnnBackendExecute"


def channels_last(t: Tensor) -> Tensor:
    _, c, h, w = t.shape
    return replace(t, stride=(c * h * w, 1, w * c, c))


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, gpu: str = "h100", **more: Any
) -> list[str]:
    space = x.ndim - 2
    args = {
        "stride": (1,) * space, "padding": (1,) * space, "dilation": (1,) * space,
        "transposed": False, "output_padding": (0,) * space, "groups": 1, **more,
    }  # fmt: skip
    out = array(x.shape[0], weight.shape[0], *x.shape[2:], dtype=x.dtype)
    if x.is_channels_last:
        out = channels_last(out)
    return names(ask("aten.convolution.default", out, on=target(gpu), input=x, weight=weight,
                     bias=bias, **args))  # fmt: skip


X, W = array(8, 64, 56, 56), array(64, 64, 3, 3)


def test_cudnn_and_a_kernel_for_the_bias() -> None:
    assert convolve(X, W) == [CUDNN]
    assert convolve(X, W, array(64)) == [CUDNN, E]
    assert convolve(array(8, 64, 1000), array(64, 64, 3), array(64)) == [CUDNN, E]


def test_the_weight_follows_the_inputs_layout() -> None:
    assert convolve(channels_last(X), W) == [E, CUDNN]
    assert convolve(channels_last(X), channels_last(W)) == [CUDNN]
    assert convolve(X, channels_last(W)) == [E, CUDNN]


def test_float64_is_never_channels_last() -> None:
    x, w = (channels_last(replace(t, dtype="float64")) for t in (X, W))
    assert convolve(x, w) == [E, E, CUDNN]


def test_depthwise() -> None:
    w = array(64, 1, 3, 3)
    assert convolve(X, w, groups=64) == ["conv_depthwise2d_forward_kernel"]
    uneven = array(64, 1, 1, 4)
    assert convolve(X, uneven, groups=64) == ["conv_depthwise2d_forward_kernel_generic"]
    assert convolve(channels_last(X), channels_last(w), groups=64) == [CUDNN]
    half, half_w = (replace(t, dtype="float16") for t in (X, w))
    assert convolve(half, half_w, groups=64) == [CUDNN]


def test_bfloat16_before_ampere_is_a_gemm_per_sample() -> None:
    x, w = (replace(t, dtype="bfloat16") for t in (X, W))
    assert convolve(x, w, gpu="a100") == [CUDNN]
    slow = convolve(x, w, gpu="t4")
    assert slow.count("im2col_kernel") == 8
    assert slow.count("cublasGemmEx") == 8


@pytest.mark.parametrize(
    ("mask", "found"),
    [
        ((True, True, False), [CUDNN, CUDNN]), ((False, True, False), [CUDNN]),
        ((True, True, True), [CUDNN, CUDNN, "reduce_kernel"]),
        ((False, False, True), ["reduce_kernel"]),
    ],
)  # fmt: skip
def test_gradients(mask: tuple[bool, bool, bool], found: list[str]) -> None:
    grads: list[Any] = [t if m else None for t, m in zip((X, W, array(64)), mask, strict=True)]
    launches = ask(
        "aten.convolution_backward.default", *grads, grad_output=X, input=X,
        weight=W, bias_sizes=(64,) if mask[2] else None, stride=(1, 1), padding=(1, 1),
        dilation=(1, 1), transposed=False, output_padding=(0, 0), groups=1, output_mask=mask,
    )  # fmt: skip
    assert sorted(names(launches)) == sorted(found)


def test_flops_count_every_multiply_and_add() -> None:
    (call,) = ask(
        "aten.convolution.default", X, input=X, weight=W, bias=None, stride=(1, 1), padding=(1, 1),
        dilation=(1, 1), transposed=False, output_padding=(0, 0), groups=1,
    )  # fmt: skip
    assert call.flops == 2 * 8 * 64 * 56 * 56 * 64 * 9
