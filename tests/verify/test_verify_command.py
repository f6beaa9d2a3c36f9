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


def test_the_trace_command(tmp_path: Path) -> None:
    trace = TRACES / "hta_alexnet_a100.json.gz"
    done = kpredict("trace", str(trace), "-o", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    totals = json.loads((tmp_path / "out.json").read_text())["totals"]
    assert totals == {"kernels": 79, "memcpy": 16, "memset": 3, "syncs": 21, "launches": 79}
    done = kpredict("trace", FILE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not JSON" in done.stderr
