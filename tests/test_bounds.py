"""The time that cannot be beaten: arithmetic on targets' rows, no torch needed."""

from __future__ import annotations

import pytest

from kpredict.bounds import launch_bound, phases_bound, plan_bound, ratio
from kpredict.model import Access, Count, Kind, Launch, Phases, Plan, Tensor
from kpredict.targets import target

H100 = target("h100")
BIG = Access.of(Tensor((10**9,), (1,), "float32", "cuda", 2))
COPY = Launch(Kind.KERNEL, "k", reads=(BIG,), writes=(BIG,))


def test_memory_is_bytes_over_bandwidth() -> None:
    memory, compute = launch_bound(COPY, H100)
    assert memory == pytest.approx(8e9 / 3350e9 * 1e6)
    assert compute == 0
    assert plan_bound(Plan((COPY,)), H100).limited_by == "memory"


def test_launches_count_once_each_and_a_library_call_at_its_least() -> None:
    small = Launch(Kind.LIBRARY, "k", Count(3, 9))
    bound = plan_bound(Plan((small, Launch(Kind.SYNC, "synchronize"))), H100)
    assert (bound.total, bound.limited_by) == (3 * H100.launch_us, "launches")


def test_phases_add_and_plans_compare() -> None:
    one, two = plan_bound(Plan((COPY,)), H100), plan_bound(Plan((COPY, COPY)), H100)
    assert ratio(two, one) == 2
    assert phases_bound(Phases(Plan((COPY,)), Plan((COPY,))), H100) == two
    assert ratio(one, plan_bound(Plan(), H100)) == 1


@pytest.mark.parametrize(
    ("gpu", "dtype", "precision", "tflops"),
    [
        ("h100", "float32", "ieee", 66.9),
        ("h100", "float32", "tf32", 494),
        ("h100", "float32", "3xtf32", 494 / 3),
        ("a100", "float32", "3xtf32", 52),
        ("rtx4090", "float32", "3xtf32", 82.6),  # slower on the matrix units than without
        ("t4", "float32", "tf32", 8.1),  # has none
        ("h100", "float64", "tf32", 66.9),
        ("h100", "bfloat16", "ieee", 989),
        ("h100", "float8_e4m3fn", "", 1978),
        ("h100", "float32", "", 494),  # nobody told: the faster one is still a bound
    ],
)
def test_compute_is_flops_over_the_peak_for_dtype_and_precision(
    gpu: str, dtype: str, precision: str, tflops: float
) -> None:
    x = Access.of(Tensor((8, 8), (8, 1), dtype))
    product = Launch(Kind.LIBRARY, "gemm", reads=(x,), flops=10**12, precision=precision)
    assert launch_bound(product, target(gpu))[1] == pytest.approx(1e6 / tflops)
