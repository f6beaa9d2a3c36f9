"""A copy between CPU and GPU in every round of a loop.

What it means
-------------
`.cpu()`, `.numpy()`, `.to("cuda")` or `.cuda()` inside a loop.

Why it costs
------------
To the CPU the host waits for the GPU in each round; to the GPU an array that is not pinned makes
it wait as well, and the copy runs at the bus's speed, a hundredth of the memory's.

Example
-------
    def run(xs: list[torch.Tensor], w: torch.Tensor):
        out = []
        for x in xs:
            out.append((x * w).cpu())
        return out

Instead
-------
Collect on the GPU and copy once after the loop; move what does not change before it.

How it is counted
-----------------
A copy to the CPU of an array that is on the GPU; a copy to the GPU of something the loop does not
make itself. Moving the batch that a loop iterates over is left alone: it has to go there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File, Loop, root
from kpredict.source.infer.trace import Sync

BAD = (
    """\
import torch

def run(xs: list[torch.Tensor], w: torch.Tensor):
    out = []
    for x in xs:
        out.append((x * w).cpu())
    return out
""",
    """\
import torch

def run(xs, w):
    out = []
    for x in xs:
        out.append(x * w.to("cuda"))
    return out
""",
)
GOOD = (
    """\
import torch

def run(loader, model):
    for x in loader:
        x = x.to("cuda")
        model(x)
""",
    """\
import torch

def run(x: torch.Tensor):
    return x.cpu()
""",
)


def check(file: File) -> Iterator[Finding]:
    seen: set[tuple[int, int]] = set()
    for read in file.functions:
        for item in file.own(read):
            if isinstance(item, Sync) and item.what in ("cpu", "numpy"):
                at = (item.place.line, item.place.column)
                if file.loop_at(item.place.line) is not None and at not in seen:
                    seen.add(at)
                    yield file.finding(
                        __name__,
                        item.place,
                        f"a copy to the CPU (.{item.what}) in every round of a "
                        "loop: the host waits each time",
                        function=read.name,
                    )
    for loop in file.loops:
        for node in ast.walk(ast.Module(list(loop.node.body), [])):
            if isinstance(node, ast.Call) and _to_gpu(node) and file.loop_at(node.lineno) is loop:
                assert isinstance(node.func, ast.Attribute)
                name = root(node.func.value)
                if name and isinstance(node.func.value, ast.Name) and name not in _made_in(loop):
                    yield file.finding(
                        __name__,
                        node,
                        f"{name} is copied to the GPU in every round of a loop; move it before",
                        confidence=Confidence.LIKELY,
                    )


def _to_gpu(node: ast.Call) -> bool:
    """`x.cuda()` or `x.to("cuda…")`."""
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "cuda":
        return not (isinstance(node.func.value, ast.Name) and node.func.value.id == "torch")
    first = node.args[0] if node.args else None
    return (
        node.func.attr == "to" and isinstance(first, ast.Constant) and isinstance(first.value, str)
        and first.value.startswith("cuda")
    )  # fmt: skip


def _made_in(loop: Loop) -> set[str]:
    """Names that the loop sets, its own variables among them."""
    return {
        n.id
        for n in ast.walk(loop.node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
