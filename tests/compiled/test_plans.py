"""Compiled plans: Inductor's own decisions, without a GPU, a CUDA build or Triton.

Names and counts are those torch 2.13.0 was seen to launch on an H100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import nn

from kpredict.capture.run import capture
from kpredict.capture.world import World, pretend_cuda
from kpredict.compiled.run import Compiler, compiling
from kpredict.model import Kind, KpredictError, Phase, Plan
from kpredict.plans import CompiledStep, stepping


@pytest.fixture
def world() -> Iterator[World]:
    with pretend_cuda("h100") as entered:
        yield entered


def compiled(
    world: World, fn: Callable[..., Any], *args: Any, training: bool = False, **options: Any
) -> tuple[dict[Phase, Plan], Compiler]:
    phases = (Phase.FORWARD, Phase.BACKWARD) if training else (Phase.FORWARD,)
    with compiling(world, options) as compiler:
        found = capture(
            world, compiler.wrap(fn), args, phases=phases, warmups=2,
            root=fn if isinstance(fn, nn.Module) else None,
        )  # fmt: skip
        return compiler.plans(found), compiler


def names(plan: Plan) -> list[str]:
    return [x.name if x.kind is Kind.KERNEL else x.kind.value for x in plan.launches]


def cuda(*shape: int, **kwargs: Any) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", **kwargs)


def test_add_relu_is_one_kernel_of_three_transfers(world: World) -> None:
    plans, _ = compiled(world, lambda a, b: (a + b).relu(), cuda(1_000_000), cuda(1_000_000))
    plan = plans[Phase.FORWARD]
    assert names(plan) == ["triton_poi_fused_add_relu_0"]
    assert plan.transfers == (3, 12_000_000)
    (launch,) = plan.launches
    assert launch.region == "0/0"
    assert launch.ops == ("aten.add.Tensor", "aten.relu.default")
    assert launch.lines[0].file == __file__


def test_training_runs_forward_and_backward_graphs(world: World) -> None:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)).cuda()
    plans, _ = compiled(world, model, cuda(32, 64), training=True)
    assert names(plans[Phase.FORWARD]) == ["library", "triton_poi_fused_addmm_relu_0", "library"]
    backward = plans[Phase.BACKWARD]
    assert sum(name == "library" for name in names(backward)) == 3
    assert any("threshold_backward" in name for name in names(backward))
    assert all(launch.phase is Phase.BACKWARD for launch in backward.launches if launch.region)


def test_a_library_call_is_a_barrier_on_both_sides(world: World) -> None:
    weight = cuda(64, 64)
    plans, _ = compiled(world, lambda x: (x.relu() @ weight).sigmoid(), cuda(64, 64))
    plan = plans[Phase.FORWARD]
    assert [(b.producer, b.consumer, b.reason) for b in plan.barriers] == [
        (0, 1, "library-call"), (1, 2, "library-call"),
    ]  # fmt: skip


def test_a_long_reduction_is_split(world: World) -> None:
    plans, _ = compiled(world, lambda x: x.sum(-1), cuda(100, 32768))
    plan = plans[Phase.FORWARD]
    assert names(plan) == ["triton_red_fused_sum_0", "triton_per_fused_sum_1"]
    assert [b.reason for b in plan.barriers] == ["split-reduction"]


def test_the_target_decides_whether_a_reduction_is_split() -> None:
    with pretend_cuda("t4") as world:
        plans, _ = compiled(world, lambda x: x.sum(-1), cuda(100, 32768))
    assert len(plans[Phase.FORWARD].launches) == 1


def test_graph_break_has_line_and_reason_and_eager_ops_keep_their_place(world: World) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.relu()
        scale = y.sum().item()
        return y.sin() * scale + 1

    plans, _ = compiled(world, broken, cuda(4096))
    plan = plans[Phase.FORWARD]
    kinds = [x.kind for x in plan.launches]
    assert Kind.MEMCPY in kinds[1:-1]  # the read lies between the two regions
    assert {x.region for x in plan.launches if x.kind is Kind.KERNEL} == {"0/0", "1/0"}
    (found,) = plan.graph_breaks
    assert "item()" in found.reason
    assert found.line is not None
    assert found.line.line == broken.__code__.co_firstlineno + 2


def test_skipped_frames_are_said_and_run_eagerly(world: World) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.lstm(x)[0]
            return out

    plans, compiler = compiled(world, Net().cuda(), cuda(4, 2, 8))
    plan = plans[Phase.FORWARD]
    assert not compiler.regions
    assert all(not launch.region for launch in plan.launches)
    assert any("skips forward" in note for note in plan.notes)


def test_a_second_shape_recompiles_once_with_variable_sizes(world: World) -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with compiling(world) as compiler:
        fn = torch.compile(doubled)  # as the user's own code would
        inputs = [cuda(n, 8) for n in (4, 16, 64)]
        found = capture(world, lambda xs: [fn(x) for x in xs], (inputs,), warmups=2)
        plan = compiler.plans(found)[Phase.FORWARD]
    assert [x.region for x in plan.launches] == ["0/1"] * 3
    assert [x.reads[0].bytes for x in plan.launches] == [128, 512, 2048]
    (again,) = plan.recompiles
    assert (again.function, again.call, again.region) == ("doubled", 2, "0/1")
    assert again.reason == "size 0 of x is 16 and was 4"
    assert again.dynamic == ("size 0 of x",)
    assert again.line is not None
    assert again.line.file == __file__


def test_reduce_overhead_replays_one_cuda_graph(world: World) -> None:
    plans, _ = compiled(world, lambda x: ((x * 2) @ x).relu(), cuda(64, 64), mode="reduce-overhead")
    plan = plans[Phase.FORWARD]
    assert names(plan)[0] == "multi_tensor_apply_kernel"  # the input goes to its fixed place
    assert any("one graph launch replays 3" in note for note in plan.notes)


def test_max_autotune_says_what_timing_decides(world: World) -> None:
    layer = nn.Linear(256, 256).cuda()
    plans, _ = compiled(
        world, lambda x: layer(x).relu(), cuda(256, 256), mode="max-autotune-no-cudagraphs"
    )
    assert any("by timing" in note for note in plans[Phase.FORWARD].notes)


def test_small_constants_are_inlined_as_on_a_gpu(world: World) -> None:
    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x[:, [0, -1]] + torch.tensor([1.0, 2.0], device="cuda")

    plans, _ = compiled(world, shifted, cuda(64, 8))
    (launch,) = plans[Phase.FORWARD].launches
    assert "lift_fresh" in launch.name
    assert len(launch.reads) == 1


def test_a_move_to_the_gpu_that_the_user_wrote_is_named(world: World) -> None:
    x = cuda(4, 2)
    for fn, name in (
        (lambda x: x * torch.tensor([1.0, 2.0], device="cuda"), "lift_fresh_mul"),
        (lambda x: x * torch.tensor([1.0, 2.0]).to("cuda"), "_to_copy_lift_fresh_mul"),
    ):
        plans, _ = compiled(world, fn, x)
        (launch,) = plans[Phase.FORWARD].launches
        assert launch.name == f"triton_poi_fused_{name}_0"


def test_a_compiled_optimizer_step_is_two_foreach_kernels(world: World) -> None:
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    with compiling(world) as compiler:
        step = torch.compile(lambda: optimizer.step())

        def train(x: torch.Tensor) -> None:
            model(x).sum().backward()
            step()
            optimizer.zero_grad()

        found = capture(world, train, (cuda(8, 64),), warmups=3)
        plan = compiler.plans(found)[Phase.FORWARD]
    assert [x.name for x in plan.launches if x.region] == [
        "triton_for_fused_0",
        "triton_for_fused_1",
    ]


def test_an_error_of_torch_compile_itself_is_said_in_plain_words(world: World) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(KpredictError, match=r"torch\.compile fails on line \d+ of broken: Call to"):
        compiled(world, broken, cuda(8), fullgraph=True)


def test_nothing_stays_patched() -> None:
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.graph import GraphLowering

    before = AsyncCompile.triton, GraphLowering.compile_to_module
    with pretend_cuda() as world, compiling(world):
        assert AsyncCompile.triton is not before[0]
    assert (AsyncCompile.triton, GraphLowering.compile_to_module) == before


def test_what_kpredict_itself_gets_wrong_is_not_blamed_on_torch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("ours")

    monkeypatch.setattr("kpredict.compiled.builder.describe", _in(fails))
    with pytest.raises(KpredictError, match="kpredict could not follow"):
        compiled(world, lambda x: x + 1, cuda(8))


def _in(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as if it were written in kpredict."""
    import kpredict

    file = f"{kpredict.__path__[0]}/compiled/builder.py"
    return FunctionType(
        function.__code__.replace(co_filename=file), function.__globals__, function.__name__
    )


def test_a_compiled_step_breaks_where_torch_optim_says_so(world: World) -> None:
    model = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    with compiling(world) as compiler:
        step = compiler.wrap(stepping(optimizer))
        found = capture(
            world,
            model,
            (cuda(4, 8),),
            phases=tuple(Phase),
            optimizer=CompiledStep(step),
            warmups=2,
        )
        plan = compiler.plans(found)[Phase.STEP]
    assert [b.reason for b in plan.graph_breaks] == [
        "torch.optim breaks the graph itself, around its update"
    ] * 2
    assert all(x.region for x in plan.launches)


def test_an_op_that_only_its_kernel_can_answer_is_run_on_zeros(world: World) -> None:
    def loss(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return nn.functional.ctc_loss(x.log_softmax(2), y, n, m)

    lengths = torch.full((4,), 10), torch.full((4,), 3)
    labels = torch.ones(4, 3, dtype=torch.long, device="cuda")
    plans, _ = compiled(world, loss, cuda(10, 4, 8), labels, *lengths)
    (found,) = plans[Phase.FORWARD].graph_breaks
    assert "aten._ctc_loss" in found.reason  # and not what asks for cuDNN


def test_compiling_checks_no_distribution_and_eager_runs_after_it_do(world: World) -> None:
    loc, scale = cuda(8, 4), cuda(8, 4)

    def sampled() -> torch.Tensor:
        return torch.distributions.Normal(loc, scale).rsample()

    before = torch.distributions.Distribution._validate_args
    plans, _ = compiled(world, sampled)
    assert all(launch.kind is not Kind.SYNC for launch in plans[Phase.FORWARD].launches)
    assert torch.distributions.Distribution._validate_args is before
