"""A Python loop that launches kernels for each row or element of an array.

What it means
-------------
A `for` runs over the positions of an array and works on one position at a time.

Why it costs
------------
The GPU is made for all rows at once. A loop over n rows launches n times as many kernels, each too
small to fill the device, so the time is that of the launches: n times 2 to 5 µs and more.

Example
-------
    def scale(x: torch.Tensor):
        out = []
        for i in range(x.shape[0]):
            out.append(x[i] / x[i].norm())
        return torch.stack(out)

Instead
-------
Work on the whole array with a broadcast or a reduction over a dim, or `torch.vmap`.

How it is counted
-----------------
The loop runs over `range(x.shape[d])`, `range(len(x))` or the array itself, its body subscripts the
array by the loop's variable and launches kernels. A loop that carries a value from one round to
the next (a recurrence) is not reported, nor one that runs over a Python list of arrays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File, Loop, root
from kpredict.source.infer.trace import Step

BAD = (
    """\
import torch

def scale(x: torch.Tensor):
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] / x[i].norm())
    return torch.stack(out)
""",
    """\
import torch

def scale(x: torch.Tensor):
    out = []
    for row in x:
        out.append(torch.sin(row))
    return out
""",
)
GOOD = (
    """\
import torch

def scan(x: torch.Tensor, h: torch.Tensor):
    for t in range(x.shape[0]):
        h = torch.tanh(h + x[t])
    return h
""",
    """\
import torch

def total(parts: list[torch.Tensor]):
    return [p.sum() for p in parts]
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        steps = file.own_steps(read)
        if not steps or file.is_compiled(read.name):
            continue
        first, last = _lines(file, read.name)
        for loop in file.loops:
            if not first <= loop.node.lineno <= last or not isinstance(loop.node, ast.For):
                continue
            name = _array_of(loop.node)
            inside = [s for s in steps if loop.holds(s.place.line)]
            if not name or not inside or _carries(loop):
                continue
            if not (_subscripts(loop, name, inside) or _iterates(file, loop, steps)):
                continue
            launching = {
                (s.place.line, s.place.column, s.name)
                for s in inside
                if s.results and file.kernels(s).lo > 0
            }
            if not launching:
                continue
            n = len(launching)
            yield file.finding(
                __name__, loop.node, f"each round of this loop over {name} launches {n} "
                f"kernel{'s' if n > 1 else ''} for one row; work on all rows at once",
                function=read.name, confidence=Confidence.LIKELY, before=n,
            )  # fmt: skip


def _lines(file: File, name: str) -> tuple[int, int]:
    return next(((n.lineno, n.end_lineno or n.lineno) for q, n in file.nodes if q == name), (1, 0))


def _array_of(node: ast.For) -> str:
    """The name a loop runs over: `x` of `range(x.shape[0])`, `range(len(x))`, `enumerate(x)`, …"""
    it = node.iter
    if isinstance(it, ast.Call) and isinstance(it.func, ast.Name):
        if it.func.id == "range" and it.args:
            inner = it.args[-1 if len(it.args) < 3 else 1]
            if (
                isinstance(inner, ast.Call)
                and isinstance(inner.func, ast.Name)
                and inner.func.id == "len"
            ):
                return (
                    root(inner.args[0])
                    if inner.args and isinstance(inner.args[0], ast.Name)
                    else ""
                )
            if isinstance(inner, ast.Subscript) and isinstance(inner.value, ast.Attribute):
                return (
                    root(inner)
                    if inner.value.attr == "shape" and isinstance(inner.value.value, ast.Name)
                    else ""
                )
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                return (
                    root(inner)
                    if inner.func.attr == "size" and isinstance(inner.func.value, ast.Name)
                    else ""
                )
            return ""
        if it.func.id == "enumerate" and it.args and isinstance(it.args[0], ast.Name):
            return it.args[0].id
    return it.id if isinstance(it, ast.Name) else ""


def _subscripts(loop: Loop, name: str, inside: list[Step]) -> bool:
    """`x[i]` in the body, where x is an array."""
    variable = (
        loop.node.target.id
        if isinstance(loop.node, ast.For) and isinstance(loop.node.target, ast.Name)
        else ""
    )
    if not isinstance(loop.node, ast.For) or not isinstance(loop.node.iter, ast.Call):
        return False
    lines = {s.place.line for s in inside if s.short in ("select", "index")}
    for n in ast.walk(ast.Module(list(loop.node.body), [])):
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id == name:
            index = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
            if (
                any(isinstance(i, ast.Name) and i.id == variable for i in index)
                and n.lineno in lines
            ):
                return isinstance(n.ctx, ast.Load)
    return False


def _iterates(file: File, loop: Loop, steps: list[Step]) -> bool:
    """`for row in x`, x an array: the reader took a row (or all of them) at the loop's own line."""
    it = loop.node.iter if isinstance(loop.node, ast.For) else None
    if not isinstance(it, ast.Name) and not (
        isinstance(it, ast.Call) and isinstance(it.func, ast.Name) and it.func.id == "enumerate"
    ):
        return False
    return any(s.short in ("select", "unbind") and s.place.line == loop.node.lineno for s in steps)


def _carries(loop: Loop) -> bool:
    """Whether a name is read in the body before it assigns it: a value from the last round."""
    stored: set[str] = set()
    carried = False
    names = {n.id for s in loop.node.body for n in ast.walk(s)
             if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    for s in loop.node.body:
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names - stored:
                carried = True
        stored |= {
            n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
    return carried
