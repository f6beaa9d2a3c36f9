"""A call that the analysis cannot count.

What it means
-------------
An operation without a rule, or a call into code that is not here.

Why it costs
------------
Nothing by itself: the count of the function has no upper end, and that is said.

Example
-------
    def f(x: torch.Tensor):
        return my_extension.fast_norm(x)

Instead
-------
Register a rule (`@kpredict.rule("mylib::op")`), or run without `--static`.

How it is counted
-----------------
Calls with arrays as arguments whose launches are unknown, once per line. Off unless selected.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File
from kpredict.source.infer.trace import Missing

DEFAULT = False
BAD = (
    """\
import torch
import my_extension

def f(x: torch.Tensor):
    return my_extension.fast_norm(x)
""",
)
GOOD = (
    """\
import torch

def f(x: torch.Tensor):
    return torch.sin(x)
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        seen: set[int] = set()
        for item in file.own(read):
            if isinstance(item, Missing) and item.place.line not in seen:
                seen.add(item.place.line)
                yield file.finding(
                    __name__, item.place, f"{item.what}: how many kernels it launches is not known",
                    function=read.name,
                )  # fmt: skip
