"""A large array that is written only to be read back.

What it means
-------------
One kernel writes an array and a later one of the same function reads it; nobody else needs it.

Why it costs
------------
The array goes through GPU memory twice. At 3 TB/s a gigabyte there and back is 0.7 ms, often more
than the arithmetic.

Example
-------
    # kpredict: x=f32[8192,8192]
    def f(x):
        return torch.sin(x * 2).sum()            # x * 2 and its sine: 268 MB each, written and read

Instead
-------
Compile the function, or use an operation that does both (`torch.addcmul`, `F.softmax`, `out=`).

How it is counted
-----------------
Only where shapes are known (directive, annotation, factory). The bytes are one write and all reads
of the array; reported above `round-trip-mb` (default 64), when the writer and every reader could be
one kernel: pointwise ops, and reductions that read them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File, megabytes, size_of, users
from kpredict.findings.rules._patterns import is_pointwise, sequences
from kpredict.source.infer.trace import Step

BAD = (
    """\
import torch

# kpredict: x=f32[8192,8192]
def f(x):
    return torch.sin(x * 2).sum()
""",
    """\
import torch

def f():
    x = torch.zeros(8192, 8192, device="cuda")
    return torch.exp(x * 2)
""",
)
GOOD = (
    """\
import torch

# kpredict: x=f32[16,16]
def f(x):
    return torch.sin(x * 2).sum()
""",
    """\
import torch

def f(x: torch.Tensor):
    return torch.sin(x * 2).sum()
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        if file.is_compiled(read.name):
            continue
        kept = {a.storage for a in read.returned}
        for run in sequences(read.items):
            steps = [i for i in run if isinstance(i, Step)]
            readers = users(steps)
            for step in steps:
                if not file.is_own(read, step.place) or not is_pointwise(step) or not step.results:
                    continue
                out = step.results[0]
                size = size_of(out)
                if (
                    size is None
                    or out.storage in kept
                    or any(a.storage == out.storage for a in step.arrays)
                ):
                    continue
                using = [s for s in readers.get(out.storage, []) if "view" not in s.tags]
                if not using or not all(is_pointwise(s) or "reduction" in s.tags for s in using):
                    continue
                moved = size * (1 + len(using))
                if size >= file.limits.round_trip_mb * 1e6:
                    yield file.finding(
                        __name__,
                        step.place,
                        f"the result of {step.short} ({out}, {megabytes(size)}) "
                        f"is written and read back: {megabytes(moved)} through memory",
                        function=read.name,
                        bytes=moved,
                    )
