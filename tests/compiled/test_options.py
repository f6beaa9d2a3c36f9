"""torch.compile's own options: from flags, from the caller, from the file's own call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import kpredict
from kpredict.commands._options import requests
from kpredict.compiled.options import merge, noting_compile_calls
from kpredict.model import Count, KpredictError, Mode, Plan
from kpredict.report.json import plan_document
from kpredict.session.ask import analyse
from kpredict.targets import target as find_target


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    with kpredict.pretend_cuda("h100"):
        yield


def cuda(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda")


def compiled(fn: Callable[..., Any], *args: Any, **options: Any) -> Plan:
    report = kpredict.predict(fn, args, modes=("compiled",), compile_options=options)
    plan = report.compiled.forward
    assert plan is not None
    return plan


def test_flags_become_options() -> None:
    (asked,) = requests([__file__], compile_mode="max-autotune", dynamic=False, fullgraph=True)
    assert asked.compile_options == {"mode": "max-autotune", "dynamic": False, "fullgraph": True}
    (plain,) = requests([__file__])
    assert plain.compile_options == {}


def test_a_mode_asked_for_replaces_the_options_of_the_file() -> None:
    own = {"options": {"epilogue_fusion": True}, "dynamic": True}
    assert merge(own, {"mode": "default"}) == {"dynamic": True, "mode": "default"}
    assert merge(own, {"fullgraph": True}) == {**own, "fullgraph": True}


def test_calls_of_torch_compile_are_noted_by_what_they_compile() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with noting_compile_calls() as noted:
        torch.compile(Net(), mode="max-autotune")
        torch.compile(fullgraph=True, dynamic=False)(f)
    assert noted.of(Net()) == {"mode": "max-autotune"}
    assert noted.of(f) == {"fullgraph": True, "dynamic": False}
    assert noted.of(torch.compile(f)) == noted.of(f)
    assert noted.of(cuda) == {}


def test_a_cuda_graph_is_one_launch_of_the_host() -> None:
    weight = cuda(64, 64)
    plan = compiled(lambda x: ((x * 2) @ weight).relu(), cuda(64, 64), mode="reduce-overhead")
    assert [x.replay for x in plan.launches] == [0, 1, 1, 1]
    assert "copies inputs" in plan.launches[0].because
    assert plan.graph_launches == 1
    assert plan.host_launches == Count(2, 2)
    written = plan_document(plan, find_target("h100"))
    assert written["cuda_graphs"] == 1
    assert written["host_launches"] == {"lo": 2, "hi": 2}
    assert [x["cuda_graph"] for x in written["launches"]] == [None, 1, 1, 1]


def test_work_on_the_cpu_cuts_a_cuda_graph_in_two() -> None:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        y = (x.relu()).cpu() + 1
        return y.cuda().sin()

    plan = compiled(there_and_back, cuda(64, 64), mode="reduce-overhead")
    assert plan.graph_launches == 2
    assert all(not x.replay for x in plan.launches if x.kind == "memcpy")


def test_a_changed_input_forbids_a_cuda_graph() -> None:
    plan = compiled(lambda x: x.add_(1).sum(), cuda(64, 64), mode="reduce-overhead")
    assert plan.graph_launches == 0
    assert any(note.startswith("no CUDA graph: ") for note in plan.notes)


def test_each_call_of_a_compiled_function_replays_its_graph() -> None:
    step = torch.compile(lambda x: x * 2 + 1, mode="reduce-overhead")
    report = kpredict.predict(lambda x: step(step(x)), (cuda(64),), modes=("as_written",))
    plan = report.entries[0].plans[Mode.AS_WRITTEN].forward
    assert plan is not None
    assert plan.graph_launches == 2


def test_fullgraph_makes_a_graph_break_an_error() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(KpredictError, match="graph_break"):
        compiled(broken, cuda(8), fullgraph=True)


def test_dynamic_sizes_from_the_start() -> None:
    fixed = compiled(lambda x: x.sum(-1), cuda(100, 32768), dynamic=False)
    free = compiled(lambda x: x.sum(-1), cuda(100, 32768), dynamic=True)
    assert len(fixed.launches) == 2  # split for the GPU's size
    assert len(free.launches) == 2
    assert "torch.compile(dynamic=True)" in free.notes[0]


FILE = """
import torch

# kpredict: x=f32[64,64]
@torch.compile(mode="reduce-overhead")
def f(x):
    return (x @ x).relu()
"""


def test_the_compiled_plan_takes_the_options_of_the_files_own_call(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(FILE)
    (entry,) = analyse(requests([str(file)])).entries
    written, made = (entry.plans[m].forward for m in (Mode.AS_WRITTEN, Mode.COMPILED))
    assert written is not None
    assert made is not None
    assert written.graph_launches == made.graph_launches == 1
    (entry,) = analyse(requests([str(file)], compile_mode="default")).entries
    made = entry.plans[Mode.COMPILED].forward
    assert made is not None
    assert made.graph_launches == 0
