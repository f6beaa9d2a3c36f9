"""A compiled function that is called with a Python number that changes.

What it means
-------------
torch.compile specialises on Python numbers: a call with another one compiles again.

Why it costs
------------
A compilation takes seconds. An int is compiled twice (the second time as a symbol), a float or a
value read from an array each time it changes, until the limit of recompilations is reached and the
function runs uncompiled.

Example
-------
    @torch.compile
    def scale(x, factor):
        return x * factor

    def run(x):
        for i in range(100):
            x = scale(x, i * 0.1)

Instead
-------
Pass it as a tensor (`torch.tensor(factor)`), or mark it with `torch._dynamo.mark_dynamic` or
`dynamic=True`.

How it is counted
-----------------
A call of a function that this file compiles, inside a loop, with the loop's counter (or arithmetic
on it) or an `.item()` as an argument. Loops over arrays and strings do not count, nor what is
compiled with `dynamic=True`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File
from kpredict.source.dotted import dotted

BAD = (
    """\
import torch

@torch.compile
def scale(x, factor):
    return x * factor

def run(x):
    for i in range(100):
        x = scale(x, i * 0.1)
    return x
""",
)
GOOD = (
    """\
import torch

@torch.compile
def scale(x, y):
    return x * y

def run(x, ys):
    for y in ys:
        x = scale(x, y)
    return x
""",
    """\
import torch

def run(x):
    scale = torch.compile(lambda x, n: x * n, dynamic=True)
    for i in range(100):
        x = scale(x, i)
    return x

def other(x, scale):
    for i in range(100):
        x = scale(x, i)
    return x
""",
)


def check(file: File) -> Iterator[Finding]:
    for loop in file.loops:
        counters = _counters(loop.node)
        for node in ast.walk(ast.Module(list(loop.node.body), [])):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            compilation = file.compilations.name_at(node.func.id, node.lineno)
            if compilation is None or compilation.options.get("dynamic") is True:
                continue
            if file.loop_at(node.lineno) is not loop:
                continue
            for a in (*node.args, *(k.value for k in node.keywords)):
                if _is_number(a, counters):
                    yield file.finding(
                        __name__, node, f"{dotted(node.func)} is compiled and called with "
                        f"{ast.unparse(a)[:40]}, a Python number that changes: it compiles again",
                        confidence=Confidence.LIKELY,
                    )  # fmt: skip
                    break


def _counters(node: ast.AST) -> set[str]:
    """The variable of `for i in range(…)`, the first of `enumerate(…)`."""
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
        return set()
    called = dotted(node.iter.func)
    target = node.target
    if called == "range" and isinstance(target, ast.Name):
        return {target.id}
    if (
        called == "enumerate"
        and isinstance(target, ast.Tuple)
        and isinstance(target.elts[0], ast.Name)
    ):
        return {target.elts[0].id}
    return set()


def _is_number(a: ast.expr, counters: set[str]) -> bool:
    if isinstance(a, ast.Name):
        return a.id in counters
    if isinstance(a, ast.BinOp):
        return (_is_number(a.left, counters) or _is_number(a.right, counters)) and not any(
            isinstance(n, (ast.Call, ast.Subscript)) for n in ast.walk(a))  # fmt: skip
    return (
        isinstance(a, ast.Call)
        and isinstance(a.func, ast.Attribute)
        and a.func.attr == "item"
        and not a.args
    )
