"""More kernels, or round trips, than the budget allows.

What it means
-------------
An entry in the configuration states the most kernels a function may take, and it surely takes more.

Why it costs
------------
The budget is the user's own. It is there so that a change that adds launches does not go unseen.

Example
-------
    [[tool.kpredict.entry]]
    path = "model.py::Model"
    max-eager = 12

Instead
-------
Bring the count down, or raise the budget in the same change so that a reviewer sees it.

How it is counted
-----------------
The lower end of the count's interval is above the budget.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File

EXAMPLE_BUDGET = {"max_eager": 1}
BAD = (
    """\
import torch

def f(x: torch.Tensor):
    return torch.sin(x).cos()
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
