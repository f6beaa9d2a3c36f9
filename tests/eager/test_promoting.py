"""Type promotion agrees with torch, pair by pair."""

from __future__ import annotations

import itertools

import pytest

from kpredict.eager.promoting import promote, real_part, result_type, to_float
from kpredict.model import Tensor

torch = pytest.importorskip("torch")

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex32", "complex64", "complex128",
)  # fmt: skip


def array(dtype: str, *shape: int) -> Tensor:
    return Tensor(shape, (1,) * len(shape), dtype)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)))
def test_pairs_promote_as_in_torch(a: str, b: str) -> None:
    expected = torch.promote_types(getattr(torch, a), getattr(torch, b))
    assert f"torch.{promote(a, b)}" == str(expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 0.5, 1j])
def test_a_number_matters_only_in_a_higher_category(dtype: str, number: complex) -> None:
    expected = torch.result_type(torch.ones(2, dtype=getattr(torch, dtype)), number)
    assert f"torch.{result_type([array(dtype, 2), number])}" == str(expected)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)))
def test_a_zero_dim_tensor_matters_only_in_a_higher_category(a: str, b: str) -> None:
    expected = torch.result_type(
        torch.ones(2, dtype=getattr(torch, a)), torch.ones((), dtype=getattr(torch, b))
    )
    assert f"torch.{result_type([array(a, 2), array(b)])}" == str(expected)


def test_integers_become_the_default_float() -> None:
    assert [to_float(d) for d in ("bool", "int64", "float16")] == ["float32", "float32", "float16"]


def test_parts_of_complex_numbers() -> None:
    assert [real_part(d) for d in ("complex32", "complex128", "int8")] == [
        "float16", "float64", "int8",
    ]  # fmt: skip
