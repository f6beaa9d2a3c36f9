"""CUB's launch sequences (those of torch 2.13.0 on an H100)."""

from __future__ import annotations

import pytest

from kpredict.eager import cub
from kpredict.model import Kind

from .asking import H100, names
from .test_elementwise import array

SWEEP, TILE = "DeviceRadixSortOnesweepKernel", "DeviceRadixSortSingleTileKernel"


@pytest.mark.parametrize(("largest", "bits"), [(0, 1), (1, 1), (2, 2), (255, 8), (256, 9)])
def test_a_key_has_the_bits_of_the_largest(largest: int, bits: int) -> None:
    assert cub.key_bits(largest) == bits


def test_few_keys_are_sorted_by_one_block() -> None:
    keys = array(1000, dtype="int64")
    assert names(cub.radix_sort([keys, keys], [keys, keys], target=H100)) == [TILE]


@pytest.mark.parametrize(("bits", "passes"), [(8, 1), (9, 2), (17, 3), (None, 8)])
def test_many_keys_take_a_sweep_per_byte(bits: int | None, passes: int) -> None:
    keys = array(100_000, dtype="int64")
    found = cub.radix_sort([keys, keys], [keys, keys], bits=bits, target=H100)
    assert names(found).count(SWEEP) == passes
    assert sum(launch.kind is Kind.MEMSET for launch in found) == 2 + passes
    assert names(found)[2:4] == [
        "DeviceRadixSortHistogramKernel", "DeviceRadixSortExclusiveSumKernel",
    ]  # fmt: skip


def test_scans_and_selections_initialize_their_state() -> None:
    x = array(1000, dtype="int64")
    assert names(cub.scan(x, x)) == ["DeviceScanInitKernel", "DeviceScanKernel"]
    assert names(cub.select([x], [x], 1000)) == [
        "DeviceCompactInitKernel",
        "DeviceSelectSweepKernel",
    ]
    assert names(cub.select([x], [x], 0)) == ["DeviceCompactInitKernel"]


@pytest.mark.parametrize(
    ("n", "kernels"),
    [
        (4096, ["DeviceReduceSingleTileKernel"]),
        (4097, ["DeviceReduceKernel", "DeviceReduceSingleTileKernel"]),
    ],
)
def test_a_reduction_of_more_than_a_tile_takes_two_kernels(n: int, kernels: list[str]) -> None:
    found = cub.reduce(array(n), array(1), accumulates="float32")
    assert names(found) == kernels
