"""A function whose inputs nobody tells.

What it means
-------------
No directive, annotation with sizes, `get_inputs()` or budget entry says what the function is called
with, so counts that depend on shapes stay intervals.

Why it costs
------------
Nothing by itself. It is a limit of the analysis, said aloud.

Example
-------
    def f(x: torch.Tensor):
        return x.sum()

Instead
-------
Write `# kpredict: x=f32[64,128]` above the function, or give `inputs` in the configuration.

How it is counted
-----------------
Functions that launch something on arrays of unknown shape. Off unless selected.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File

DEFAULT = False
BAD = (
    """\
import torch

def f(x: torch.Tensor):
    return x.sum()
""",
)
GOOD = (
    """\
import torch

# kpredict: x=f32[64,128]
def f(x):
    return x.sum()
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        if any(not s.known and "view" not in s.tags for s in file.own_steps(read)):
            node = next((n for q, n in file.nodes if q == read.name), None)
            if node is not None:
                names = ", ".join(a.arg for a in node.args.args if a.arg != "self")
                yield file.finding(
                    __name__, node, f"the shapes of {names or 'its inputs'} are not known; write "
                    "# kpredict: NAME=f32[…] above it", function=read.name,
                )  # fmt: skip
