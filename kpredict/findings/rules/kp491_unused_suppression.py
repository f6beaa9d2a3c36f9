"""A suppression that suppresses nothing.

What it means
-------------
A comment `# kpredict: ignore[KP201]` or `# noqa: KP201` stands on a line that has no such finding.

Why it costs
------------
It hides the finding that may come back there, and readers look for a reason that is gone.

Example
-------
    y = x + 1  # kpredict: ignore[KP101] fused later

Instead
-------
Remove the comment, or the code from its list.

How it is counted
-----------------
Codes of rules that ran and found nothing on the line (or, for a comment of its own line, on the
next). A bare `# noqa` and codes of other tools are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File

BAD = (
    """\
import torch

def f(x: torch.Tensor):
    return x + 1  # kpredict: ignore[KP101] fused later
""",
)
GOOD = (
    """\
import torch

def f(x: torch.Tensor, y: torch.Tensor):
    return torch.sigmoid(x) * y + 1.0  # kpredict: ignore[KP101] small
""",
)


def check(file: File) -> Iterable[Finding]:
    """Suppressions are matched by `kpredict.findings.suppressions`, after all rules have run."""
    return ()
