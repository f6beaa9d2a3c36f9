"""Bounds on time against profiler traces of real GPUs: no kernel may be faster than its bound.

    python benchmarks/bounds.py TRACE.json.gz... [--worst 15]

Each recorded op call is made again on the pretended GPU (see traces.py). What its launches need at
least for their bytes and FLOPs is held against the time its kernels took. A call that is faster
beats the bound: because its arrays were in the L2 cache, or because the bound is wrong.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from traces import calls_of, measured, plan_of

from kpredict import pretend_cuda
from kpredict.bounds import plan_bound
from kpredict.model import Kind
from kpredict.verify.bundle import Machine
from kpredict.verify.machines import target_of
from kpredict.verify.trace import read_trace

_WITH_TF32 = ("tf32", "s1688gemm", "s1688cudnn")  # as cuBLAS, CUTLASS and cuDNN name kernels
_BY_STRIDE = {"aten::copy_", "aten::cat", "aten::clone"}  # an expanded source is read once


@dataclass(frozen=True, slots=True)
class Row:
    """One op call: the bound and the measured time in microseconds, the bytes it touches."""

    op: str
    bound: float
    time: float
    limit: str
    touched: int
    fits: bool

    @property
    def beaten(self) -> bool:
        return self.time < self.bound


def rows(path: Path) -> Iterator[Row]:
    trace = read_trace(path)
    device = trace.device
    name, note = target_of(Machine(device.name, device.capability, device.sms))
    if device.vendor != "NVIDIA" or note:
        print(f"{path.name[:34]:34} left out: {note or 'not an NVIDIA GPU'}")
        return
    calls = list(calls_of(trace))
    durations = [a.duration for call in calls for a in call.work]
    cut = 1.0 if all(d.is_integer() for d in durations) else 0.0  # old traces cut to whole us
    strides = any(any(call.inputs.strides) for call in calls)
    with pretend_cuda(name) as world:
        target = world.target
        for call in calls:
            if call.name in _BY_STRIDE and not strides:
                continue
            try:
                plan = plan_of(world, call)
            except Exception:  # what cannot be made again is counted by traces.py
                continue
            ran = measured(call)
            same = plan.kernels.lo <= ran.kernels + ran.library[0] <= plan.kernels.hi
            if plan.unknowns or not same or any(a.kind is Kind.MEMCPY for a in call.work):
                continue  # copies go over PCIe, mispredicted calls say nothing of the bound
            if any(mark in a.name for a in call.work for mark in _WITH_TF32):
                launches = (replace(x, precision="tf32") for x in plan.launches)
                plan = replace(plan, launches=tuple(launches))
            bound = plan_bound(plan, target)
            limit = "memory" if bound.memory >= bound.compute else "compute"
            touched = plan.transfers[1]
            yield Row(
                call.name, bound.device, sum(a.duration for a in call.work) + cut, limit, touched,
                touched < target.l2 << 20,
            )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--worst", type=int, default=15, help="how many beaten calls to print")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    print(f"{'trace':34} {'limit':8} {'calls':>6} {'beaten':>7} {'in L2':>6}   time over bound")
    beaten: list[Row] = []
    for path in options.traces:
        found = list(rows(path))
        for limit in ("memory", "compute"):
            part = [r for r in found if r.limit == limit and r.bound > 0]
            if not part:
                continue
            lost = [r for r in part if r.beaten]
            beaten += lost
            ratios = [r.time / r.bound for r in part]
            print(
                f"{path.name[:34]:34} {limit:8} {len(part):>6,} {len(lost):>7,} "
                f"{sum(r.fits for r in lost):>6,}   median {statistics.median(ratios):.2f}"
            )
    for r in sorted(beaten, key=lambda r: r.time / r.bound)[: options.worst]:
        where = "fits in L2" if r.fits else "does not fit in L2"
        print(f"  {r.time / r.bound:.2f} {r.op}: {r.time:.1f} us, bound {r.bound:.1f} us of "
              f"{r.limit}, {r.touched:,} bytes, {where}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
