"""How soon kpredict has answered, against torch.compile to its first result with a cold cache.

    pip install transformers
    python benchmarks/first_result.py [NAME...]

Whole commands in fresh processes, imports included, for files in `benchmarks/models/`: `kpredict
show` (eager and compiled plan), and real `torch.compile` of the same model for the only device
there may be, the CPU, which compiles C++ where a GPU machine compiles Triton. CPU seconds (user and
system, of all processes) and wall seconds. Needs a C++ compiler, and memory for real weights.
"""

from __future__ import annotations

import argparse
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "models"


def compile_on_cpu(path: Path) -> None:
    """Run the file's model once, compiled, with its inputs on the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.Tensor.cuda:
                return args[0]
            given = kwargs or {}
            if given.get("device") == "cuda":
                given = {**given, "device": "cpu"}
            return func(*args, **given)

    with OnCpu():
        names = runpy.run_path(str(path))
        training = names.get("MODE") == "training"
        entry = names[names.get("ENTRY", "Model")]
        if isinstance(entry, type):
            entry = entry().train(training)
        inputs = names["get_inputs"]()
    compiled: Any = torch.compile(entry)
    with torch.set_grad_enabled(training):
        result = compiled(*inputs)
    if training:
        result.backward()


def cost(*command: str) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of a command with nothing in Inductor's cache."""
    with tempfile.TemporaryDirectory() as cache:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            command, capture_output=True, text=True,
            env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": cache},
        )  # fmt: skip
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="default all")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        compile_on_cpu(asked.run)
        return
    print("| model | kpredict: CPU | wall | torch.compile: CPU | wall | times faster |")
    print("|---|---|---|---|---|---|", flush=True)
    for path in sorted(FOLDER.glob("*.py")):
        if asked.names and path.stem not in asked.names:
            continue
        ours = cost(sys.executable, "-m", "kpredict", "show", "--no-cache", "-q", str(path))
        theirs = cost(sys.executable, __file__, "--run", str(path))
        times = " | ".join(f"{cpu:.1f} s | {wall:.0f} s" for cpu, wall in (ours, theirs))
        print(f"| {path.stem} | {times} | {theirs[0] / ours[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
