"""Sorts by slice length, by how many slices there are, and Thrust's sorts."""

from __future__ import annotations

from typing import Any

import pytest

from kpredict.eager import thrust
from kpredict.model import Kind, Tensor
from kpredict.targets import target

from .asking import H100, ask, names
from .test_elementwise import array

A100 = target("a100")


def _sort(x: Tensor, dim: int = -1, stable: bool = False) -> list[str]:
    outs = (array(*x.shape, dtype=x.dtype), array(*x.shape, dtype="int64"))
    args: dict[str, Any] = {"self": x, "dim": dim, "descending": False, "stable": stable}
    return names(ask("aten.sort.stable", *outs, **args))


@pytest.mark.parametrize(
    ("size", "stable", "kernel"),
    [
        (32, False, "bitonicSortKVInPlace"),
        (32, True, "warpMergeSortKVInPlace"),
        (33, False, "warpMergeSortKVInPlace"),
        (129, False, "radixSortKVInPlace"),
        (4096, False, "radixSortKVInPlace"),
    ],
)
def test_short_slices_are_sorted_in_place(size: int, stable: bool, kernel: str) -> None:
    filled = ["elementwise_kernel_with_index", "elementwise_kernel"]
    found = _sort(array(10, size), stable=stable)
    assert found == ["Memcpy DtoD", *filled, "Memcpy DtoD", kernel]


def test_long_slices_are_sorted_together_below_128_and_one_by_one_from_there() -> None:
    few, many = _sort(array(127, 5000)), _sort(array(128, 5000))
    assert few[1] == "fill_index_and_segment_kernel"
    assert few.count("DeviceRadixSortOnesweepKernel") == 4 + 1  # by value, by 7 bits of segment
    assert many[1:] == ["fill_reverse_indices_kernel"] + ["DeviceSegmentedRadixSortKernel"] * 6


def test_of_a_million_elements_each_slice_is_a_sort_of_its_own() -> None:
    found = _sort(array(3, 1_000_000))
    assert found.count("DeviceRadixSortHistogramKernel") == 3


def test_short_keys_have_other_passes_before_compute_capability_9() -> None:
    keys, order = array(5000, dtype="uint8"), array(5000, dtype="int64")
    new = names(list(thrust.sort_by_key(keys, order, H100)))
    old = names(list(thrust.sort_by_key(keys, order, A100)))
    assert new.count("DeviceRadixSortOnesweepKernel") == 1
    assert new[-5:] == ["Memcpy DtoD", "synchronize"] * 2 + ["synchronize"]  # odd: copied back
    assert old.count("DeviceRadixSortDownsweepKernel") == 2
    assert "Memcpy DtoD" not in old


def test_half_types_are_merged() -> None:
    keys, order = array(5000, dtype="bfloat16"), array(5000, dtype="int64")
    found = names(list(thrust.sort_by_key(keys, order, H100)))
    assert found == [
        "DeviceMergeSortBlockSortKernel", "DeviceMergeSortPartitionKernel",
        "DeviceMergeSortMergeKernel", "synchronize",
    ]  # fmt: skip


def test_topk_takes_all_blocks_for_few_long_slices() -> None:
    for shape, multi in (((20, 19_999), False), ((20, 20_000), True), ((4001, 400), True)):
        outs = (array(shape[0], 5), array(shape[0], 5, dtype="int64"))
        args: dict[str, Any] = {
            "self": array(*shape),
            "k": 5,
            "dim": 1,
            "largest": True,
            "sorted": True,
        }
        found = names(ask("aten.topk.default", *outs, **args))
        assert ("computeBlockDigitCounts" in found) is multi
        assert found[-2:] == ["gatherTopK", "bitonicSortKVInPlace"]


def test_a_mode_beyond_2048_elements_asks_the_host_slice_by_slice() -> None:
    outs = (array(5), array(5, dtype="int64"))
    short = ask("aten.mode.default", *outs, self=array(5, 2048), dim=1, keepdim=False)
    assert names(short) == ["compute_mode"]
    long = ask("aten.mode.default", *outs, self=array(5, 3000), dim=1, keepdim=False)
    assert sum(launch.name == "Memcpy DtoH" for launch in long) == 5 * 6
    assert sum(launch.kind is Kind.MEMSET for launch in long) == 5 * 6
