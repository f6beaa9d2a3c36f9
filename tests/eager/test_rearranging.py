"""flip, roll, repeat, triangles, gradients of views, searches, bins (torch 2.13.0)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpredict.model import Tensor

from .asking import ask, names
from .test_elementwise import SQUARE, E, U, V, array

ROW, HALF = array(1000), array(500, 1000)
WAIT = ["Memcpy DtoH", "synchronize"]


def ints(*shape: int) -> Tensor:
    return array(*shape, dtype="int64")


@pytest.mark.parametrize(
    ("name", "out", "args", "kernels"),
    [
        ("flip.default", SQUARE, {"dims": (0,)}, ["index_elementwise_kernel"]),
        ("roll.default", SQUARE, {"shifts": (3,), "dims": (0,)}, ["roll_cuda_kernel"]),
        ("roll.default", SQUARE, {"shifts": (3, 4), "dims": (0, 1)}, ["roll_cuda_kernel"] * 2),
        ("roll.default", SQUARE, {"shifts": (3,), "dims": ()}, ["roll_cuda_kernel"]),
        ("repeat.default", array(2000, 1000), {"repeats": (2, 1)}, [E]),
        ("tril.default", SQUARE, {"diagonal": 0}, ["triu_tril_kernel"]),
        ("trace.default", array(), {}, ["reduce_kernel"]),
        ("pixel_shuffle.default", array(250, 2000, 2), {"upscale_factor": 2}, [E]),
    ],
)
def test_elements_change_places(
    name: str, out: Tensor, args: dict[str, Any], kernels: list[str]
) -> None:
    x = array(1000, 500, 2) if "shuffle" in name else SQUARE
    assert names(ask(f"aten.{name}", out, self=x, **args)) == kernels


@pytest.mark.parametrize(
    ("name", "args", "kernels"),
    [
        ("select_backward", {"grad_output": ROW, "dim": 0, "index": 3}, [V, "Memcpy DtoD"]),
        ("select_backward", {"grad_output": ROW, "dim": 1, "index": 3}, [V, E]),
        ("slice_backward", {"grad_output": HALF, "dim": 0, "start": 0, "end": 500, "step": 1},
         [V, "Memcpy DtoD"]),
        ("slice_backward", {"grad_output": HALF, "dim": 0, "start": 0, "end": 1000, "step": 2},
         [V, E]),
        ("diagonal_backward", {"grad_output": ROW, "offset": 0, "dim1": 0, "dim2": 1}, [V, E]),
    ],
)  # fmt: skip
def test_the_gradient_of_a_view_is_zeros_and_a_copy(
    name: str, args: dict[str, Any], kernels: list[str]
) -> None:
    found = ask(f"aten.{name}.default", SQUARE, input_sizes=(1000, 1000), **args)
    assert names(found) == kernels


def test_a_search_wants_dense_operands_of_one_dtype() -> None:
    args = {"sorter": None, "out_int32": False, "right": False}
    plain = ask("aten.searchsorted.Tensor", ints(50), self=array(50),
                sorted_sequence=array(10), **args)  # fmt: skip
    assert names(plain) == ["searchsorted_cuda_kernel"]
    mixed = ask("aten.searchsorted.Tensor", ints(50), self=array(50, stride=(2,)),
                sorted_sequence=array(10, dtype="float64"), **args)  # fmt: skip
    assert names(mixed) == [E, U, "searchsorted_cuda_kernel"]


def test_a_histogram_without_a_range_reads_the_extremes() -> None:
    ranged = ask("aten.histc.default", array(100), self=SQUARE, bins=100, min=0, max=1)
    assert names(ranged) == [V, "kernelHistogram1D"]
    found = names(ask("aten.histc.default", array(100), self=SQUARE, bins=100, min=0, max=0))
    assert found[-1] == "kernelHistogram1D"
    assert found.count("synchronize") == 2


def test_bincount_reads_both_extremes() -> None:
    found = ask("aten.bincount.default", ints(500), self=ints(1000), weights=None, minlength=0)
    assert names(found) == ["reduce_kernel", *WAIT, *WAIT, V, "kernelHistogram1D"]


@pytest.mark.parametrize(("tests", "sorts"), [(26, False), (27, True)])
def test_isin_sorts_when_pairs_are_many(tests: int, sorts: bool) -> None:
    found = names(
        ask("aten.isin.Tensor_Tensor", array(1000, dtype="bool"), elements=ints(1000),
            test_elements=ints(tests), assume_unique=False, invert=False)
    )  # fmt: skip
    assert ("synchronize" in found) is sorts
    if not sorts:
        assert found == [V, E, "reduce_kernel", "Memcpy DtoD"]


def test_a_norm_limit_is_a_norm_a_factor_and_a_product() -> None:
    half = replace(array(100, 64), dtype="float16")
    args = {"p": 2, "dim": 0, "maxnorm": 1.0}
    assert names(ask("aten.renorm.default", array(100, 64), self=array(100, 64), **args)) == [
        "reduce_kernel", V, E,
    ]  # fmt: skip
    assert names(ask("aten.renorm.default", half, self=half, **args)) == ["reduce_kernel", U, E]
