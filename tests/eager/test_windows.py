"""Pooling, interpolation, padding, sampling and unfolding of images (torch 2.13.0 on an H100)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpredict.model import Tensor

from .asking import ask, names
from .test_elementwise import E, V, array


def last(t: Tensor) -> Tensor:
    """`t` in channels-last memory."""
    _, c, h, w = t.shape
    return replace(t, stride=(c * h * w, 1, c * w, c))


def ints(t: Tensor) -> Tensor:
    return replace(t, dtype="int64")


IMAGE, HALF, TWICE = array(8, 64, 56, 56), array(8, 64, 28, 28), array(8, 64, 112, 112)
SMALL, WIDE, TIGHT = array(8, 64, 7, 7), array(8, 64, 58, 58), array(8, 64, 54, 54)
CUBE, HALF_CUBE = array(2, 8, 16, 16, 16), array(2, 8, 8, 8, 8)

POOL: dict[str, Any] = {"kernel_size": (2, 2), "stride": (), "padding": (0, 0), "ceil_mode": False}
MAX: dict[str, Any] = {**POOL, "dilation": (1, 1)}
MAX_3D: dict[str, Any] = {
    "kernel_size": (2, 2, 2), "stride": (), "padding": (0, 0, 0), "dilation": (1, 1, 1),
    "ceil_mode": False,
}  # fmt: skip
AVERAGE: dict[str, Any] = {**POOL, "count_include_pad": True, "divisor_override": None}


@pytest.mark.parametrize(
    ("name", "outputs", "args", "kernels"),
    [
        ("max_pool2d_with_indices", [HALF, ints(HALF)], {"self": IMAGE, **MAX},
         ["max_pool_forward_nchw"]),
        ("max_pool2d_with_indices", [last(HALF), ints(last(HALF))], {"self": last(IMAGE), **MAX},
         ["max_pool_forward_nhwc"]),
        ("max_pool2d_with_indices_backward", [IMAGE],
         {"grad_output": HALF, "self": IMAGE, "indices": ints(HALF), **MAX},
         [V, "max_pool_backward_nchw"]),
        ("max_pool2d_with_indices_backward", [last(IMAGE)],
         {"grad_output": last(HALF), "self": last(IMAGE), "indices": ints(last(HALF)), **MAX},
         [V, "max_pool_backward_nhwc"]),
        ("max_pool3d_with_indices", [HALF_CUBE, ints(HALF_CUBE)], {"self": CUBE, **MAX_3D},
         ["max_pool3d_with_indices_single_out_frame"]),
        ("avg_pool2d", [HALF], {"self": IMAGE, **AVERAGE}, ["avg_pool2d_out_cuda_frame"]),
        ("avg_pool2d", [last(HALF)], {"self": last(IMAGE), **AVERAGE},
         ["avg_pool2d_out_cuda_frame_nhwc"]),
        ("avg_pool2d_backward", [IMAGE], {"grad_output": HALF, "self": IMAGE, **AVERAGE},
         ["avg_pool2d_backward_out_cuda_frame"]),
        ("_adaptive_avg_pool2d", [SMALL], {"self": IMAGE, "output_size": (7, 7)},
         ["adaptive_average_pool"]),
        ("_adaptive_avg_pool2d", [last(SMALL)], {"self": last(IMAGE), "output_size": (7, 7)},
         ["adaptive_average_pool_nhwc"]),
        ("_adaptive_avg_pool2d_backward", [IMAGE], {"grad_output": SMALL, "self": IMAGE},
         [V, "atomic_adaptive_average_gradinput"]),
    ],
)  # fmt: skip
def test_pooling(
    name: str, outputs: list[Tensor], args: dict[str, Any], kernels: list[str]
) -> None:
    assert names(ask(f"aten.{name}.default", *outputs, **args)) == kernels


SIZE: dict[str, Any] = {"output_size": (112, 112), "scales_h": 2.0, "scales_w": 2.0}
BACK: dict[str, Any] = {**SIZE, "input_size": (8, 64, 56, 56)}


@pytest.mark.parametrize(
    ("name", "out", "args", "kernels"),
    [
        ("upsample_nearest2d", TWICE, {"self": IMAGE, **SIZE}, ["upsample_nearest2d_out_frame"]),
        ("upsample_nearest2d_backward", IMAGE, {"grad_output": TWICE, **BACK},
         ["upsample_nearest2d_backward_out_frame"]),
        ("upsample_bilinear2d", TWICE, {"self": IMAGE, "align_corners": False, **SIZE},
         ["upsample_bilinear2d_out_frame"]),
        ("upsample_bilinear2d", last(TWICE), {"self": last(IMAGE), "align_corners": False, **SIZE},
         ["upsample_bilinear2d_nhwc_out_frame"]),
        ("upsample_bilinear2d_backward", IMAGE,
         {"grad_output": TWICE, "align_corners": False, **BACK},
         [V, "upsample_bilinear2d_backward_out_frame"]),
        ("_upsample_bilinear2d_aa", TWICE, {"self": IMAGE, "align_corners": False, **SIZE},
         ["upsample_gen2d_aa_out_frame"]),
    ],
)  # fmt: skip
def test_interpolation(name: str, out: Tensor, args: dict[str, Any], kernels: list[str]) -> None:
    assert names(ask(f"aten.{name}.default", out, **args)) == kernels


@pytest.mark.parametrize(
    ("name", "out", "args", "kernels"),
    [
        ("reflection_pad2d", WIDE, {"self": IMAGE, "padding": (1, 1, 1, 1)},
         ["reflection_pad2d_out_kernel"]),
        ("reflection_pad2d_backward", IMAGE,
         {"grad_output": WIDE, "self": IMAGE, "padding": (1, 1, 1, 1)},
         [V, "reflection_pad2d_backward_out_kernel"]),
        ("replication_pad2d", WIDE, {"self": IMAGE, "padding": (1, 1, 1, 1)},
         ["replication_pad_forward_kernel2d"]),
        ("constant_pad_nd", WIDE, {"self": IMAGE, "pad": (1, 1, 1, 1), "value": 0}, [V, E]),
        ("constant_pad_nd", TIGHT, {"self": IMAGE, "pad": (-1, -1, -1, -1), "value": 0}, [E]),
        ("constant_pad_nd", IMAGE, {"self": IMAGE, "pad": (0, 0), "value": 0}, ["Memcpy DtoD"]),
    ],
)  # fmt: skip
def test_padding(name: str, out: Tensor, args: dict[str, Any], kernels: list[str]) -> None:
    assert names(ask(f"aten.{name}.default", out, **args)) == kernels


def test_unfolding_takes_a_launch_per_image_and_folding_one() -> None:
    window: dict[str, Any] = {
        "kernel_size": (3, 3), "dilation": (1, 1), "padding": (0, 0), "stride": (1, 1),
    }  # fmt: skip
    columns = array(8, 576, 54 * 54)
    found = names(ask("aten.im2col.default", columns, self=IMAGE, **window))
    assert found.count("im2col_kernel") == 8
    folded = ask("aten.col2im.default", IMAGE, self=columns, output_size=(56, 56), **window)
    assert names(folded) == ["col2im_batched_kernel"]


def test_gradients_of_a_grid_are_added_into_zeros_if_wanted() -> None:
    x, grid, out = array(2, 3, 8, 8), array(2, 5, 5, 2), array(2, 3, 5, 5)
    args: dict[str, Any] = {"grad_output": out, "input": x, "grid": grid}
    kernel = "grid_sampler_2d_backward_kernel"
    both = ask("aten.grid_sampler_2d_backward.default", x, grid, output_mask=(True, True), **args)
    assert names(both) == [V, kernel]
    one = ask("aten.grid_sampler_2d_backward.default", grid, host=(None,),
              output_mask=(False, True), **args)  # fmt: skip
    assert names(one) == [kernel]


def test_aligned_corners_are_cudnn_s() -> None:
    found = ask("aten.cudnn_grid_sampler.default", array(2, 3, 5, 5), self=array(2, 3, 8, 8),
                grid=array(2, 5, 5, 2, stride=(100, 20, 4, 2)))  # fmt: skip
    assert names(found) == [E, "cudnnSpatialTfSamplerForward"]
