"""What the compiled plan costs, against what torch.compile's own stages cost by themselves.

    pip install transformers
    python benchmarks/compile_speed.py [NAME...] [--repeat N] [--write FILE]

For each file in `benchmarks/models/`, two fresh processes in the same world, on the same call:

- *kpredict*: everything from the loaded model to its compiled plan: replacing what asks for a GPU,
  compiling, all runs of the generated code, launches, round trips and reasons.
- *torch*: `torch.compile` of that call without any of our listening; only the time from where torch
  says that it starts compiling to where it says that it has ended. That is dynamo, AOTAutograd,
  the passes, lowering, scheduling and code generation. The generated code is neither written,
  loaded nor run, and no Triton kernel is compiled: real torch.compile pays for that on top.

In CPU seconds (user and system), without importing torch, which both need. `--write` puts the table
into a file, between the lines `<!-- compile speed -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tables import put

FOLDER = Path(__file__).parent / "models"
BEGIN = "<!-- compile speed -->"
Row = tuple[float, int, float]


def calls(path: Path) -> Iterator[tuple[Any, Any]]:
    """(world, call) of each entry of the file, in the pretended world."""
    from kpredict.capture.world import pretend_cuda
    from kpredict.request import Request
    from kpredict.session.choose import Chosen, choose
    from kpredict.session.reading import read_source
    from kpredict.session.script import load

    request = Request(str(path))
    source = read_source(request.file)
    with pretend_cuda() as world:
        loaded, _ = load(request, source, world, path.resolve())
        for chosen in choose(loaded, request):
            if isinstance(chosen, Chosen):
                yield world, chosen.make()[0]


def with_kpredict(path: Path) -> dict[str, float]:
    """CPU seconds to the compiled plans, and how many launches they hold."""
    from kpredict.model import Mode
    from kpredict.plans import make_plans

    found = {"seconds": 0.0, "launches": 0}
    for world, call in calls(path):
        began = time.process_time()
        plans = make_plans(world, call, [Mode.COMPILED])
        found["seconds"] += time.process_time() - began
        for error in plans.failures.values():
            raise error
        found["launches"] += sum(len(p.launches) for _, p in plans.by_mode[Mode.COMPILED])
    return found


def by_torch(path: Path) -> dict[str, float]:
    """CPU seconds between torch's own start and end of compiling, summed over graphs."""
    import torch
    from torch._dynamo.callback import callback_handler

    import kpredict
    from kpredict.capture.run import iterate
    from kpredict.compiled.builder import Builder
    from kpredict.compiled.inductor import inductor

    spent = 0.0
    began = 0.0

    def start(_: object) -> None:
        nonlocal began
        began = time.process_time()

    def end(_: object) -> None:
        nonlocal spent
        spent += time.process_time() - began

    for world, call in calls(path):
        torch._dynamo.reset()
        torch._dynamo.trace_rules.add(kpredict.__name__)
        callback_handler.register_start_callback(start)
        callback_handler.register_end_callback(end)
        grad = torch.is_grad_enabled() if call.grad is None else call.grad
        with (
            mock.patch.object(Builder, "listen", hear_nothing),
            inductor(world),
            torch.set_grad_enabled(grad),
        ):
            iterate(
                world.mode.listener, torch.compile(call.fn), call.args, call.kwargs, call.phases,
                call.optimizer,
            )  # fmt: skip
    return {"seconds": spent}


def hear_nothing(_: object, patches: Any) -> None:
    """In the place of our builder's `listen`."""
    patches.set("torch._inductor.graph", "GraphLowering.compile_to_module", generate)


def generate(graph: Any) -> SimpleNamespace:
    """Code is generated; a module that returns arrays of the right layout stands for it."""
    graph.codegen()
    graph.cache_key, graph.cache_path, graph.cache_linemap = "none", "", []
    results = [result_of(node) for node in graph.graph_outputs]

    def call(args: list[Any]) -> list[Any]:
        args.clear()
        return [make() for make in results]

    return SimpleNamespace(call=call, __file__="<generated>")


def result_of(node: Any) -> Callable[[], Any]:
    """How to make one output of a graph."""
    import torch

    if type(node).__name__ == "NoneAsConstantBuffer":
        return lambda: None
    if not hasattr(node, "get_stride"):
        return lambda: getattr(node, "expr", None)
    size, stride = ([int(n) for n in ns] for ns in (node.get_size(), node.get_stride()))
    dtype, device = node.get_dtype(), node.get_device()
    return lambda: torch.empty_strided(size, stride, dtype=dtype, device=device)


MEASURES: dict[str, Callable[[Path], dict[str, float]]] = {
    "kpredict": with_kpredict, "torch": by_torch,
}  # fmt: skip


def measure(what: str, path: Path) -> dict[str, float]:
    """One measure in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", what, str(path)], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{path.stem}, {what}: {done.stderr.strip()[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def least(what: str, path: Path, runs: int) -> dict[str, float]:
    """The cheapest of several runs: what else the machine does only ever adds."""
    return min((measure(what, path) for _ in range(runs)), key=lambda found: found["seconds"])


def child(what: str, path: Path) -> None:
    """Import first what both need, then measure; ours under the command's own conditions."""
    import torch._inductor.compile_fx  # noqa: F401

    from kpredict.session.warm import collect_seldom, load_stages

    if what == "kpredict":
        collect_seldom()
        load_stages(compiled=True)
    print("\n" + json.dumps(MEASURES[what](path)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="default all")
    parser.add_argument("--repeat", type=int, default=1, help="the least of so many runs each")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        child(asked.measure, Path(asked.names[0]))
        return
    table = ["| model | launches | kpredict | torch | ratio |", "|---|---|---|---|---|"]
    print("\n".join(table), flush=True)
    rows: list[Row] = []
    for path in sorted(FOLDER.glob("*.py")):
        if not asked.names or path.stem in asked.names:
            ours, theirs = least("kpredict", path, asked.repeat), least("torch", path, asked.repeat)
            rows.append((ours["seconds"], int(ours["launches"]), theirs["seconds"]))
            table.append(line(path.stem, *rows[-1]))
            print(table[-1], flush=True)
    ours_all, launches, theirs_all = (sum(column) for column in zip(*rows, strict=True))
    table.append(line("all", ours_all, int(launches), theirs_all))
    print(table[-1])
    if asked.write:
        put(asked.write, BEGIN, table)


def line(name: str, ours: float, launches: int, theirs: float) -> str:
    return f"| {name} | {launches} | {ours:.1f} s | {theirs:.1f} s | {ours / theirs:.2f} |"


if __name__ == "__main__":
    main()
