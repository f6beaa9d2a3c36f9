"""zero_grad that fills gradients with zeros and does not drop them.

What it means
-------------
`zero_grad(set_to_none=False)` keeps every gradient and writes zeros to it.

Why it costs
------------
One or more fill kernels over all gradients now, and in the backward an addition to each of them
where a plain write would do.

Example
-------
    def step(optimizer):
        optimizer.zero_grad(set_to_none=False)

Instead
-------
`optimizer.zero_grad()`: since PyTorch 2.0 it drops the gradients.
`kpredict FILE --what-if` writes the change and predicts it.

How it is counted
-----------------
A call of `zero_grad` with `set_to_none=False` (or a first argument False).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File

BAD = (
    """\
def step(optimizer):
    optimizer.zero_grad(set_to_none=False)

import torch
""",
)
GOOD = (
    """\
import torch

def step(optimizer):
    optimizer.zero_grad()
""",
    """\
import torch

def step(optimizer):
    optimizer.zero_grad(set_to_none=True)
""",
)


def check(file: File) -> Iterator[Finding]:
    for node in file.all_nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "zero_grad"
        ):
            given = [k.value for k in node.keywords if k.arg == "set_to_none"] or node.args[:1]
            if given and isinstance(given[0], ast.Constant) and given[0].value is False:
                yield file.finding(
                    __name__, node, "zero_grad(set_to_none=False) fills every gradient with zeros; "
                    "the default drops them",
                )  # fmt: skip
