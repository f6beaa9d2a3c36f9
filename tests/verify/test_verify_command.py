"""`kpredict verify` by real processes, on a machine that may have no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpredict.model import Basis, Kind, Launch, Mode, Phase, Plan
from kpredict.verify.bundle import Bundle, Machine, MeasuredEntry, MeasuredPhase
from kpredict.verify.measured import Measured, Timing

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
FILE = str(ROOT / "fixtures" / "add_relu.py")
TRACES = ROOT / "fixtures" / "traces"


def kpredict(
    *args: str, module: str = "kpredict", without: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command; `without` is a folder of packages that shall not be there."""
    env = os.environ | ({"PYTHONPATH": f"{without}{os.pathsep}{ROOT}"} if without else {})
    command = [sys.executable, "-m", module, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


@pytest.fixture
def only_torch(tmp_path: Path) -> Path:
    """A folder that hides what a machine with a GPU may lack."""
    folder = tmp_path / "hidden"
    folder.mkdir()
    for name in ("click", "libcst"):
        (folder / f"{name}.py").write_text(f"raise ImportError('no module named {name}')")
    return folder


def bundle(*eager: str) -> Bundle:
    def phase(*names: str) -> dict[Phase, MeasuredPhase]:
        launches = tuple(
            Launch(Kind.KERNEL, n, basis=Basis.MEASURED, ops=(f"aten.{op}",))
            for n, op in zip(names, ("add", "clamp_min"), strict=False)
        )
        timings = tuple(Timing(i, i, 4.0, 0, 7) for i, _ in enumerate(launches))
        return {Phase.FORWARD: MeasuredPhase(Measured(Plan(launches), timings), (), 9.0, 100)}

    modes = {Mode.EAGER: phase(*eager), Mode.COMPILED: phase("triton_poi_fused_add_relu_0")}
    entry = MeasuredEntry("/there/add_relu.py", "add_relu", modes=modes)
    machine = Machine("NVIDIA H100 80GB HBM3", (9, 0), 132, torch=torch.__version__, cuda="13.0")
    return Bundle(machine, (entry,))


BOTH = ("vectorized_elementwise_kernel", "vectorized_elementwise_kernel")


def test_a_bundle_from_elsewhere_agrees(tmp_path: Path) -> None:
    kept = tmp_path / "bundle.json"
    kept.write_text(bundle(*BOTH).to_json())
    done = kpredict("verify", FILE, "--from", str(kept), "-f", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(c["mode"], c["agrees"]) for c in found["comparisons"]} == {
        ("eager", True), ("compiled", True),
    }  # fmt: skip
    assert found["comparisons"][1]["bandwidth_gb_s"] == pytest.approx(12e6 / 9 / 1e3)


def test_a_launch_too_few_is_exit_code_1_with_torch_alone(tmp_path: Path, only_torch: Path) -> None:
    kept = tmp_path / "bundle.json"
    kept.write_text(bundle(*BOTH[:1]).to_json())
    arguments = (FILE, "--from", str(kept), "--mode", "eager")
    done = kpredict(*arguments, module="kpredict.verify", without=only_torch)
    assert done.returncode == 1, done.stderr
    assert "2, not 1" in done.stdout
    assert "aten.relu.default: missing" in done.stdout


def test_a_trace_of_an_amd_gpu_is_refused() -> None:
    trace = TRACES / "tracelens_bert_small_mi300.json.gz"
    done = kpredict("verify", FILE, "--from", str(trace))
    assert done.returncode == 2
    assert "AMD Instinct MI300X VF: kpredict predicts NVIDIA GPUs" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu() -> None:
    done = kpredict("verify", FILE)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    done = kpredict(FILE, "--if-cuda", module="kpredict.verify")
    assert (done.returncode, done.stdout) == (0, "skipped: no CUDA\n")


STAND_IN = """
import sys
if "kpredict.verify.child" in sys.orig_argv:
    import types, torch
    torch.version.cuda = "13.0"
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = lambda *a: None
    torch.cuda.empty_cache = lambda: None
    torch.cuda.get_device_properties = lambda *a: types.SimpleNamespace(
        name="NVIDIA H200", major=9, minor=0, multi_processor_count=132)
"""
CPU_FILE = """import torch

# kpredict: x=f32[64]@cpu
def fine(x):
    return x.relu() + 1

# kpredict: x=f32[64]@cpu
def wrong(x):
    return x @ torch.ones(3)
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_the_whole_way_with_a_stand_in_for_the_gpu(tmp_path: Path) -> None:
    """Both children, the bundle and its re-use; CPU tensors launch nothing, as predicted."""
    (tmp_path / "sitecustomize.py").write_text(STAND_IN)
    file, kept = tmp_path / "cpu_file.py", tmp_path / "kept.json"
    file.write_text(CPU_FILE)
    measuring = (str(file), "--seconds", "0", "--mode", "eager", "--save", str(kept))
    done = kpredict(*measuring, module="kpredict.verify", without=tmp_path)
    assert done.returncode == 2, done.stderr  # `wrong` fails, on both sides
    assert "NVIDIA H200, torch" in done.stdout
    assert "1 of 1 plans agree; 0 of 0 launches as predicted." in done.stdout
    assert "::wrong: eager: RuntimeError:" in done.stdout
    done = kpredict("verify", str(file), "--from", str(kept), "--mode", "eager", "-f", "junit")
    assert done.stdout.count("<testcase") == 3, done.stdout
    assert done.stdout.count("<error") == 2


def test_the_trace_command(tmp_path: Path) -> None:
    trace = TRACES / "hta_alexnet_a100.json.gz"
    done = kpredict("trace", str(trace), "-o", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    totals = json.loads((tmp_path / "out.json").read_text())["totals"]
    assert totals == {"kernels": 79, "memcpy": 16, "memset": 3, "syncs": 21, "launches": 79}
    trace = TRACES / "tracelens_bert_small_h100.json.gz"
    done = kpredict("trace", str(trace), "-f", "github", "--select", "KP3")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::warning title=kpredict (KP301),file=transformers/modeling_")
    assert kpredict("trace", str(trace), "--select", "KP1").returncode == 0
    done = kpredict("trace", FILE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not JSON" in done.stderr
