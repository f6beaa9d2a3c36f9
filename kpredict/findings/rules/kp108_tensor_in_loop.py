"""A tensor made of Python data on the GPU in a loop.

What it means
-------------
`torch.tensor(…, device="cuda")` runs again in every round.

Why it costs
------------
The data is built on the CPU and copied to the GPU: one transfer per round, from memory that is not
pinned, so the host waits for it.

Example
-------
    def run(xs):
        for x in xs:
            w = torch.tensor([0.1, 0.9], device="cuda")

Instead
-------
Make it once before the loop, or on the device (`torch.full`, `torch.arange`).

How it is counted
-----------------
A call of `torch.tensor` or `torch.as_tensor` with a CUDA device and Python data, inside a loop. It
is certain when the device is written out and nothing in it depends on the loop. An empty list is
no data, and what stands under `if key == "…"`, key being the loop's variable, runs once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File, Loop
from kpredict.source.dotted import dotted

BAD = (
    """\
import torch

def run(xs):
    for x in xs:
        w = torch.tensor([0.1, 0.9], device="cuda")
""",
    """\
import torch

def run(xs: torch.Tensor):
    for i in range(10):
        w = torch.tensor(i, device=xs.device)
""",
)
GOOD = (
    """\
import torch

def run(xs):
    w = torch.tensor([0.1, 0.9], device="cuda")
    for x in xs:
        y = x * w
""",
    """\
import torch

def run(xs):
    for x in xs:
        w = torch.tensor([0.1, 0.9])
""",
    """\
import torch

def scale(annotation, w, h):
    for key, value in annotation.items():
        if key == "boxes":
            value /= torch.tensor([w, h], device=value.device)
        parts = [torch.tensor([], device=value.device)]
""",
)


def check(file: File) -> Iterator[Finding]:
    for loop in file.loops:
        for node in ast.walk(ast.Module(list(loop.node.body), [])):
            if not isinstance(node, ast.Call) or dotted(node.func) not in (
                "torch.tensor",
                "torch.as_tensor",
            ):
                continue
            if file.loop_at(node.lineno) is not loop or not node.args:
                continue
            device = next((k.value for k in node.keywords if k.arg == "device"), None)
            if device is None or not _is_gpu(device) or not _is_data(node.args[0]):
                continue
            if _runs_once(loop, node):
                continue
            varies = _depends(loop, node.args[0])
            certain = not varies and isinstance(device, ast.Constant)
            yield file.finding(
                __name__, node, "a tensor is built on the CPU and copied to the GPU in every round"
                + ("" if varies else "; make it once before the loop"),
                confidence=Confidence.CERTAIN if certain else Confidence.LIKELY,
            )  # fmt: skip


def _is_gpu(device: ast.expr) -> bool:
    if isinstance(device, ast.Constant):
        return isinstance(device.value, str) and device.value.startswith("cuda")
    return dotted(device).endswith("device") and not (
        isinstance(device, ast.Constant) and device.value is None
    )


def _is_data(node: ast.expr) -> bool:
    """A display, number or name of Python data, not an array already."""
    if isinstance(node, (ast.List, ast.Tuple)) and not node.elts:
        return False
    return isinstance(node, (ast.List, ast.Tuple, ast.Constant, ast.ListComp, ast.Name))


def _runs_once(loop: Loop, call: ast.Call) -> bool:
    """Whether it stands under `if key == "…"` where key is what the loop runs over."""
    if isinstance(loop.node, ast.While):
        return False
    names = {n.id for n in ast.walk(loop.node.target) if isinstance(n, ast.Name)}
    return any(
        isinstance(n, ast.If) and _picks_one(n.test, names)
        and any(x is call for s in n.body for x in ast.walk(s))
        for n in ast.walk(loop.node)
    )  # fmt: skip


def _picks_one(test: ast.expr, names: set[str]) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_picks_one(v, names) for v in test.values)
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id in names
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
    )


def _depends(loop: Loop, data: ast.expr) -> bool:
    stored = {
        n.id
        for n in ast.walk(loop.node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return any(isinstance(n, ast.Name) and n.id in stored for n in ast.walk(data))
