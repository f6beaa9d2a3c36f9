"""Copies, fills and the crossings between host and GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.eager.copying import copy, expand, fill, read_by_host
from kpredict.model import Kind, Tensor

from .test_elementwise import SQUARE, TURNED, E, U, V, array


def host(t: Tensor) -> Tensor:
    return replace(t, device="cpu")


def names(dst: Tensor, src: Tensor, **more: bool) -> list[str]:
    return [launch.name for launch in copy(dst, src, **more)]


@pytest.mark.parametrize(
    ("dst", "src", "found"),
    [
        (SQUARE, SQUARE, ["Memcpy DtoD"]),
        (TURNED, TURNED, ["Memcpy DtoD"]),
        (SQUARE, TURNED, [E]),
        (SQUARE, array(1000), [E]),
        (replace(SQUARE, dtype="bfloat16"), SQUARE, [V]),
        (replace(SQUARE, dtype="float16"), SQUARE, [V]),
        (SQUARE, replace(SQUARE, dtype="bfloat16"), [U]),
        (replace(SQUARE, dtype="float64"), SQUARE, [U]),
        (replace(SQUARE, dtype="bool"), SQUARE, [U]),
        (replace(SQUARE, dtype="float16"), replace(SQUARE, dtype="bfloat16"), [U]),
        (replace(SQUARE, dtype="float8_e4m3fn"), replace(SQUARE, dtype="float16"), [V]),
        (array(0), array(0), []),
    ],
)
def test_on_the_gpu(dst: Tensor, src: Tensor, found: list[str]) -> None:
    assert names(dst, src) == found


def test_onto_itself_is_nothing() -> None:
    x = replace(SQUARE, storage=3)
    assert copy(x, x) == []


def test_conjugating_on_the_way_takes_a_kernel() -> None:
    x = array(100, dtype="complex64")
    assert names(x, replace(x, lazy="conj")) == [V]


def test_crossing_is_one_memcpy_and_a_wait() -> None:
    assert names(host(SQUARE), SQUARE) == ["Memcpy DtoH", "synchronize"]
    assert names(SQUARE, host(SQUARE)) == ["Memcpy HtoD", "synchronize"]
    assert names(host(TURNED), TURNED) == ["Memcpy DtoH", "synchronize"]


def test_crossing_without_blocking_does_not_wait() -> None:
    assert names(host(SQUARE), SQUARE, non_blocking=True) == ["Memcpy DtoH"]


def test_a_strided_array_is_gathered_on_the_gpu_before_it_leaves() -> None:
    strided = array(1000, 500, stride=(1000, 2))
    assert names(host(array(1000, 500)), strided) == [E, "Memcpy DtoH", "synchronize"]


def test_the_host_casts_for_a_blocking_copy_and_the_gpu_for_another() -> None:
    double = replace(SQUARE, dtype="float64")
    assert names(double, host(SQUARE)) == ["Memcpy HtoD", "synchronize"]
    assert names(host(double), SQUARE, non_blocking=True) == [U, "Memcpy DtoH"]


def test_on_the_host_is_nothing() -> None:
    assert copy(host(SQUARE), host(TURNED)) == []


def test_fill_is_a_kernel_never_a_memset() -> None:
    (launch,) = fill(SQUARE)
    assert (launch.kind, launch.name, launch.reads) == (Kind.KERNEL, V, ())


def test_a_scalar_read_by_the_host_reads_the_gpu_and_writes_nothing_there() -> None:
    copied, waited = read_by_host(array())
    assert (copied.name, len(copied.reads), copied.writes) == ("Memcpy DtoH", 1, ())
    assert waited.kind is Kind.SYNC
    assert read_by_host(host(array())) == []


def test_expand_stands_still_along_new_dims() -> None:
    assert expand(array(3, 1), (2, 3, 4)).stride == (0, 1, 0)
