"""Many kernels on arrays of one element.

What it means
-------------
Scalars (losses, means, counters) are combined on the GPU one operation at a time.

Why it costs
------------
A kernel on one number takes as long to launch as one on a million. Four of them cost 10 µs and
more for four additions.

Example
-------
    def loss(a: torch.Tensor, b: torch.Tensor):
        x, y = a.mean(), b.mean()
        return (x - y) * 0.5 + x * y - 1.0       # 5 kernels on single numbers

Instead
-------
Combine before the reduction, stack the scalars and work on them together, or compile the function.

How it is counted
-----------------
Pointwise ops in one straight run whose arrays all are known to hold one element; from `tiny` of
them on (default 4). What one call of PyTorch's own does inside counts for nothing alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File
from kpredict.findings.rules._patterns import is_pointwise, lines, sequences, span
from kpredict.source.infer.trace import Step

BAD = (
    """\
import torch

def loss(a: torch.Tensor, b: torch.Tensor):
    x, y = a.mean(), b.mean()
    return (x - y) * 0.5 + x * y - 1.0
""",
)
GOOD = (
    """\
import torch

def loss(a: torch.Tensor, b: torch.Tensor):
    return (a - b).mean() + 1.0
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        if file.is_compiled(read.name):
            continue
        for run in sequences(read.items):
            tiny = [
                i
                for i in run
                if isinstance(i, Step)
                and file.is_own(read, i.place)
                and is_pointwise(i)
                and i.results
                and file.kernels(i).lo
                and all(a.numel == 1 for a in (*i.arrays, *i.results))
            ]
            places = {(s.place.line, s.place.column) for s in tiny}
            if len(tiny) >= file.limits.tiny and len(places) > 1:
                first, last = span(tiny)
                yield file.finding(
                    __name__, first, f"{len(tiny)} kernels on single numbers on "
                    f"{lines(first.line, last)}", function=read.name, before=len(tiny), after=1,
                    end_line=last,
                )  # fmt: skip
