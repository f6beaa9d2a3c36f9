"""The profiling path, as far as it goes without a GPU: phases, windows, steadiness."""

import pytest
from recorded_events import ADD, kernel, launch, span

torch = pytest.importorskip("torch")

from kpredict.model import Kind, Mode, Phase  # noqa: E402
from kpredict.plans import Call  # noqa: E402
from kpredict.verify.measure import MARK, by_phase, measure, profiled, unsteady  # noqa: E402
from kpredict.verify.measured import measured  # noqa: E402
from kpredict.verify.trace import Trace  # noqa: E402


def mark(phase: str, ts: float, dur: float):  # type: ignore[no-untyped-def]
    return span(MARK + phase, ts, dur, cat="user_annotation")


RECORDED = [
    mark("forward", 0, 50),
    span("aten::linear", 5, 30), span("aten::addmm", 6, 25),
    launch(1, 10, name="cudaMemsetAsync"), launch(2, 12), launch(3, 14), launch(4, 20),
    {**kernel(1, 60, "Memset (Device)"), "cat": "gpu_memset"},
    kernel(2, 70, "ampere_sgemm_128x64_tn"), kernel(3, 80, "void splitKreduce_kernel<1>()"),
    kernel(4, 90, ADD),
    span("cudaDeviceSynchronize", 55, 60, cat="cuda_runtime", correlation=9),
    mark("backward", 200, 100),
    span("autograd::engine::evaluate_function: AddmmBackward0", 205, 90, tid=2),
    span("aten::mm", 210, 10, tid=2), launch(5, 212, tid=2), kernel(5, 320, "ampere_sgemm_64x64"),
    span("aten::_local_scalar_dense", 230, 20, tid=2),
    span("cudaStreamSynchronize", 235, 5, 2, "cuda_runtime", correlation=10),
    mark("step", 400, 50),
    span("aten::_foreach_add_", 405, 20), launch(6, 410),
    kernel(6, 420, "multi_tensor_apply_kernel"),
    span("aten::after", 500, 20), launch(7, 505), kernel(7, 520, ADD),
]  # fmt: skip


def test_a_recorded_call_by_phase() -> None:
    phases = by_phase(Trace(RECORDED))
    plans = {phase: found.plan for phase, found in phases.items()}
    assert list(plans) == [Phase.FORWARD, Phase.BACKWARD, Phase.STEP]
    assert [(x.kind.value, x.name, x.count.lo) for x in plans[Phase.FORWARD].launches] == [
        ("memset", "Memset", 1), ("library", "ampere_sgemm_128x64_tn", 2),
        ("kernel", "vectorized_elementwise_kernel", 1),
    ]  # fmt: skip
    assert plans[Phase.FORWARD].launches[0].because == "inside a library call"
    assert plans[Phase.FORWARD].syncs.lo == 0  # the one between the phases is ours
    assert plans[Phase.BACKWARD].syncs.lo == 1
    assert [x.ops[0] for x in plans[Phase.STEP].launches] == ["aten._foreach_add_"]
    assert phases[Phase.FORWARD].timings[1].duration == 10


def test_two_calls_that_differ_are_said_to() -> None:
    first = measured(Trace(RECORDED))
    second = measured(Trace([e for e in RECORDED if e.get("ts") not in (405, 410, 420)]))
    assert unsteady(first, first) == ()
    assert unsteady(first, second)[0] == "kernels: 3 in one call, 2 in the next"
    assert "aten._foreach_add_: multi_tensor_apply_kernel in one call, nothing" in "".join(
        unsteady(first, second)
    )


def test_streams_and_several_devices() -> None:
    other = kernel(2, 15)
    other["args"]["stream"] = 20
    trace = Trace([span("aten::add", 0, 10), launch(1, 1), launch(2, 2), kernel(1, 10), other])
    assert (trace.streams, trace.devices) == (2, 1)
    other["args"]["device"] = 1
    trace = Trace([span("aten::add", 0, 10), launch(1, 1), launch(2, 2), kernel(1, 10), other])
    assert trace.devices == 2


def training_call() -> Call:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    optimizer = torch.optim.AdamW(model.parameters())
    phases = (Phase.FORWARD, Phase.BACKWARD, Phase.STEP)
    return Call(model, [torch.randn(4, 8)], phases=phases, optimizer=optimizer, grad=True)


def test_every_phase_is_profiled_on_the_cpu_too() -> None:
    call = training_call()
    found = measure(call, Mode.EAGER, seconds=0)
    assert list(found) == list(call.phases)
    assert not any(phase.unsteady for phase in found.values())
    assert all(x.kind is Kind.SYNC for p in found.values() for x in p.measured.plan.launches)


def test_gradients_are_none_before_the_backward() -> None:
    call = training_call()
    seen = []
    call.fn.register_forward_hook(lambda m, *_: seen.append(m[0].weight.grad))
    profiled(call, call.fn, call.optimizer)
    profiled(call, call.fn, call.optimizer)
    assert seen == [None, None]
