"""What Inductor decides by timing is an interval over its candidates, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import kpredict
from kpredict.model import Count, Kind, Plan


@pytest.fixture(autouse=True)
def world(request: pytest.FixtureRequest) -> Iterator[None]:
    with kpredict.pretend_cuda(getattr(request, "param", "h100")), torch.no_grad():
        yield


def cuda(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def compiled(fn: Callable[..., Any], *args: Any, **options: Any) -> Plan:
    report = kpredict.predict(fn, args, modes=("compiled",), compile_options=options)
    plan = report.compiled.forward
    assert plan is not None
    return plan


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.relu() @ b) * 2


def test_padding_is_an_interval_that_holds_what_forced_padding_does() -> None:
    args = cuda(1023, 4095), cuda(4095, 2047)
    plan = compiled(product, *args)
    call = plan.launches[1]
    assert call.kind is Kind.LIBRARY
    assert call.expected == 1
    assert "padding to aligned sizes" in call.because
    assert any("timing" in note for note in plan.notes)
    forced = compiled(product, *args, options={"force_shape_pad": True})
    assert forced.kernels.lo == 5  # two operands are padded
    assert forced.kernels.lo in plan.kernels
    again = compiled(product, *args)  # Inductor would remember the answer
    assert again.kernels == plan.kernels


def test_aligned_products_are_not_padded() -> None:
    plan = compiled(product, cuda(1024, 4096), cuda(4096, 2048))
    assert not plan.notes
    assert "padding" not in plan.launches[1].because


def test_a_template_may_take_in_what_stands_around_a_product() -> None:
    args = cuda(256, 256), cuda(256, 256)
    plan = compiled(product, *args, mode="max-autotune-no-cudagraphs")
    assert [x.count for x in plan.launches if x.kind is Kind.KERNEL] == [Count(0, 1)] * 2
    assert all("Triton template" in x.because for x in plan.launches if x.kind is Kind.KERNEL)
    forced = compiled(
        product, *args, options={"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
    )
    assert [x.name for x in forced.launches] == ["triton_tem_fused_mm_mul_relu_0"]
    assert forced.kernels.lo in plan.kernels


def test_a_reduction_stays_beside_a_template() -> None:
    plan = compiled(
        lambda a, b: (a @ b).sum(0),
        cuda(256, 256),
        cuda(256, 256),
        mode="max-autotune-no-cudagraphs",
    )
    assert [x.count for x in plan.launches if x.kind is Kind.KERNEL] == [Count(1, 1)] * 2


@pytest.mark.parametrize("world", ["h100", "t4"], indirect=True)
def test_a_small_gpu_tries_no_templates(request: pytest.FixtureRequest) -> None:
    args = cuda(256, 256), cuda(256, 256)
    plan = compiled(product, *args, mode="max-autotune-no-cudagraphs")
    small = request.node.callspec.params["world"] == "t4"
    assert all(x.count.exact == small for x in plan.launches if x.kind is Kind.KERNEL)


def test_long_sums_may_be_split_over_two_kernels() -> None:
    plan = compiled(
        lambda a, b: a @ b, cuda(32, 65536), cuda(65536, 32), mode="max-autotune-no-cudagraphs"
    )
    (call,) = plan.launches
    assert "decompose_k" in call.because


def test_tuning_that_keeps_the_launches_changes_no_count() -> None:
    options = {
        "triton.multi_kernel": 1,
        "coordinate_descent_tuning": True,
        "benchmark_fusion": True,
    }
    plan = compiled(lambda x: x.softmax(-1), cuda(256, 256), options=options)
    assert plan.kernels == Count(1, 1)
    assert any("benchmark_fusion" in note for note in plan.notes)
