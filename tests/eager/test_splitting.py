"""Intervals for library calls against calls measured on real GPUs (A100 with TF32; T4; A100)."""

from __future__ import annotations

import pytest

from kpredict.eager.splitting import gemm_kernels, graph_kernels, kernels_of
from kpredict.targets import target

A100, T4 = target("a100"), target("t4")

# m, n, k of GEMMs in a profile of an A100, and their kernels
SPLIT = [(100, 256, 1024), (15, 647, 98304), (256, 256, 1024), (512, 64, 1024), (1024, 96, 512)]
WHOLE = [(98304, 647, 15), (1024, 256, 100), (1024, 768, 256)]


@pytest.mark.parametrize("dims", SPLIT)
def test_long_sums_over_few_tiles_are_expected_to_be_split(dims: tuple[int, int, int]) -> None:
    split = gemm_kernels(*dims, 1, A100, tensor_cores=True)
    assert (split.lo, split.hi, split.expected) == (1, 2, 2)


@pytest.mark.parametrize("dims", WHOLE)
def test_short_sums_and_many_tiles_are_one_kernel(dims: tuple[int, int, int]) -> None:
    assert gemm_kernels(*dims, 1, A100, tensor_cores=True).expected == 1


def test_tiles_that_fill_the_gpu_are_exactly_one_kernel() -> None:
    split = kernels_of(32768, 1024, 4096, 1, "float32", A100)
    assert (split.lo, split.hi) == (1, 1)


def test_a_batch_beyond_the_grid_is_several_kernels() -> None:
    split = kernels_of(196, 196, 128, 65536, "float32", A100)
    assert (split.lo, split.expected) == (2, 2)


def test_more_sms_split_what_fewer_take_whole() -> None:
    dims = (512, 2048, 2048)
    assert kernels_of(*dims, 1, "float16", T4).hi == 2
    assert kernels_of(1024, 2048, 2048, 1, "float16", T4).hi == 1
    assert kernels_of(1024, 2048, 2048, 1, "float16", A100).hi == 2


@pytest.mark.parametrize(
    ("channels", "filters", "size", "kernels"),
    [(103, 778, 21, 4), (281, 276, 23, 4), (12, 1244, 33, 2), (9, 64, 150, 2)],
)
def test_convolution_on_planes(channels: int, filters: int, size: int, kernels: int) -> None:
    split = graph_kernels(
        "forward", filter_size=9, channels=channels, filters=filters, image=size**2, groups=1,
        dtype="float32", layout="contiguous", target=T4,
    )  # fmt: skip
    assert split.lo <= kernels <= split.hi
    assert split.expected == kernels


def test_channels_last_needs_no_conversion() -> None:
    def width(layout: str) -> int:
        split = graph_kernels(
            "forward", filter_size=9, channels=64, filters=64, image=56**2, groups=1,
            dtype="bfloat16", layout=layout, target=A100,
        )  # fmt: skip
        return split.hi

    assert width("channels_last") < width("contiguous")
