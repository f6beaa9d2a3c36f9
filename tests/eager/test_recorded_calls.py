"""Reductions, scans, sorts, softmax, losses and norms against what PyTorch's host code launched.

`fixtures/recorded/<target>.jsonl` holds, for calls of torch 2.13.0 built for CUDA 13.0, each kernel
in order with its grid, block and how often it follows itself, and the numbers of memcpy, memset
and sync. The library's own host code ran; the calls it made to the CUDA runtime were written down
and answered as that GPU would, so there was no GPU and no data. A value that the host reads is 1;
of nonzero and unique it is half of the elements.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import kpredict
from kpredict.model import Kind, Launch, Mode

FIXTURES = Path(__file__).parents[2] / "fixtures" / "recorded"

pytestmark = pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="the fixtures are of torch 2.13"
)


def _array(shape: list[int], dtype: str, layout: str, *, needs_grad: bool) -> torch.Tensor:
    options: dict[str, Any] = {"dtype": getattr(torch, dtype), "device": "cuda"}
    if layout == "transposed":
        x = torch.empty(shape[::-1], **options).permute(*reversed(range(len(shape))))
    elif layout == "channels_last":
        x = torch.empty(shape, memory_format=torch.channels_last, **options)
    elif layout == "offset":
        x = torch.empty(torch.Size(shape).numel() + 1, **options)[1:].view(shape)
    else:
        x = torch.empty(shape, **options)
    return x.requires_grad_(needs_grad and (x.is_floating_point() or x.is_complex()))


def _launches(row: dict[str, Any]) -> list[Launch]:
    backward = row["phase"] == "backward"
    arrays = [_array(*a, needs_grad=backward) for a in row["arrays"]]
    names = dict(zip("xyzuvw", arrays, strict=False), torch=torch, F=F)
    call = eval(f"lambda: {row['call']}", names)
    if backward:
        result = call()
        outs = [result] if isinstance(result, torch.Tensor) else result
        out = next(t for t in outs if t.requires_grad)
        ins = [t for t in arrays if t.requires_grad]
        grad = torch.empty(out.shape, dtype=out.dtype, device="cuda")

        def run() -> Any:
            return torch.autograd.grad(out, ins, grad, retain_graph=True, allow_unused=True)

    else:
        run = call
    entry = kpredict.predict(run, modes=("eager",)).entries[0]
    assert not entry.unknowns
    return [launch for _, plan in entry.plans[Mode.EAGER] for launch in plan.launches]


def _differences(row: dict[str, Any]) -> Iterator[str]:
    launches = _launches(row)
    kernels = [launch for launch in launches if launch.kind is Kind.KERNEL]
    expected = [k[:3] for k in row["kernels"] for _ in range(k[3])]
    names = [launch.name for launch in kernels]
    if names != [name for name, _, _ in expected]:
        yield f"{names} for {[name for name, _, _ in expected]}"
    else:
        for launch, (name, *geometry) in zip(kernels, expected, strict=True):
            predicted = [_dims(launch.grid), _dims(launch.block)]
            if launch.grid is not None and predicted != geometry:
                yield f"{name} {predicted} for {geometry}"
    kinds = (Kind.MEMCPY, Kind.MEMSET, Kind.SYNC)
    others = [sum(launch.kind is kind for launch in launches) for kind in kinds]
    if others != row["others"]:
        yield f"{others} memcpy, memset, sync for {row['others']}"


def _dims(dims: tuple[int, int, int] | None) -> list[int]:
    found = list(dims or ())
    while len(found) > 1 and found[-1] == 1:
        found.pop()
    return found


@pytest.mark.parametrize("target", ["h100", "a100", "t4"])
def test_launches_are_those_of_the_host_code(target: str) -> None:
    lines = (FIXTURES / f"{target}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) > 100
    with kpredict.pretend_cuda(target=target):
        wrong = [
            f"{row['phase']} of {row['call']} {row['arrays']}: {difference}"
            for row in rows
            for difference in _differences(row)
        ]
    assert wrong == []
