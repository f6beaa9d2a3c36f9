"""Pointwise rules: how many passes, in which dtype, and what host code adds around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.model import Tensor

from .asking import ask, names
from .test_elementwise import SQUARE, TURNED, E, U, V, array

INTS = replace(SQUARE, dtype="int64")
HALF = replace(SQUARE, dtype="bfloat16")
BOOLS = replace(SQUARE, dtype="bool")
COMPLEX = replace(SQUARE, dtype="complex64")
COPY = "Memcpy DtoD"


def unary(name: str, x: Tensor, out: Tensor | None = None, **more: object) -> list[str]:
    return names(ask(f"aten.{name}", out or x, self=x, **more))


@pytest.mark.parametrize(
    ("name", "x", "out", "found"),
    [
        ("exp.default", SQUARE, SQUARE, [V]),
        ("exp.default", INTS, SQUARE, [U]),
        ("exp.default", COMPLEX, COMPLEX, ["exp_kernel_vectorized2_kernel"]),
        ("erfinv.default", HALF, HALF, ["erfinv_kernel_vectorized8_kernel"]),
        ("digamma.default", INTS, SQUARE, ["digamma_kernel"]),
        ("neg.default", INTS, INTS, [V]),
        ("floor.default", SQUARE, SQUARE, [V]),
        ("floor.default", INTS, INTS, [COPY]),
        ("abs.default", SQUARE, SQUARE, [V]),
        ("abs.default", COMPLEX, SQUARE, ["abs_kernel_vectorized2_kernel", E]),
        ("nan_to_num.default", INTS, INTS, [COPY]),
        ("logical_not.default", SQUARE, BOOLS, [V]),
        ("signbit.default", BOOLS, BOOLS, [V]),
        ("isnan.default", SQUARE, BOOLS, [V]),
        ("isinf.default", SQUARE, BOOLS, [V, V]),
        ("isinf.default", INTS, BOOLS, [V]),
        ("rad2deg.default", INTS, SQUARE, [U]),
        ("relu_.default", SQUARE, SQUARE, [V]),
        ("conj_physical.default", COMPLEX, COMPLEX, [V]),
        ("conj_physical.default", SQUARE, SQUARE, []),
    ],
)
def test_unary(name: str, x: Tensor, out: Tensor, found: list[str]) -> None:
    assert unary(name, x, out) == found


def test_polygamma_names_its_order() -> None:
    assert [unary("polygamma.default", SQUARE, n=n)[0] for n in (0, 1, 2)] == [
        "digamma_vectorized4_kernel", "trigamma_vectorized4_kernel", "polygamma_vectorized4_kernel",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "out", "found"),
    [
        (SQUARE, SQUARE, SQUARE, [V]),
        (SQUARE, 2, SQUARE, [V]),
        (INTS, 2.5, SQUARE, [U]),
        (HALF, SQUARE, SQUARE, [U]),
        (HALF, SQUARE, HALF, [U]),  # in place: the sum is computed in float
        (SQUARE, TURNED, SQUARE, [E]),
        (SQUARE, replace(array(), device="cpu", dtype="float64"), SQUARE, [V]),
        (SQUARE, array(dtype="float64"), SQUARE, [E]),
        (BOOLS, INTS, INTS, [U]),
    ],
)
def test_binary(a: Tensor, b: object, out: Tensor, found: list[str]) -> None:
    assert names(ask("aten.add.Tensor", out, self=a, other=b, alpha=1)) == found


def test_division_of_integers_computes_in_floats_unless_it_rounds() -> None:
    assert names(ask("aten.div.Tensor", SQUARE, self=INTS, other=INTS)) == [U]
    assert names(
        ask("aten.div.Tensor_mode", INTS, self=INTS, other=INTS, rounding_mode="floor")
    ) == [V]


def test_comparisons_give_bools_without_a_cast() -> None:
    assert names(ask("aten.gt.Scalar", BOOLS, self=SQUARE, other=0)) == [V]
    assert names(ask("aten.gt.Scalar", BOOLS, self=INTS, other=0.5)) == [U]
    assert names(ask("aten.eq.Tensor", BOOLS, self=HALF, other=SQUARE)) == [U]


@pytest.mark.parametrize(
    ("exponent", "found"), [(2, [V]), (0.5, [V]), (0, [V]), (1, [COPY]), (2.5, [V])]
)
def test_powers(exponent: float, found: list[str]) -> None:
    assert names(ask("aten.pow.Tensor_Scalar", SQUARE, self=SQUARE, exponent=exponent)) == found


def test_an_integer_base_with_a_float_exponent_is_cast_first() -> None:
    assert names(ask("aten.pow.Tensor_Scalar", SQUARE, self=INTS, exponent=0.5)) == [U, V]


def test_a_number_to_the_power_of_an_array_goes_to_the_gpu_first() -> None:
    fill, power = ask("aten.pow.Scalar", SQUARE, self=2, exponent=SQUARE)
    assert (fill.name, fill.ops, power.name) == (V, ("aten.fill_.Scalar",), E)
    assert names(ask("aten.pow.Scalar", SQUARE, self=1, exponent=SQUARE)) == [V]


def test_clamp_casts_only_for_a_bound_that_promotes() -> None:
    assert names(ask("aten.clamp.default", SQUARE, self=SQUARE, min=0, max=1)) == [V]
    assert names(ask("aten.clamp.default", SQUARE, self=INTS, min=0.5, max=None)) == [U, V]
    assert names(ask("aten.clamp.Tensor", SQUARE, self=SQUARE, min=SQUARE, max=None)) == [V]


def test_where_copies_branches_to_one_dtype_and_device() -> None:
    def where(a: Tensor, b: Tensor) -> list[str]:
        return names(ask("aten.where.self", SQUARE, condition=BOOLS, self=a, other=b))

    assert where(SQUARE, SQUARE) == [V]
    assert where(SQUARE, HALF) == [U, V]
    assert where(SQUARE, replace(array(), device="cpu")) == ["Memcpy HtoD", "synchronize", E]


def test_masked_fill_copies_unless_in_place() -> None:
    args = {"self": SQUARE, "mask": BOOLS, "value": 0}
    assert names(ask("aten.masked_fill.Scalar", SQUARE, **args)) == [COPY, V]
    assert names(ask("aten.masked_fill_.Scalar", SQUARE, **args)) == [V]
    args["value"] = array()
    assert names(ask("aten.masked_fill_.Tensor", SQUARE, **args)) == [
        "Memcpy DtoH", "synchronize", V,
    ]  # fmt: skip


def test_gated_units_read_two_halves() -> None:
    half = array(1000, 500)
    assert names(ask("aten.glu.default", half, self=SQUARE, dim=-1)) == [E]
    assert names(ask("aten.glu.default", array(500, 1000), self=SQUARE, dim=0)) == [V]
    (launch,) = ask("aten.glu_backward.default", SQUARE, grad_output=half, self=SQUARE, dim=-1)
    assert (launch.name, launch.grid) == ("glu_backward_kernel", (1954, 1, 1))


def test_prelu_backward_has_two_outputs() -> None:
    weight = array(1000, 1)
    assert names(
        ask(
            "aten._prelu_kernel_backward.default", SQUARE, SQUARE, grad_output=SQUARE,
            self=SQUARE, weight=weight,
        )
    ) == ["unrolled_elementwise_kernel_for_multi_outputs"]  # fmt: skip


@pytest.mark.parametrize("name", ["view", "detach", "empty_like", "select", "resize_"])
def test_views_and_allocations_launch_nothing(name: str) -> None:
    assert ask(f"aten.{name}.default", SQUARE, self=SQUARE) == []


def test_equal_reduces_and_waits() -> None:
    a, b = replace(SQUARE, storage=1), replace(SQUARE, storage=2)
    found = names(ask("aten.equal.default", host=(True,), self=a, other=b))
    assert found == [V, "Memset", "reduce_kernel", "Memcpy DtoH", "synchronize"]
    assert ask("aten.equal.default", host=(True,), self=a, other=a) == []
