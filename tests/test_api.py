"""The Python interface: predict and pretend_cuda, in and out of the pretended world."""

from __future__ import annotations

import json

import pytest
import torch

import kpredict
from kpredict.model import Count, KpredictError
from kpredict.report.json import document


def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b).relu()


def test_the_reference_example() -> None:
    with kpredict.pretend_cuda(target="h100"):
        a, b = (torch.randn(1_000_000, device="cuda") for _ in range(2))
        report = kpredict.predict(add_relu, (a, b))
    eager, compiled = report.eager.forward, report.compiled.forward
    assert eager is not None
    assert compiled is not None
    assert eager.kernels == Count(2, 2)
    assert eager.transfers == (5, 20_000_000)
    assert len(eager.round_trips) == 1
    assert [x.name for x in compiled.launches] == ["triton_poi_fused_add_relu_0"]
    assert compiled.transfers == (3, 12_000_000)
    assert not compiled.round_trips
    bound = report.bound["compiled"]
    assert bound.total == bound.memory == pytest.approx(12e6 / 3350e9 * 1e6)
    assert report.bound["eager"].limited_by == "memory"


def test_real_tensors_stand_for_gpu_ones_and_stay_as_they_are() -> None:
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.clone()
    report = kpredict.predict(
        model, (torch.randn(4, 64),), modes=("eager",), optimizer=optimizer,
        phases=("forward", "backward", "step"),
    )  # fmt: skip
    assert [(p, plan.library_calls) for p, plan in report.eager] == [
        ("forward", 1), ("backward", 1), ("step", 0),
    ]  # fmt: skip
    assert model.weight.device.type == "cpu"
    assert model.weight.grad is None
    assert torch.equal(model.weight, before)


def test_a_function_may_call_autograd_itself() -> None:
    with kpredict.pretend_cuda():
        x = torch.randn(8, 8, device="cuda", requires_grad=True)
        report = kpredict.predict(lambda: torch.autograd.grad((x * x).sum(), x), modes=("eager",))
    phases = [launch.phase for launch in report.eager.forward.launches]  # type: ignore[union-attr]
    assert phases[:2] == ["forward", "forward"]
    assert "backward" in phases


def test_the_world_nests_and_ends() -> None:
    assert not torch.cuda.is_available() or torch.version.cuda
    available = torch.cuda.is_available()
    for _ in range(2):
        with kpredict.pretend_cuda("a100") as outer, kpredict.pretend_cuda("t4") as inner:
            assert inner is outer
            assert torch.cuda.get_device_capability() == (8, 0)
            assert torch.zeros(2, device="cuda").is_cuda
    assert torch.cuda.is_available() is available
    assert torch.zeros(2).device.type == "cpu"


def test_the_world_ends_when_code_in_it_fails() -> None:
    with pytest.raises(ZeroDivisionError), kpredict.pretend_cuda():
        1 / 0  # noqa: B018
    with kpredict.pretend_cuda():
        assert torch.ones(1, device="cuda").is_cuda


def test_a_report_renders_itself() -> None:
    report = kpredict.predict(add_relu, (torch.ones(8), torch.ones(8)), modes=("eager",))
    assert json.loads(report.to_json())["entries"] == document(report)["entries"]
    assert "eager 2 kernels" in str(report).splitlines()[-1]


def test_a_plan_not_asked_for_is_an_error() -> None:
    report = kpredict.predict(add_relu, (torch.ones(8), torch.ones(8)), modes=("eager",))
    with pytest.raises(KpredictError, match="no compiled plan"):
        _ = report.compiled


def test_unknown_target() -> None:
    with pytest.raises(KpredictError, match="No target"), kpredict.pretend_cuda("h1000"):
        pass
