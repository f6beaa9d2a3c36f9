"""Predicted grids and blocks against launches that PyTorch's host code was seen to make.

usage: geometry.py SPECS.py ROWS.jsonl[.gz] [--every N] [--only NAME] [--misses N]

SPECS lists calls as the rows' own specification does; a row has `base` names and `launch`
(grid, block, shared memory) per kernel. Rows whose kernels are not predicted by name are left out.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import kpredict
from kpredict.model import Kind


def rows(path: Path) -> dict[tuple[str, str, str], Any]:
    """The truth by call and phase, rows with errors left out."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        found = [json.loads(line) for line in lines]
    return {(r["fn"], r["args"], r["phase"]): r for r in found if "error" not in r}


def calls(path: Path, only: str, every: int) -> Iterator[tuple[str, str, str, Any]]:
    """Name, arguments, phase and a function to run, for each call of the specification."""
    spec = importlib.util.spec_from_file_location("specs", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for i, (name, args, setup, _, _) in enumerate(module.SPECS):
        if i % every or only not in name:
            continue
        for phase in ("fwd", "bwd"):
            try:
                yield name, args, phase, _phase(setup, phase)
            except Exception:
                continue


def _phase(setup: Any, phase: str) -> Any:
    forward, inputs = setup()
    if phase == "fwd":
        return forward
    result = forward()
    outs = result if isinstance(result, (tuple, list)) else [result]
    y = next(t for t in outs if isinstance(t, torch.Tensor) and t.requires_grad)
    g = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    wanted = [t for t in inputs if t.requires_grad]
    return lambda: torch.autograd.grad(y, wanted, g, retain_graph=True, allow_unused=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--misses", type=int, default=20)
    options = parser.parse_args()
    truth = rows(options.rows)
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    shown: collections.Counter[str] = collections.Counter()
    with kpredict.pretend_cuda(target="h100"):
        for name, args, phase, function in calls(options.specs, options.only, options.every):
            row = truth.get((name, args, phase))
            if row is None:
                continue
            try:
                report = kpredict.predict(function, modes=("eager",))
            except Exception:
                continue
            found = [
                x
                for phases in report.entries[0].plans.values()
                for _, plan in phases
                for x in plan.launches
                if x.kind in (Kind.KERNEL, Kind.LIBRARY)
            ]
            if [x.name for x in found] != [b.removeprefix("LIB:") for b in row["base"]]:
                continue
            for launch, (grid, block, _) in zip(found, row["launch"], strict=True):
                if launch.kind is Kind.LIBRARY:
                    continue
                seen[launch.name, "kernels"] += 1
                if launch.grid is None or launch.block is None:
                    continue
                seen[launch.name, "predicted"] += 1
                same = (list(launch.grid), list(launch.block)) == (grid, block)
                seen[launch.name, "equal"] += same
                if not same and shown.total() < options.misses:
                    shown[launch.name] += 1
                    print(name, args, phase, launch.name, launch.grid, launch.block, grid, block)
    print(f"{'kernel':50} kernels predicted equal")
    for kernel in sorted({k for k, _ in seen}, key=lambda k: -seen[k, "kernels"]):
        n, predicted, equal = (seen[kernel, s] for s in ("kernels", "predicted", "equal"))
        print(f"{kernel:50} {n:7} {predicted:9} {equal / max(predicted, 1):6.1%}")
    total = {s: sum(n for (_, t), n in seen.items() if t == s) for s in ("predicted", "equal")}
    print(f"equal of all predicted: {total['equal'] / max(total['predicted'], 1):.2%}")


if __name__ == "__main__":
    main()
