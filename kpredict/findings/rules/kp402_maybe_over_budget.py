"""Perhaps more kernels than the budget allows.

What it means
-------------
The count of a function with a budget is an interval, and the budget lies inside it.

Why it costs
------------
Nobody can say from the source that the budget holds: a branch, a loop of unknown length, a shape or
a library decides.

Example
-------
    def f(x: torch.Tensor, twice: bool):
        if twice:
            x = x * 2
        return x + 1          # 1..2 kernels, max-eager = 1

Instead
-------
Tell the inputs by a directive, so that the count becomes exact; run without `--static`; or set the
budget to the upper end.

How it is counted
-----------------
The budget is at least the lower end of the interval and below its upper end (or the end is open).
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File

EXAMPLE_BUDGET = {"max_eager": 1}
BAD = (
    """\
import torch

def f(x: torch.Tensor, twice: bool):
    if twice:
        x = x * 2
    return x + 1
""",
)
GOOD = (
    """\
import torch

def f(x: torch.Tensor):
    return torch.sin(x)
""",
)


def check(file: File) -> Iterable[Finding]:
    """Budgets are checked by `kpredict.findings.budgets`."""
    return ()
