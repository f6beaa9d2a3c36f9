"""Several pointwise kernels in a row that torch.compile would make one.

What it means
-------------
Elementwise operations that feed each other each launch a kernel of their own.

Why it costs
------------
Every kernel is a launch (2 to 5 µs of the host's time) and a full pass over its arrays: what one
writes the next reads back from GPU memory. Fused, the values stay in registers.

Example
-------
    def gate(x: torch.Tensor, y: torch.Tensor):
        return torch.sigmoid(x) * y + 1.0        # 3 kernels

Instead
-------
Decorate the function with `@torch.compile`, or use an operation that does all of it.

How it is counted
-----------------
Pointwise ops joined by data in one straight run of a function, each one kernel in eager mode;
views between them cost nothing and do not interrupt. A library call, a reduction or a read by the
host ends a chain. Reported from `chain` kernels on (default 3), not inside functions that are
given to torch.compile. A cast that may be none (the dtype is not known) is not counted, and checks
that one of PyTorch's own functions makes on single numbers are no chain.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File
from kpredict.findings.rules._patterns import chains, lines, sequences, span
from kpredict.source.infer.trace import Step

BAD = (
    """\
import torch

def gate(x: torch.Tensor, y: torch.Tensor):
    return torch.sigmoid(x) * y + 1.0
""",
)
GOOD = (
    """\
import torch

@torch.compile
def gate(x: torch.Tensor, y: torch.Tensor):
    return torch.sigmoid(x) * y + 1.0
""",
    """\
import torch

def scale(x: torch.Tensor):
    return x.view(-1) * 2
""",
    """\
import torch

def scale(x: torch.Tensor):
    return (x * 2 + 1).float()
""",
    """\
import torch

def draw(p: torch.Tensor):
    return torch.multinomial(p, 1)
""",
)


def _is_check(step: Step) -> bool:
    """Inside a call of PyTorch's own, on single numbers: what `torch.multinomial` asserts."""
    return not step.direct and all(a.numel == 1 for a in step.results)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        if file.is_compiled(read.name):
            continue
        for run in sequences(read.items):
            for whole in chains(run):
                chain = [s for s in whole if file.is_own(read, s.place)]
                if len(chain) < file.limits.chain or all(map(_is_check, chain)):
                    continue
                chain = [s for s in chain if file.kernels(s).lo]
                if len(chain) < file.limits.chain:
                    continue
                first, last = span(chain)
                names = ", ".join(dict.fromkeys(s.short.lstrip("_") for s in chain))
                yield file.finding(
                    __name__, first, f"{len(chain)} pointwise kernels on {lines(first.line, last)} "
                    f"({names}) would be 1 compiled", function=read.name, before=len(chain),
                    after=1, end_line=last,
                )  # fmt: skip
