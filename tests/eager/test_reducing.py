"""The reduction loop: when a sum is split across blocks, launched in parts, or needs a cast."""

from __future__ import annotations

import pytest

from kpredict.eager.reducing import reduce
from kpredict.eager.summing import sum_to
from kpredict.model import Kind, Launch
from kpredict.targets import target

from .asking import H100, ask, names
from .test_elementwise import array

T4 = target("t4")


def _only(launches: list[Launch]) -> Launch:
    (launch,) = launches
    return launch


def test_one_block_is_enough_for_a_short_row() -> None:
    launch = _only(reduce([array()], array(1000), None, H100))
    assert (launch.name, launch.grid, launch.block) == ("reduce_kernel", (1, 1, 1), (128, 1, 1))


def test_few_outputs_of_many_elements_are_shared_by_blocks() -> None:
    semaphores, launch = reduce([array()], array(300_000), None, H100)
    assert semaphores.kind is Kind.MEMSET
    assert launch.grid == (1, 37, 1)
    staged, counters = (a.tensor for a in launch.writes[1:])
    assert (staged.nbytes, counters.nbytes) == (37 * 4, 4)


def test_the_split_grows_with_the_gpu() -> None:
    x = array(2048, 2048)
    blocks = {t.name: reduce([array()], x, None, t)[-1].grid for t in (H100, T4)}
    assert blocks == {"h100": (1, 512, 1), "t4": (1, 80, 1)}


def test_columns_and_rows_take_different_blocks() -> None:
    x = array(1000, 33)
    assert _only(reduce([array(33)], x, [0], H100)).block == (32, 16, 1)
    assert _only(reduce([array(1000)], x, [1], H100)).block == (32, 16, 1)


def test_beyond_32_bits_there_are_several_launches() -> None:
    found = list(sum_to(array(2**30), array(2**30, 3), [1], H100))
    assert names(found) == ["reduce_kernel"] * 8


CAST = "unrolled_elementwise_kernel"


@pytest.mark.parametrize(
    ("dtype", "result", "first"),
    [
        ("int32", "int64", CAST),
        ("float16", "float32", "reduce_kernel"),
        ("bfloat16", "bfloat16", "reduce_kernel"),
        ("float32", "float64", CAST),
    ],
)
def test_only_half_types_are_cast_in_the_kernel(dtype: str, result: str, first: str) -> None:
    out, x = array(100, dtype=result), array(100, 50, dtype=dtype)
    found = ask("aten.sum.dim_IntList", out, self=x, dim=[1], keepdim=False, dtype=None)
    assert names(found)[0] == first


def test_nothing_to_sum_is_a_fill() -> None:
    found = ask("aten.sum.dim_IntList", array(5), self=array(5, 0), dim=[1], keepdim=False)
    assert names(found) == ["vectorized_elementwise_kernel"]


def test_host_code_that_calls_other_ops_names_them() -> None:
    found = ask("aten.logsumexp.default", array(8), self=array(8, 9), dim=[1], keepdim=False)
    called = [launch.ops[0].split(".")[1] for launch in found]
    assert called == ["amax", "abs", "eq", "masked_fill_", "sub", "exp_", "sum", "log_", "add_"]
