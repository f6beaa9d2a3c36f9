"""What user code finds on the pretended machine: each behaviour a GPU machine would have."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

import kpredict
from kpredict.capture.run import capture
from kpredict.capture.world import World
from kpredict.model import Op, Phase


@pytest.fixture(scope="module", autouse=True)
def world() -> Iterator[World]:
    with kpredict.pretend_cuda("h100") as made:
        yield made


def ops_of(world: World, fn: object) -> list[str]:
    captured = capture(world, fn, warmups=0)  # type: ignore[arg-type]
    return [i.name for i in captured.items[Phase.FORWARD] if isinstance(i, Op)]


def test_device_queries() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.get_device_properties(0).multi_processor_count == 132
    assert torch.cuda.is_bf16_supported()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(3, device="cuda"),
        lambda: torch.randn(3).cuda(),
        lambda: torch.randn(3).to("cuda"),
        lambda: torch.randn(3).to(torch.device("cuda")),
        lambda: torch.tensor([1.0, 2.0], device="cuda:0"),
        lambda: torch.cuda.FloatTensor(3),
        lambda: torch.randn(3).pin_memory().to("cuda", non_blocking=True),
        lambda: torch.randn(3, device="cuda", generator=torch.Generator(device="cuda")),
        lambda: nn.Linear(3, 3, device="cuda").weight,
        lambda: nn.Linear(3, 3).cuda().half().bias,
        lambda: copy.deepcopy(torch.zeros(3, device="cuda")),
    ],
)
def test_ways_to_a_cuda_tensor(make: object) -> None:
    tensor = make()  # type: ignore[operator]
    assert tensor.is_cuda
    assert tensor.device == torch.device("cuda", 0)


def test_default_device() -> None:
    torch.set_default_device("cuda")
    try:
        assert torch.randn(3).is_cuda
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert nn.Linear(3, 4).weight.is_cuda


def test_small_cpu_tensors_are_real() -> None:
    assert torch.arange(5).sum().item() == 10
    assert torch.tensor([1, 2, 3]).tolist() == [1, 2, 3]
    assert (torch.arange(4) * 2).numpy().tolist() == [0, 2, 4, 6]


def test_large_arrays_cost_nothing() -> None:
    weights = [torch.empty(1 << 20, 1 << 16) for _ in range(8)]  # 2 TB
    assert weights[0].cuda().shape == (1 << 20, 1 << 16)


def test_moving_a_module_keeps_its_parameters() -> None:
    model = nn.Linear(4, 4, bias=False)
    tied = nn.Linear(4, 4, bias=False)
    tied.weight = model.weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    nn.ModuleList([model, tied]).cuda()
    assert tied.weight is model.weight
    assert optimizer.param_groups[0]["params"][0] is model.weight
    assert model.weight.is_cuda


def test_checkpoints(tmp_path: Path) -> None:
    model = nn.Linear(300, 200).cuda()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    state = torch.load(tmp_path / "model.pt", map_location="cpu")
    assert state["weight"].shape == (200, 300)
    assert state["weight"].device.type == "cpu"
    model.load_state_dict(state)


def test_streams_events_graphs_and_profiler(world: World) -> None:
    x = torch.zeros(4, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        y = x + 1
    y.record_stream(torch.cuda.current_stream())
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    assert start.elapsed_time(end) > 0
    with torch.profiler.profile() as profile:
        x.relu()
    assert isinstance(profile.key_averages().table(sort_by="cuda_time_total"), str)
    graph = torch.cuda.CUDAGraph()

    def replay_twice() -> None:
        with torch.cuda.graph(graph):
            x.add_(1)
        graph.replay()
        graph.replay()

    assert ops_of(world, replay_twice) == ["aten.add_.Tensor"] * 2


def test_autocast_takes_the_cuda_lists() -> None:
    a = torch.randn(4, 4, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (a @ a).dtype is torch.bfloat16
        assert nn.functional.softmax(a.bfloat16(), 0).dtype is torch.float32


def test_batch_norm_and_dropout_take_the_cuda_way(world: World) -> None:
    model = nn.Sequential(nn.BatchNorm2d(8), nn.Dropout(0.5)).cuda()
    x = torch.randn(2, 8, 6, 6, device="cuda")
    ops = ops_of(world, lambda: model(x))
    assert "aten.cudnn_batch_norm.default" in ops
    assert "aten.native_dropout.default" in ops


def test_optimizers_choose_foreach(world: World) -> None:
    model = nn.Linear(8, 8).cuda()
    model(torch.randn(2, 8, device="cuda")).sum().backward()
    ops = ops_of(world, torch.optim.AdamW(model.parameters()).step)
    assert "aten._foreach_addcdiv_.ScalarList" in ops


def test_backward_ops_have_the_line_of_their_forward(world: World) -> None:
    x = torch.randn(4, device="cuda", requires_grad=True)

    def step() -> None:
        y = x * 2
        y.exp().sum().backward()

    captured = capture(world, step, warmups=0)
    lines = {
        op.name: op.span.line - step.__code__.co_firstlineno
        for op in captured.items[Phase.FORWARD]
        if isinstance(op, Op) and op.span and op.phase is Phase.BACKWARD
    }
    multiplied = captured.items[Phase.FORWARD][-1]
    assert isinstance(multiplied, Op)
    assert multiplied.span is not None
    assert multiplied.span.line - step.__code__.co_firstlineno == 1
    assert 2 in lines.values()


def test_reads_are_assumed_and_said(world: World) -> None:
    x = torch.randn(10, device="cuda")

    def read() -> list[object]:
        return [x.sum().item(), bool((x > 0).all()), x[x > 0].shape[0], len(x.tolist())]

    captured = capture(world, read, warmups=0)
    assert {a.value for a in captured.assumptions} == {"0", "1", "5"}
    line = read.__code__.co_firstlineno + 1
    stated = capture(world, read, warmups=0, stated={line: 3})
    assert {a.value for a in stated.assumptions} == {"3"}


@pytest.mark.parametrize(
    "loop",
    [
        "while bool((x > 0).all()): n += 1",
        "while not bool((x > 0).any()): n += 1",
        "while x.sum().item() < 1: n += 1",
        "while x.sum().item() >= 0: n += 1",
    ],
)
def test_loops_that_wait_for_the_gpu_end(world: World, loop: str) -> None:
    scope: dict[str, object] = {"x": torch.randn(10, device="cuda")}
    exec(f"def wait():\n    n = 0\n    {loop}\n    return n", scope)
    captured = capture(world, scope["wait"], warmups=1)  # type: ignore[arg-type]
    assert any("loop" in a.what for a in captured.assumptions)


def test_reads_in_a_for_loop_are_alike() -> None:
    x = torch.randn(10, device="cuda")
    assert {x.sum().item() for _ in range(50)} == {0.0}


def test_synchronize_is_kept_in_order(world: World) -> None:
    x = torch.randn(4, device="cuda")

    def wait() -> None:
        x.relu()
        torch.cuda.synchronize()
        x.exp()

    assert ops_of(world, wait) == [
        "aten.relu.default", "kpredict.synchronize.default", "aten.exp.default",
    ]  # fmt: skip


def test_code_outside_of_torch_does_not_learn_that_a_tensor_is_fake() -> None:
    heard = {
        "__name__": "somebodys_library", "torch": torch, "x": torch.ones(3, device="cuda"),
        "fake_tensor": torch._subclasses.fake_tensor,
    }  # fmt: skip
    exec("fake = isinstance(x, (torch._subclasses.FakeTensor, fake_tensor.FakeTensor))", heard)
    assert heard["fake"] is False
    heard["__name__"] = "torch.somewhere"
    exec("fake = isinstance(x, torch._subclasses.FakeTensor)", heard)
    assert heard["fake"] is True


def test_dynamo_and_its_guards_hear_what_the_traced_code_hears(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = """
def f(x):
    return x + 1 if isinstance(x, getattr(torch, "_subclasses").FakeTensor) else x.exp()
"""
    library = ModuleType("somebodys_library")
    monkeypatch.setitem(sys.modules, library.__name__, library)
    library.__dict__["torch"] = torch
    exec(code, library.__dict__)
    report = kpredict.predict(library.f, (torch.ones(3, device="cuda"),))
    names = [launch.name for launch in report.compiled.forward.launches]
    assert names == ["triton_poi_fused_exp_0"]
