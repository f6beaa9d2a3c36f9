"""The kernel an elementwise pass launches: its family, its grid, what it reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.eager.elementwise import elementwise, indexed
from kpredict.model import Tensor

V, U, E = "vectorized_elementwise_kernel", "unrolled_elementwise_kernel", "elementwise_kernel"


def array(*shape: int, dtype: str = "float32", stride: tuple[int, ...] = ()) -> Tensor:
    step = [1]
    for n in reversed(shape[1:]):
        step.append(step[-1] * n)
    return Tensor(shape, stride or (tuple(reversed(step)) if shape else ()), dtype)


SQUARE = array(1000, 1000)
TURNED = array(1000, 1000, stride=(1, 1000))


@pytest.mark.parametrize(
    ("out", "inputs", "name", "blocks"),
    [  # grids as PyTorch 2.13's host code launched them
        (SQUARE, [SQUARE, SQUARE], V, 977),
        (TURNED, [TURNED, TURNED], V, 977),
        (SQUARE, [SQUARE, TURNED], E, 3907),
        (SQUARE, [SQUARE, array(1000)], E, 3907),
        (SQUARE, [SQUARE, array()], E, 3907),
        (array(1000, 1000, dtype="bfloat16"), [replace(TURNED, dtype="bfloat16"), SQUARE], E, 1954),
        (SQUARE, [array(1000, 1000, dtype="bfloat16"), SQUARE], U, 1954),
        (array(10, 100), [array(10, 100)], V, 1),
    ],
)
def test_family_and_grid(out: Tensor, inputs: list[Tensor], name: str, blocks: int) -> None:
    (launch,) = elementwise([out], inputs)
    assert (launch.name, launch.grid, launch.block) == (name, (blocks, 1, 1), (128, 1, 1))


def test_a_scalar_on_the_host_is_a_kernel_argument() -> None:
    (launch,) = elementwise([SQUARE], [SQUARE, replace(array(), device="cpu")])
    assert launch.name == V
    assert len(launch.reads) == 1


def test_a_16_byte_result_leaves_no_vector() -> None:
    x = array(100, dtype="complex128")
    assert elementwise([x], [x])[0].name == U


def test_an_odd_address_leaves_no_vector() -> None:
    x = array(99)
    assert elementwise([x], [replace(x, offset=1)])[0].name == U
    assert elementwise([x], [replace(x, offset=2)])[0].name == V


def test_several_outputs_have_a_kernel_of_their_own() -> None:
    (launch,) = elementwise([SQUARE, SQUARE], [SQUARE])
    assert launch.name == "unrolled_elementwise_kernel_for_multi_outputs"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "erfinv_kernel_vectorized4_kernel"),
        ("bfloat16", "erfinv_kernel_vectorized8_kernel"),
        ("float64", "erfinv_kernel_vectorized2_kernel"),
    ],
)
def test_kernels_compiled_at_run_time_name_their_vector(dtype: str, name: str) -> None:
    x = array(1000, dtype=dtype)
    assert elementwise([x], [x], jit="erfinv_kernel")[0].name == name


def test_kernels_compiled_at_run_time_without_a_vector() -> None:
    assert elementwise([SQUARE], [TURNED], jit="i0")[0].name == "i0_kernel"


def test_nothing_to_do_launches_nothing() -> None:
    empty = array(0, 3)
    assert elementwise([empty], [empty]) == []
    assert elementwise([replace(SQUARE, device="cpu")], [replace(SQUARE, device="cpu")]) == []
    assert indexed(empty) == []


def test_a_byte_fill_takes_16_elements_per_thread() -> None:
    (launch,) = elementwise([array(4096, dtype="bool")], [])
    assert launch.grid == (2, 1, 1)


def test_a_broadcast_operand_counts_what_it_touches() -> None:
    row = array(1000, 1000, stride=(0, 1))
    (launch,) = elementwise([SQUARE], [SQUARE, row])
    assert [a.bytes for a in launch.reads] == [4_000_000, 4_000]
    assert [a.bytes for a in launch.writes] == [4_000_000]


def test_halves_share_the_bytes() -> None:
    x = array(2**31, dtype="float32")
    launches = elementwise([x], [x])
    assert len(launches) == 4
    assert sum(a.bytes for launch in launches for a in launch.writes) == x.nbytes


def test_index_kernels_have_a_thread_per_element() -> None:
    (launch,) = indexed(array(1000))
    assert (launch.name, launch.grid, launch.block) == (
        "elementwise_kernel_with_index", (16, 1, 1), (64, 1, 1),
    )  # fmt: skip
