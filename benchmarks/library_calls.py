"""Intervals for calls into cuBLAS and cuDNN against measured numbers of kernels.

    python benchmarks/library_calls.py FILE...

Reads three kinds of files: `*.csv.gz` with one measured call per row (op, device, dims, n_kernels);
`*.jsonl` with GEMMs of a trace (op, dims, dtype, events, count); `*.tsv` with a histogram of
kernels per call for each op of many traces, and the shapes that gave an unusual number. Prints for
each group the share of calls whose number lies inside the interval, the mean width, and how often
the expected number was right.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kpredict.eager.splitting import Split, gemm_kernels, graph_kernels
from kpredict.model import Target
from kpredict.targets import target

# name in the files → a target known to kpredict, or its SMs and compute capability
GPUS: dict[str, str | tuple[int, tuple[int, int]]] = {
    "H100": "h100", "A100": "a100", "L4": "l4", "T4": "t4",
    "V100": (80, (7, 0)), "P100": (56, (6, 0)), "P4": (20, (6, 1)),
}  # fmt: skip
GEMMS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


@dataclass(frozen=True, slots=True)
class Measured:
    """So many calls that were `kernels` kernels each, and what the rule says of them."""

    group: str
    kernels: int
    calls: int
    split: Split


@cache
def gpu(name: str) -> Target:
    """The target a device name means."""
    found = GPUS[next(g for g in GPUS if g in re.split(r"[ -]", name))]
    if isinstance(found, str):
        return target(found)
    sms, capability = found
    return replace(target("t4"), name=name, sms=sms, capability=capability)


def rows_of_csv(path: Path) -> Iterator[Measured]:
    with gzip.open(path, "rt") as f:
        for row in csv.DictReader(f):
            dims = {k: int(v) for k, v in (d.split("=") for d in row["dims"].split(";"))}
            on = gpu(row["device"])
            kernels = int(row["n_kernels"])
            if row["op"] == "conv":
                split = graph_kernels(
                    "forward", filter_size=dims["Kernel_Szie"] ** 2,
                    channels=dims["Input_Channel"], filters=dims["Output_Channel"],
                    image=dims["Input_Size"] ** 2, groups=1, dtype="float32",
                    layout="contiguous", target=on,
                )  # fmt: skip
            else:  # M by N times N by K
                split = gemm_kernels(
                    dims["M"], dims["K"], dims["N"], dims["B"], on, tensor_cores=False
                )
                if row["op"] == "linear" and dims["N"] == 1:
                    kernels -= 1  # PyTorch copies the bias itself
            yield Measured(f"{row['op']} {row['device']}", kernels, 1, split)


def gemm_dims(op: str, dims: list[list[int]]) -> tuple[int, int, int, int]:
    """m, n, k and the batch from the shapes of the arguments."""
    a, b = dims[1:3] if "add" in op else dims[:2]
    return a[-2], b[-1], a[-1], a[0] if len(a) == 3 else 1


def rows_of_jsonl(path: Path) -> Iterator[Measured]:
    for line in path.read_text().splitlines():
        row = json.loads(line)
        m, n, k, batch = gemm_dims(row["op"], row["dims"])
        events = [e for e in row["events"] if e not in ("MEMSET", "at::native::elementwise_kernel")]
        split = gemm_kernels(m, n, k, batch, gpu(row["gpu"]), tensor_cores="TF32" in row["dtype"])
        yield Measured(f"{row['op']} in a trace", len(events), row["count"], split)


def rows_of_tsv(path: Path) -> Iterator[Measured]:
    """Calls of one kernel lie inside every interval; of others, those whose shapes are told."""
    with path.open() as f:
        for row in csv.DictReader(f, delimiter="\t"):
            if row.get("op") not in GEMMS:
                continue
            for kernels, calls in (h.split(":") for h in row["self_kernels_hist(incl 0)"].split()):
                if kernels == "1":
                    split = Split(1, 1, 1, "")
                    yield Measured(f"{row['op']} in traces", 1, int(calls), split)
            for other in (row["dims_with_other_count"] or "").split(" || "):
                told = re.fullmatch(r"(\d+)@\[(\[\[.*?\]\]|\[\[.*\]\]), \[.*\]\]x(\d+)", other)
                if told is None or told[1] == "0":
                    continue
                dims = gemm_dims(row["op"], ast.literal_eval(told[2]))
                half = "BFloat16" in other or "Half" in other
                split = gemm_kernels(*dims, gpu("NVIDIA A100"), tensor_cores=half)
                yield Measured(f"{row['op']} in traces", int(told[1]), int(told[3]), split)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--misses", type=int, default=0, help="print so many calls outside")
    options = parser.parse_args()
    readers = {".gz": rows_of_csv, ".jsonl": rows_of_jsonl, ".tsv": rows_of_tsv}
    groups: dict[str, list[Measured]] = defaultdict(list)
    for path in options.files:
        for row in readers[path.suffix](path):
            groups[row.group].append(row)
    for kind, wanted in (("GEMM", True), ("convolution", False)):
        for group in sorted(g for g in groups if g.startswith("conv") != wanted):
            report(group, groups[group], options.misses)
        every = [r for g, rows in groups.items() if g.startswith("conv") != wanted for r in rows]
        if every:
            report(f"all {kind} calls", every, 0)
    return 0


def report(group: str, rows: list[Measured], misses: int) -> None:
    calls = sum(r.calls for r in rows)
    outside = [r for r in rows if not r.split.lo <= r.kernels <= r.split.hi]
    inside = calls - sum(r.calls for r in outside)
    width = sum((r.split.hi - r.split.lo) * r.calls for r in rows) / calls
    right = sum(r.calls for r in rows if r.kernels == r.split.expected) / calls
    print(f"{group:32} {calls:7} calls  inside {inside / calls:7.2%}  mean width {width:.2f}"
          f"  expected right {right:7.2%}")  # fmt: skip
    for row in outside[:misses]:
        print(f"    {row.kernels} kernels, {row.split}")


if __name__ == "__main__":
    sys.exit(main())
