"""gather, scatter and index_select: one launch each, by rows, sizes and GPU (torch 2.13.0)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.model import Target, Tensor
from kpredict.targets import target

from .asking import H100, ask, names
from .test_elementwise import array

A100 = target("a100")
TABLE = replace(array(1000, 64), storage=7)
EACH = array(1000, 64, dtype="int64")
ROWS = replace(EACH, stride=(1, 0))  # one index per row, expanded
GATHER, ELEMENTWISE = "vectorized_gather_kernel", "_scatter_gather_elementwise_kernel"


@pytest.mark.parametrize(
    ("x", "index", "kernel"),
    [
        (TABLE, EACH, ELEMENTWISE),
        (TABLE, ROWS, GATHER),
        (replace(TABLE, dtype="bfloat16"), ROWS, GATHER),
        (replace(TABLE, offset=1), ROWS, ELEMENTWISE),  # rows not aligned to 16 bytes
        (array(1000, 63), replace(ROWS, shape=(1000, 63)), ELEMENTWISE),
    ],
)
def test_expanded_indices_gather_rows(x: Tensor, index: Tensor, kernel: str) -> None:
    out = replace(x, storage=9, offset=0)
    assert names(ask("aten.gather.default", out, self=x, dim=0, index=index)) == [kernel]


@pytest.mark.parametrize(
    ("index", "on", "kernel"),
    [
        (EACH, H100, ELEMENTWISE),
        (ROWS, H100, "tma_scatter_add_kernel"),
        (ROWS, A100, "vectorized_scatter_add_kernel"),
    ],
)
def test_rows_are_added_by_the_gpu_s_own_means(index: Tensor, on: Target, kernel: str) -> None:
    found = ask("aten.scatter_add_.default", TABLE, self=TABLE, dim=0, index=index,
                src=array(1000, 64), on=on)  # fmt: skip
    assert names(found) == [kernel]


def test_out_of_place_starts_with_a_copy() -> None:
    found = ask(
        "aten.scatter.value", array(1000, 64), self=TABLE, dim=0, index=EACH, value=1.0
    )  # fmt: skip
    assert names(found) == ["Memcpy DtoD", ELEMENTWISE]


@pytest.mark.parametrize(
    ("n", "width", "kernel"),
    [(16, 64, "indexSelectSmallIndex"), (17, 64, GATHER), (17, 63, ELEMENTWISE)],
)
def test_index_select_counts_its_indices(n: int, width: int, kernel: str) -> None:
    found = ask("aten.index_select.default", array(n, width), self=array(1000, width), dim=0,
                index=array(n, dtype="int64"))  # fmt: skip
    assert names(found) == [kernel]


@pytest.mark.parametrize(
    ("n", "torch", "kernel"),
    [
        (16, "2.13.0", "indexFuncSmallIndex"),
        (1000, "2.13.0", "indexFuncLargeIndex"),
        (1000, "2.14.1", "tma_scatter_add_kernel"),
    ],
)
def test_index_add_by_release(n: int, torch: str, kernel: str) -> None:
    found = ask(
        "aten.index_add_.default", TABLE, self=TABLE, dim=0, index=array(n, dtype="int64"),
        source=array(n, 64), alpha=1, on=target("h100", torch=torch),
    )  # fmt: skip
    assert names(found) == [kernel]
