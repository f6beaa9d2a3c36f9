"""torch.cat that grows an array in a loop.

What it means
-------------
Each round joins what there is with one more piece.

Why it costs
------------
Every round copies everything so far: n rounds move n²/2 pieces through memory, and each allocates.

Example
-------
    def collect(parts: list[torch.Tensor]):
        out = torch.empty(0, 8, device="cuda")
        for p in parts:
            out = torch.cat([out, p])
        return out

Instead
-------
Append to a list and join once after the loop, or write into an array made large enough before.

How it is counted
-----------------
Inside a loop, `x = torch.cat([… x …])` (or concat, vstack, hstack, stack) where x is set nowhere
else in the loop's body.
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

def collect(parts):
    out = torch.empty(0, 8, device="cuda")
    for p in parts:
        out = torch.cat([out, p])
    return out
""",
)
GOOD = (
    """\
import torch

def collect(parts):
    out = []
    for p in parts:
        out.append(p * 2)
    return torch.cat(out)
""",
    """\
import torch

def pad(rows, z):
    for r in rows:
        x = r + 1
        x = torch.cat([x, z])
        yield x
""",
)
_JOINS = frozenset("cat concat concatenate vstack hstack".split())


def check(file: File) -> Iterator[Finding]:
    for loop in file.loops:
        for statement in _direct(loop.node.body):
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            target = dotted(statement.targets[0])
            call = statement.value
            if not target or not isinstance(call, ast.Call) or not call.args:
                continue
            name = dotted(call.func)
            if name.split(".")[-1] not in _JOINS or not name.startswith("torch."):
                continue
            parts = call.args[0]
            if not isinstance(parts, (ast.List, ast.Tuple)):
                continue
            if target in [dotted(p) for p in parts.elts] and not _set_elsewhere(
                loop.node, target, statement
            ):
                yield file.finding(
                    __name__, statement, f"{target} grows by {name} in a loop: each round copies "
                    "all of it; append to a list and join once",
                )  # fmt: skip


def _direct(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop's body, those of inner loops and functions left out."""
    for s in body:
        yield s
        if isinstance(s, (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _direct(getattr(s, name, None) or [])


def _set_elsewhere(loop: ast.AST, target: str, but: ast.stmt) -> bool:
    for n in ast.walk(loop):
        if n is but:
            continue
        targets = n.targets if isinstance(n, ast.Assign) else [n.target] if isinstance(
            n, (ast.For, ast.AnnAssign)) else []  # fmt: skip
        for t in targets:
            if (
                isinstance(n, ast.Assign)
                and isinstance(n.value, ast.Call)
                and dotted(n.value.func).split(".")[-1] in _JOINS
            ):
                continue
            if any(dotted(x) == target for x in ast.walk(t)):
                return True
    return False
