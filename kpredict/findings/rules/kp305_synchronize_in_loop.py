"""torch.cuda.synchronize or empty_cache in a loop.

What it means
-------------
Each round waits for the GPU, or gives its cached memory back to the driver.

Why it costs
------------
`synchronize` ends all overlap of host and device. `empty_cache` makes the next allocations go to
`cudaMalloc`, which synchronises too and takes up to a millisecond.

Example
-------
    def train(batches):
        for b in batches:
            step(b)
            torch.cuda.empty_cache()

Instead
-------
Neither is needed for a right result. Time with CUDA events and one `synchronize` after the loop.

How it is counted
-----------------
A call by its full name inside a loop's body, in the same function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File
from kpredict.source.dotted import dotted

BAD = (
    """\
import torch

def train(batches):
    for b in batches:
        step(b)
        torch.cuda.empty_cache()
""",
)
GOOD = (
    """\
import torch

def train(batches):
    for b in batches:
        step(b)
    torch.cuda.synchronize()
""",
)
_CALLS = frozenset(
    "torch.cuda.synchronize torch.cuda.empty_cache torch.accelerator.synchronize "
    "torch.accelerator.empty_cache".split()
)


def check(file: File) -> Iterator[Finding]:
    for node in file.all_nodes:
        if (
            isinstance(node, ast.Call)
            and dotted(node.func) in _CALLS
            and file.loop_at(node.lineno) is not None
        ):
            what = dotted(node.func)
            effect = (
                "waits for the GPU" if what.endswith("synchronize") else "frees the memory cache"
            )
            yield file.finding(__name__, node, f"{what} {effect} in every round of a loop")
