"""The time that cannot be beaten: bytes over bandwidth, FLOPs over peak, launches over their cost.

In: a plan and its target. Out: a Bound, in microseconds. It is a bound and never a measurement:
real kernels reach neither figure, and arrays that stay in the cache may beat memory alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpredict.model import Kind, Launch, Phases, Plan, Target

# how often the half-precision peak the matrix units reach for narrower types, at most
_OVER_HALF = {
    "float16": 1, "bfloat16": 1, "float8_e4m3fn": 2, "float8_e5m2": 2, "float4_e2m1fn_x2": 4,
    "int8": 4, "uint8": 4,
}  # fmt: skip

_SINGLE = ("float32", "complex64")


@dataclass(frozen=True, slots=True)
class Bound:
    """Microseconds below which a plan cannot run.

    `memory` and `compute` are sums of what each launch needs at least for either; `device` takes
    the larger of both for each launch; `launches` is the host's time to launch them one by one.
    """

    memory: float
    compute: float
    device: float
    launches: float

    @property
    def total(self) -> float:
        """Host and device work side by side: the slower of the two decides."""
        return max(self.device, self.launches)

    @property
    def limited_by(self) -> str:
        """ "launches", "memory" or "compute": what would have to shrink first."""
        if self.launches >= self.device:
            return "launches"
        return "memory" if self.memory >= self.compute else "compute"


def launch_bound(launch: Launch, target: Target) -> tuple[float, float]:
    """(memory, compute): microseconds one launch needs at least for its bytes and for its FLOPs."""
    if launch.kind is Kind.SYNC:
        return 0.0, 0.0
    moved = sum(a.bytes for a in launch.reads) + sum(a.bytes for a in launch.writes)
    memory = moved / (target.bandwidth * 1e3)  # GB/s = bytes per nanosecond
    return memory, launch.flops / (_peak(launch, target) * 1e6)  # TFLOP/s = FLOP per picosecond


def plan_bound(plan: Plan, target: Target) -> Bound:
    """The bound of a whole plan: launches run one after another on one stream."""
    each = [launch_bound(launch, target) for launch in plan.launches]
    return Bound(
        sum(m for m, _ in each),
        sum(c for _, c in each),
        sum(max(m, c) for m, c in each),
        plan.host_launches.lo * target.launch_us,
    )


def phases_bound(phases: Phases, target: Target) -> Bound:
    """The bound of all phases, one after another on one stream."""
    each = [plan_bound(plan, target) for _, plan in phases]
    return Bound(
        sum(b.memory for b in each),
        sum(b.compute for b in each),
        sum(b.device for b in each),
        sum(b.launches for b in each),
    )


def ratio(before: Bound, after: Bound) -> float:
    """How much less time the second can need than the first; 1 where there is nothing to do."""
    return before.total / after.total if after.total else 1.0


def _peak(launch: Launch, target: Target) -> float:
    """TFLOP/s of the arithmetic it does, at most: by the dtype of what it reads and, for float32,
    by how its products are made; a library that nobody told may use TF32."""
    dtype = launch.reads[0].tensor.dtype if launch.reads else "float32"
    if dtype in _OVER_HALF:
        return _OVER_HALF[dtype] * target.fp16_tflops
    told = launch.precision or ("tf32" if launch.kind is Kind.LIBRARY else "ieee")
    by_tf32 = {"tf32": 1.0, "3xtf32": 1 / 3}.get(told, 0.0) if dtype in _SINGLE else 0.0
    return max(target.fp32_tflops, by_tf32 * target.tf32_tflops)
