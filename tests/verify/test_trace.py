"""Real traces: totals are the raw events, launches find their op, and the GPU is named right."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from recorded_events import ADD, kernel, launch, span

from kpredict.findings.in_traces import find_in_trace
from kpredict.findings.reading import Limits
from kpredict.model import Kind, KpredictError
from kpredict.verify.measured import measured
from kpredict.verify.overview import BEFORE, NO_OP, overview
from kpredict.verify.render_trace import document, text
from kpredict.verify.trace import Trace, read_trace

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"
ALL = sorted(TRACES.glob("*.gz"))


def raw(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt") as file:
        found: dict[str, Any] = json.load(file)
    return found


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_totals_equal_the_raw_events(path: Path) -> None:
    events = Counter(e.get("cat") for e in raw(path)["traceEvents"] if e.get("ph") == "X")
    seen = document(overview(read_trace(path)), path.name)
    assert seen["totals"]["kernels"] == events["kernel"] > 0
    assert seen["totals"]["memcpy"] == events["gpu_memcpy"]
    assert seen["totals"]["memset"] == events["gpu_memset"]
    for kind in ("kernels", "memcpy", "memset", "syncs"):
        assert sum(op[kind] for op in seen["ops"]) == seen["totals"][kind]
    assert sum(k["count"] for k in seen["kernels"]) == seen["totals"]["kernels"]
    assert seen["attribution"]["share"] == 1.0


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_the_plan_counts_the_same(path: Path) -> None:
    trace = read_trace(path)
    plan, seen = measured(trace).plan, overview(trace)
    assert (plan.kernels.lo, plan.kernels.hi) == (seen.kernels, seen.kernels)
    assert (plan.memcpy.lo, plan.memset.lo) == (seen.memcpy, seen.memset)
    assert all(launch.ops for launch in plan.launches if launch.kind is not Kind.SYNC)


def test_alexnet_by_op() -> None:
    seen = overview(read_trace(TRACES / "hta_alexnet_a100.json.gz"))
    kernels = {row.name: row.kernels for row in seen.ops}
    assert kernels["aten::cudnn_convolution"] == 30
    assert kernels["aten::clamp_min_"] == 14
    assert kernels["aten::max_pool2d_with_indices"] == 6
    assert (seen.device.name, seen.device.vendor, seen.device.sms) == (
        "NVIDIA A100-PG509-200", "NVIDIA", 108,
    )  # fmt: skip


def test_kernels_of_a_library_call_are_one_launch() -> None:
    plan = measured(read_trace(TRACES / "hta_alexnet_a100.json.gz")).plan
    convolutions = [x for x in plan.launches if x.ops[:1] == ("aten.cudnn_convolution",)]
    assert {x.kind for x in convolutions if x.kind is not Kind.MEMSET} == {Kind.LIBRARY}
    assert sum(x.count.lo for x in convolutions if x.kind is Kind.LIBRARY) == 30


def test_frames_and_modules_give_the_place() -> None:
    plan = measured(read_trace(TRACES / "tracelens_bert_small_h100.json.gz")).plan
    norm = next(x for x in plan.launches if x.name == "vectorized_layer_norm_kernel")
    assert norm.ops == ("aten.native_layer_norm", "aten.layer_norm")
    assert norm.module == "LayerNorm_0"
    assert (norm.lines[0].file, norm.lines[0].function) == (
        "transformers/models/bert/modeling_bert.py", "forward",
    )  # fmt: skip


def test_amd_is_never_taken_for_nvidia() -> None:
    seen = overview(read_trace(TRACES / "tracelens_bert_small_mi300.json.gz"))
    assert seen.device.vendor == "AMD"
    assert "kpredict predicts NVIDIA GPUs only" in text(seen, "t")


def test_a_triton_kernel_belongs_to_its_region() -> None:
    seen = overview(read_trace(TRACES / "hta_triton_a100.json.gz"))
    assert [(r.name, r.kernels) for r in seen.ops if r.kernels] == [
        ("triton_poi_fused_add_cos_sin_0", 1)
    ]


def test_forward_and_backward_threads() -> None:
    trace = Trace([
        span("aten::mul", 0, 10), launch(1, 2), kernel(1, 20),
        span("autograd::engine::evaluate_function: MulBackward0", 100, 50, tid=2),
        span("MulBackward0", 101, 40, tid=2), span("aten::mul", 110, 10, tid=2),
        launch(2, 112, tid=2), kernel(2, 130),
        span("Optimizer.step#SGD.step", 200, 30, cat="user_annotation"),
        span("aten::add_", 205, 10), launch(3, 207), kernel(3, 240),
    ])  # fmt: skip
    plan = measured(trace).plan
    assert [x.phase.value for x in plan.launches] == ["forward", "backward", "step"]
    assert plan.launches[1].ops[:2] == ("aten.mul", "MulBackward0")


def test_a_cuda_graph_launches_many_kernels_by_one_call() -> None:
    trace = Trace([
        span("CompiledFunction", 0, 30), launch(1, 5, name="cudaGraphLaunch"),
        *(kernel(1, 40 + 10 * i) for i in range(3)),
    ])  # fmt: skip
    seen = overview(trace)
    assert (seen.kernels, seen.launches, seen.graph_kernels) == (3, 1, 3)
    assert {x.region for x in measured(trace).plan.launches} == {"CompiledFunction"}


def test_launches_outside_ops_and_before_the_recording_are_told_apart() -> None:
    seen = overview(Trace([launch(1, 5), kernel(1, 10), kernel(99, 2)]))
    assert {row.name: row.kernels for row in seen.ops} == {NO_OP: 1, BEFORE: 1}
    assert seen.attributed == 0.0


def test_without_host_calls_the_external_id_decides() -> None:
    work = kernel(7, 20)
    work["args"]["External id"] = 3
    seen = overview(Trace([span("aten::mul", 0, 10, **{"External id": 3}), work]))
    assert seen.ops[0].name == "aten::mul"


def test_whole_microseconds_round_an_interval() -> None:
    trace = Trace([span("aten::a", 0, 10), span("aten::b", 10, 10), launch(1, 9), launch(2, 10),
                   kernel(1, 20), kernel(2, 30)])  # fmt: skip
    assert [row.name for row in overview(trace).ops] == ["aten::a", "aten::b"]


def test_gaps_and_kernels_the_device_waited_for() -> None:
    trace = Trace([
        span("aten::a", 0, 100), launch(1, 1), launch(2, 2), launch(3, 60),
        kernel(1, 10), kernel(2, 15.5), kernel(3, 70),
    ])  # fmt: skip
    idle = overview(trace).idle
    assert (idle.span, idle.gaps, idle.idle) == (65, 1, 49.5)
    assert (idle.launch_bound, idle.launch_idle) == (1, 49.5)


def test_a_chain_has_the_size_of_its_arrays() -> None:
    recorded = {"Input Dims": [[4, 1], [3]], "Input type": ["float", "float"]}
    trace = Trace([
        span("aten::add", 0, 10, **recorded), launch(1, 2), kernel(1, 20, ADD),
        span("aten::mul", 10, 10, **recorded), launch(2, 12), kernel(2, 30, ADD),
        span("aten::sum", 20, 10), launch(3, 22), kernel(3, 40, "reduce_kernel"),
        span("aten::mul", 30, 10, **recorded), launch(4, 32), kernel(4, 50, ADD),
    ])  # fmt: skip
    (chain,) = overview(trace).chains
    assert (chain.ops, chain.shape, chain.dtype) == (("aten::add", "aten::mul"), (4, 3), "float32")
    assert (chain.removed, chain.bytes) == (1, 2 * 12 * 4)


def test_text_of_a_small_trace() -> None:
    seen = text(overview(read_trace(TRACES / "hta_simple_add_a100.json.gz")), "add.json.gz")
    assert seen.startswith("add.json.gz: NVIDIA A100-PG509-200, 108 SMs, 1 device, 1 stream\n")
    assert "kernels           4   0 of them in closed libraries" in seen
    assert "add x2" in seen


def test_a_browser_trace_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"ph": "X", "cat": "blink", "name": "paint", "ts": 1, "dur": 2}]))
    with pytest.raises(KpredictError, match="none of a PyTorch operator or a GPU"):
        read_trace(path)


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "t.json"
    with path.open("w") as file:
        file.write("[")
        for i in range(4_000):
            pair = [span("aten::add", 10 * i, 9), launch(i, 10 * i + 1), kernel(i, 10 * i + 5, ADD)]
            pair[0]["args"]["Call stack"] = "x" * 2500
            file.write(",".join(map(json.dumps, pair)) + ",")
        file.write("{}]")
    tracemalloc.start()
    trace = read_trace(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(trace) == 4_000
    assert path.stat().st_size > 10e6
    assert held < 2e6
    assert peak < 8e6


def test_findings_are_at_the_users_function() -> None:
    read = find_in_trace(overview(read_trace(TRACES / "tracelens_bert_small_h100.json.gz")), "t")
    assert [(f.path, f.line, f.code, f.function) for f in read] == [
        ("transformers/modeling_attn_mask_utils.py", 429, "KP301",
         "_prepare_4d_attention_mask_for_sdpa"),
    ]  # fmt: skip


def test_findings_have_the_numbers_of_the_chain() -> None:
    recorded = {"Input Dims": [[8192, 4096]], "Input type": ["float"]}
    trace = Trace([
        event
        for i in range(3)
        for event in (span("aten::mul", 10 * i, 9, **recorded), launch(i, 10 * i + 1),
                      kernel(i, 100 + 10 * i, ADD))
    ])  # fmt: skip
    chain, large = find_in_trace(overview(trace), "t.json")
    assert (chain.code, chain.before, chain.after, chain.bytes) == ("KP101", 3, 1, 536870912)
    assert str(large) == (
        "t.json:1:1: KP201 large-intermediate: mul → mul → mul: "
        "2 of 268 MB written and read back [likely]"
    )
    assert find_in_trace(overview(trace), "t.json", Limits(chain=4, round_trip_mb=300)) == []
