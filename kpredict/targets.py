"""GPU profiles: one row of public figures each, from NVIDIA's data sheets and CUDA's tables.

In: a name. Out: a Target. Shared memory and threads per SM are by compute capability (CUDA C++
programming guide, "Technical specifications per compute capability").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from kpredict.model import KpredictError, Target

DEFAULT = "h100"

# capability -> (max threads per SM, shared bytes per SM, shared bytes per block after opt-in)
_BY_CAPABILITY = {
    (7, 5): (1024, 65536, 65536),
    (8, 0): (2048, 167936, 166912),
    (8, 6): (1536, 102400, 101376),
    (8, 9): (1536, 102400, 101376),
    (9, 0): (2048, 233472, 232448),
    (10, 0): (2048, 233472, 232448),
}


def _row(
    name: str, gpu: str, capability: tuple[int, int], sms: int, bandwidth: float, l2: int,
    clock: int, memory: int, fp32: float, tf32: float, fp16: float,
) -> Target:  # fmt: skip
    threads, per_sm, optin = _BY_CAPABILITY[capability]
    return Target(
        name, gpu, capability, sms, bandwidth, l2, clock, memory, threads, 49152, per_sm, optin,
        fp32, tf32, fp16,
    )  # fmt: skip


_ROWS = (
    # name, GPU, capability, SMs, GB/s, L2 MiB, MHz, memory MiB, fp32, tf32, fp16 TFLOP/s (dense)
    _row("t4", "Tesla T4", (7, 5), 40, 320, 4, 1590, 16384, 8.1, 8.1, 65),
    _row("rtx3090", "GeForce RTX 3090", (8, 6), 82, 936, 6, 1695, 24576, 35.6, 35.6, 71),
    _row("a10g", "NVIDIA A10G", (8, 6), 80, 600, 6, 1710, 24576, 31.5, 35, 70),
    _row("a100", "A100-SXM4-80GB", (8, 0), 108, 2039, 40, 1410, 81920, 19.5, 156, 312),
    _row("l4", "NVIDIA L4", (8, 9), 58, 300, 48, 2040, 24576, 30.3, 60, 121),
    _row("rtx4090", "GeForce RTX 4090", (8, 9), 128, 1008, 72, 2520, 24576, 82.6, 82.6, 165),
    _row("h100", "H100 80GB HBM3", (9, 0), 132, 3350, 50, 1980, 81920, 66.9, 494, 989),
    _row("h200", "NVIDIA H200", (9, 0), 132, 4800, 50, 1980, 144384, 66.9, 494, 989),
    _row("b200", "NVIDIA B200", (10, 0), 148, 8000, 126, 1965, 184320, 80, 1100, 2250),
)
TARGETS: Mapping[str, Target] = MappingProxyType({row.name: row for row in _ROWS})


def target(
    name: str | None = None,
    torch: str | None = None,
    cuda: int | None = None,
    launch_us: float | None = None,
) -> Target:
    """The profile called `name` (default h100), for a torch release, a CUDA major version and a
    time per launch.

    Raises KpredictError for an unknown name.
    """
    key = (name or DEFAULT).lower()
    if key not in TARGETS:
        near = get_close_matches(key, TARGETS, 1)
        guess = f"Did you mean {near[0]}? " if near else ""
        raise KpredictError(
            f"No target is called {name!r}.", f"{guess}Known targets: {', '.join(TARGETS)}."
        )
    found = TARGETS[key]
    if torch is not None:
        found = replace(found, torch=torch)
    if cuda is not None:
        found = replace(found, cuda=cuda)
    if launch_us is not None:
        found = replace(found, launch_us=launch_us)
    return found


def parse_targets(text: str) -> tuple[str, ...]:
    """`h100,a100,t4` → names, each once; `all` is every one. Raises KpredictError."""
    names = tuple(dict.fromkeys(n.strip().lower() for n in text.split(",") if n.strip()))
    if names == ("all",):
        return tuple(TARGETS)
    if not names:
        raise KpredictError("--targets names none.", f"Known targets: {', '.join(TARGETS)}.")
    for name in names:
        target(name)
    return names
