"""An out-of-place operation whose input is never used again.

What it means
-------------
A pointwise op under `no_grad` makes a new large array while its input is thrown away.

Why it costs
------------
Both arrays are alive at once, so the peak of memory is higher, and the allocator has more to do.
The traffic is the same.

Example
-------
    @torch.no_grad()
    # kpredict: x=f32[16384,16384]
    def f(x):
        y = x @ x
        y = y * 2
        return torch.relu(y)

Instead
-------
The in-place form (`mul_`, `relu_`, `F.relu(inplace=True)`), where autograd does not need the input.

How it is counted
-----------------
Only under `no_grad` or `inference_mode` seen in the source, with known shapes, above
`round-trip-mb`.
Off unless selected: it saves memory, not time.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File, makers, megabytes, size_of
from kpredict.findings.rules._patterns import is_pointwise, sequences
from kpredict.source.infer.trace import Step

DEFAULT = False
BAD = (
    """\
import torch

# kpredict: x=f32[16384,16384]
@torch.no_grad()
def f(x):
    y = x @ x
    y = y * 2
    return torch.relu(y)
""",
)
GOOD = (
    """\
import torch

# kpredict: x=f32[16384,16384]
@torch.no_grad()
def f(x):
    y = x @ x
    y.mul_(2)
    return torch.relu_(y)
""",
    """\
import torch

# kpredict: x=f32[16384,16384]
def f(x):
    return torch.relu(x @ x)
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        kept = {a.storage for a in read.returned}
        for run in sequences(read.items):
            steps = [i for i in run if isinstance(i, Step)]
            by = makers(steps)
            for at, step in enumerate(steps):
                if (
                    step.grad
                    or not is_pointwise(step)
                    or step.packet.endswith("_")
                    or not step.results
                ):
                    continue
                if not file.is_own(read, step.place):
                    continue
                out = step.results[0]
                size = size_of(out)
                later = {a.storage for s in steps[at + 1 :] for a in s.arrays}
                for a in step.arrays:
                    dead = a.storage in by and a.storage not in later and a.storage not in kept
                    fits = a.shape == out.shape and a.dtype == out.dtype
                    if (
                        dead
                        and fits
                        and size is not None
                        and size >= file.limits.round_trip_mb * 1e6
                    ):
                        yield file.finding(
                            __name__,
                            step.place,
                            f"{step.short} makes a new array of {megabytes(size)} "
                            "while its input is dead; in place it needs none",
                            function=read.name,
                            bytes=size,
                        )
                        break
