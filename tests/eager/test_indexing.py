"""index, index_put and their kin: which kernels, by the shape of rows and indices.

Kernels and numbers of launches are those of torch 2.13.0 on an H100.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.model import Kind, Tensor

from .asking import ask, names
from .test_elementwise import V, array

TABLE = replace(array(1000, 64), storage=7)
GATHER, ELEMENTWISE = "vectorized_gather_kernel", "index_elementwise_kernel"
CHECKS = [
    "reduce_kernel", V, "_assert_async_cuda_kernel", V, "_assert_async_cuda_kernel",
]  # fmt: skip
WAIT = ["Memcpy DtoH", "synchronize"]
SELECT = ["DeviceCompactInitKernel", "DeviceSelectSweepKernel"]


def ints(*shape: int) -> Tensor:
    return array(*shape, dtype="int64")


def mask(*shape: int) -> Tensor:
    return array(*shape, dtype="bool")


@pytest.mark.parametrize(
    ("out", "x", "indices", "kernel"),
    [
        (TABLE, TABLE, (ints(1000),), GATHER),
        (array(100, 10, 64), TABLE, (ints(100, 10),), GATHER),
        (array(1000, 63), array(1000, 63), (ints(1000),), ELEMENTWISE),  # rows of 252 bytes
        (array(1000, 64), TABLE, (None, ints(64)), ELEMENTWISE),
        (array(1000), TABLE, (ints(1000), ints(1000)), ELEMENTWISE),
        (array(64, 64), array(64, 64, stride=(1, 64)), (ints(64),), ELEMENTWISE),
    ],
)
def test_whole_rows_are_gathered_others_looked_up(
    out: Tensor, x: Tensor, indices: tuple[Tensor | None, ...], kernel: str
) -> None:
    assert names(ask("aten.index.Tensor", out, self=x, indices=indices)) == [kernel]


def test_a_mask_is_turned_into_indices_first() -> None:
    rows = ask("aten.index.Tensor", array(500, 64), self=TABLE, indices=(mask(1000),))
    assert names(rows) == ["DeviceReduceSingleTileKernel", *WAIT, *SELECT, GATHER]
    elements = ask("aten.index.Tensor", array(32000), self=TABLE, indices=(mask(1000, 64),))
    assert names(elements) == [
        "DeviceReduceKernel", "DeviceReduceSingleTileKernel", *WAIT, *SELECT, "write_indices",
        ELEMENTWISE,
    ]  # fmt: skip


def test_storing_copies_only_out_of_place() -> None:
    args = {"self": TABLE, "indices": (ints(1000),), "values": array(1000, 64)}
    assert names(ask("aten.index_put_.default", TABLE, **args, accumulate=False)) == [ELEMENTWISE]
    assert names(ask("aten.index_put.default", array(1000, 64), **args, accumulate=False)) == [
        "Memcpy DtoD", ELEMENTWISE,
    ]  # fmt: skip


def test_adding_up_sorts_the_indices() -> None:
    args = {"indices": (ints(1000),), "values": array(1000, 64), "accumulate": True}
    checked = names(ask("aten.index_put_.default", TABLE, self=TABLE, **args))
    assert checked[:5] == CHECKS
    assert checked[-2:] == ["DeviceRadixSortSingleTileKernel", "indexing_backward_kernel"]
    unchecked = names(ask("aten._index_put_impl_.default", TABLE, self=TABLE, **args, unsafe=True))
    assert unchecked == [n for i, n in enumerate(checked) if i >= len(CHECKS)]


def test_adding_up_many_takes_three_passes_of_the_sort() -> None:
    big = replace(array(100_000, 64), storage=8)
    found = ask(
        "aten._index_put_impl_.default", big, self=big, indices=(ints(100_000),),
        values=array(100_000, 64), accumulate=True, unsafe=True,
    )  # fmt: skip
    assert names(found).count("DeviceRadixSortOnesweepKernel") == 3  # 17 bits of index
    assert sum(launch.kind is Kind.MEMSET for launch in found) == 5


def test_no_indices_launch_nothing() -> None:
    empty = {"self": TABLE, "indices": (ints(0),), "values": array(0, 64)}
    assert ask("aten.index_put_.default", TABLE, **empty, accumulate=True) == []
    assert ask("aten.index.Tensor", array(0, 64), self=TABLE, indices=(ints(0),)) == []


def test_a_gather_reads_the_rows_it_is_asked_for() -> None:
    (launch,) = ask("aten.index.Tensor", array(10, 64), self=TABLE, indices=(ints(10),))
    assert [a.bytes for a in launch.reads] == [10 * 64 * 4, 10 * 8]
    assert [a.bytes for a in launch.writes] == [10 * 64 * 4]


@pytest.mark.parametrize(
    ("name", "args", "kernels"),
    [
        ("aten.take.default", {"index": ints(50)}, [ELEMENTWISE]),
        ("aten.index_fill_.int_Scalar", {"dim": 0, "index": ints(50), "value": 0}, [ELEMENTWISE]),
        ("aten.index_copy_.default", {"dim": 0, "index": ints(50), "source": array(50, 64)},
         [ELEMENTWISE]),
    ],
)  # fmt: skip
def test_one_pass_over_what_is_touched(
    name: str, args: dict[str, object], kernels: list[str]
) -> None:
    out = array(50) if "take" in name else TABLE
    assert names(ask(name, out, self=TABLE, **args)) == kernels
