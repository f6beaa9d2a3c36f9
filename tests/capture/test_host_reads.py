"""What host code reads of a GPU and not of a fake tensor, and layouts shape functions get wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import kpredict
from kpredict.model import Kind, Launch, Mode


def _backward(out: torch.Tensor, *ins: torch.Tensor) -> list[Launch]:
    grad = torch.empty(out.shape, dtype=out.dtype, device="cuda")
    report = kpredict.predict(
        lambda: torch.autograd.grad(out, ins, grad, retain_graph=True), modes=("eager",)
    )
    plans = report.entries[0].plans[Mode.EAGER]
    return [launch for _, plan in plans for launch in plan.launches]


def test_the_backward_of_prod_counts_zeros_once_per_pass() -> None:
    with kpredict.pretend_cuda():
        x = torch.empty(30, 40, device="cuda", requires_grad=True)
        out = x.prod(-1)
        for _ in range(2):
            found = _backward(out, x)
            assert [launch.kind for launch in found].count(Kind.SYNC) == 1
            ops = [launch.ops[0].split(".")[1] for launch in found[:4]]
            assert ops[:3] == ["eq", "copy_", "sum"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_an_expanded_operand_does_not_decide_the_layout(dtype: torch.dtype) -> None:
    with kpredict.pretend_cuda():
        row = torch.empty(7, dtype=dtype, device="cuda").expand(5, 7)
        turned = torch.empty(7, 5, dtype=dtype, device="cuda").t()
        assert (row * turned).stride() == (1, 5)
        assert (turned - row).stride() == (1, 5)


def test_empty_rows_fill_the_gradients_of_a_layer_norm() -> None:
    with kpredict.pretend_cuda():
        x = torch.empty(0, 8, device="cuda", requires_grad=True)
        w, b = (torch.empty(8, device="cuda", requires_grad=True) for _ in range(2))
        found = _backward(torch.nn.functional.layer_norm(x, (8,), w, b), x, w, b)
        assert [launch.name for launch in found] == ["vectorized_elementwise_kernel"] * 2


@pytest.mark.parametrize(("smoothing", "waits"), [(0.0, 0), (0.1, 1)])
def test_a_smoothed_and_weighted_loss_counts_labels(smoothing: float, waits: int) -> None:
    with kpredict.pretend_cuda():
        x, weight = torch.empty(64, 10, device="cuda"), torch.empty(10, device="cuda")
        labels = torch.empty(64, dtype=torch.int64, device="cuda")
        report = kpredict.predict(
            lambda: torch.nn.functional.cross_entropy(
                x, labels, weight=weight, label_smoothing=smoothing
            ),
            modes=("eager",),
        )
    (plans,) = report.entries[0].plans.values()
    found = [launch.kind for _, plan in plans for launch in plan.launches]
    assert found.count(Kind.SYNC) == waits


def _names(fn: Callable[[], object]) -> list[str]:
    report = kpredict.predict(fn, modes=("eager",))
    (plans,) = report.entries[0].plans.values()
    return [launch.name for _, plan in plans for launch in plan.launches]


def test_a_distribution_finds_its_parameters_valid_and_waits_for_each() -> None:
    """As a CUDA build of 2.13.0 was seen to do."""
    vectors, check = "vectorized_elementwise_kernel", ["Memcpy DtoH", "synchronize"]
    with kpredict.pretend_cuda():
        loc, scale = torch.zeros(64, 6, device="cuda"), torch.ones(64, 6, device="cuda")
        names = _names(lambda: torch.distributions.Normal(loc, scale).rsample())
    assert names == [
        *(vectors, "reduce_kernel", *check) * 2,
        "distribution_elementwise_grid_stride_kernel", vectors, vectors,
    ]  # fmt: skip


def test_what_stays_on_the_cpu_launches_nothing() -> None:
    with kpredict.pretend_cuda():
        assert _names(lambda: torch.full((300, 300), float("-inf")).triu(1)) == []
        assert _names(lambda: torch.eye(500) + torch.tril_indices(500, 500).sum()) == []


def test_frequencies_are_ranges_and_a_product() -> None:
    ranged, vectors = "elementwise_kernel_with_index", "vectorized_elementwise_kernel"
    with kpredict.pretend_cuda():
        assert _names(lambda: torch.fft.fftfreq(64, device="cuda")) == [ranged, ranged, vectors]
        assert _names(lambda: torch.fft.rfftfreq(64, device="cuda")) == [ranged, vectors]
