"""The time that cannot be beaten: bytes over bandwidth, FLOPs over peak, launches over their cost.

In: a plan and its target. Out: a Bound, in microseconds. It is a bound and never a measurement:
real kernels reach neither figure, and arrays that stay in the cache may beat memory alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpredict.model import Kind, Launch, Plan, Target

_HALF = ("float16", "bfloat16")


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


def ratio(eager: Plan, compiled: Plan, target: Target) -> float:
    """How much less time compiling can need: eager's bound over the compiled one's."""
    after = plan_bound(compiled, target).total
    return plan_bound(eager, target).total / after if after else 1.0


def _peak(launch: Launch, target: Target) -> float:
    """TFLOP/s of the arithmetic it does: by the dtype of what it reads; fp32 without TF32."""
    dtype = launch.reads[0].tensor.dtype if launch.reads else "float32"
    return target.fp16_tflops if dtype in _HALF else target.fp32_tflops
