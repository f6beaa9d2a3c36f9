"""Embedding tables and bags, forwards and backwards (torch 2.13.0 on an H100)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpredict.model import Tensor

from .asking import H100, ask, names
from .test_elementwise import U, V, array

TABLE = array(1000, 64)
BAG: dict[str, Any] = {
    "scale_grad_by_freq": False, "mode": 0, "sparse": False, "per_sample_weights": None,
    "include_last_offset": False, "padding_idx": -1,
}  # fmt: skip


def ints(*shape: int) -> Tensor:
    return array(*shape, dtype="int64")


def backward(picks: Tensor, *, by_frequency: bool = False) -> list[str]:
    grad = array(*picks.shape, 64)
    return names(
        ask("aten.embedding_dense_backward.default", TABLE, grad_output=grad, indices=picks,
            num_weights=1000, padding_idx=-1, scale_grad_by_freq=by_frequency)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("picks", "kernel"),
    [(ints(10), "indexSelectSmallIndex"), (ints(100, 1000), "vectorized_gather_kernel")],
)
def test_a_look_up_is_an_index_select(picks: Tensor, kernel: str) -> None:
    found = ask("aten.embedding.default", array(*picks.shape, 64), weight=TABLE, indices=picks,
                padding_idx=-1, scale_grad_by_freq=False, sparse=False)  # fmt: skip
    assert names(found) == [kernel]


@pytest.mark.parametrize(("n", "sorts"), [(3072, False), (3073, True)])
def test_few_indices_are_not_sorted(n: int, sorts: bool) -> None:
    found = backward(ints(n))
    assert (found == [V, "embedding_backward_feature_kernel"]) is not sorts
    assert (found[-1] == "sum_and_scatter") is sorts


def test_frequencies_always_sort_and_count_twice() -> None:
    found = backward(ints(100), by_frequency=True)
    assert found.count("DeviceScanByKeyKernel") == 2
    assert found[-1] == "sum_and_scatter"


def test_one_dtype_for_indices_and_offsets() -> None:
    outputs = (array(100, 64), ints(1000), ints(100), ints(0))
    args = {"weight": TABLE, "offsets": ints(100), **BAG}
    kernel = "EmbeddingBag_updateOutputKernel_sum_mean"
    same = ask("aten._embedding_bag.default", *outputs, indices=ints(1000), **args)
    assert names(same) == [kernel]
    narrow = replace(ints(1000), dtype="int32")
    assert names(ask("aten._embedding_bag.default", *outputs, indices=narrow, **args)) == [
        U,
        kernel,
    ]


def test_the_largest_of_a_bag_has_a_kernel_of_its_own() -> None:
    outputs = (array(100, 64), ints(1000), ints(100), ints(100, 64))
    found = ask("aten._embedding_bag.default", *outputs, weight=TABLE, indices=ints(1000),
                offsets=ints(100), **{**BAG, "mode": 2})  # fmt: skip
    assert names(found) == ["EmbeddingBag_updateOutputKernel_max"]


def test_a_look_up_reads_no_more_than_it_is_asked_for() -> None:
    (launch,) = ask("aten.embedding.default", array(10, 64), weight=TABLE, indices=ints(10),
                    padding_idx=-1, scale_grad_by_freq=False, sparse=False)  # fmt: skip
    assert launch.reads[0].bytes == 10 * 64 * 4


@pytest.mark.parametrize(
    ("rows", "dtype", "last"),
    [
        (2, "float32", ["krn_partial_to_segment_idx", "compute_grad_weight_atomic_accumulate"]),
        (2, "bfloat16", [
            "krn_partial_to_segment_idx", V, "compute_grad_weight_atomic_accumulate", V,
        ]),
        (5000, "float32", ["compute_grad_weight", "sum_and_scatter"]),
    ],
)  # fmt: skip
def test_few_rows_of_many_indices_are_added_by_atomics(
    rows: int, dtype: str, last: list[str]
) -> None:
    """As launched for (4096,) indices and 768 columns by a CUDA build of 2.13.0."""
    table, grad = (array(n, 768, dtype=dtype) for n in (rows, 4096))
    found = names(
        ask("aten.embedding_dense_backward.default", table, grad_output=grad, indices=ints(4096),
            num_weights=rows, padding_idx=-1, scale_grad_by_freq=False)
    )  # fmt: skip
    assert found[-len(last) :] == last


@pytest.mark.parametrize(("torch", "wraps"), [("2.12.0", False), ("2.13.0", True)])
def test_rows_are_renormed_once_each(torch: str, wraps: bool) -> None:
    """Sorted, made unique, rescaled; from 2.13 on indices are wrapped first."""
    found = names(
        ask("aten.embedding_renorm_.default", TABLE, on=replace(H100, torch=torch), self=TABLE,
            indices=ints(100), max_norm=1.0, norm_type=2.0)
    )  # fmt: skip
    assert ("embedding_renorm_wrap_indices_kernel" in found) is wraps
    assert found[-1] == "renorm_kernel"
