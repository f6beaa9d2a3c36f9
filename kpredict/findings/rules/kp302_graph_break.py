"""Something inside a compiled function that torch.compile cannot take into its graph.

What it means
-------------
The function is given to `torch.compile`, and a `print`, an `.item()`, an `if` on an array or a
data-dependent shape stands in it: the graph ends there and a new one starts after it.

Why it costs
------------
What is before and after is not fused, values that cross go through memory, and each part is called
from Python.

Example
-------
    @torch.compile
    def f(x: torch.Tensor):
        y = torch.sin(x)
        print(y.shape)
        return torch.cos(y)

Instead
-------
Take it out of the compiled function, use `torch.where` or `torch.cond` for the branch, or set
`torch._dynamo.config.capture_scalar_outputs` for `.item()`.
`kpredict FILE --what-if` writes such changes and predicts them.

How it is counted
-----------------
In functions with `@torch.compile`, or wrapped by `torch.compile(f)` in the same file, without
`fullgraph=True` (which would be an error, not a break). Constructs: print, breakpoint and input;
`.item()`, `.tolist()`, `float(t)`, `int(t)`; the truth value of an array; nonzero, unique,
masked_select and boolean indexing. A function defined inside counts where it is called by name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File
from kpredict.source.infer.trace import Sync

BAD = (
    """\
import torch

@torch.compile
def f(x: torch.Tensor):
    y = torch.sin(x)
    print(y.shape)
    return torch.cos(y)
""",
    """\
import torch

def f(x: torch.Tensor):
    if x.sum() > 0:
        return x
    return -x

g = torch.compile(f)
""",
)
GOOD = (
    """\
import torch

def f(x: torch.Tensor):
    print(x.shape)
    return x
""",
    """\
import torch

@torch.compile
def f(x: torch.Tensor):
    return torch.where(x > 0, x, -x)
""",
    """\
import torch

@torch.compile
def f(x: torch.Tensor):
    def report():
        print("never called")
    return torch.sin(x)

@torch.compile(fullgraph=True)
def g(x: torch.Tensor):
    print("an error, not a break")
    return torch.sin(x)
""",
)
_BREAKS = {
    "item": ".item()", "tolist": ".tolist()", "__float__": "float() of an array",
    "__int__": "int() of an array", "bool": "a branch on an array's value",
    "nonzero": "nonzero", "unique": "unique", "masked_select": "masked_select",
    "unique_consecutive": "unique_consecutive", "boolean index": "a boolean index",
}  # fmt: skip
_CALLS = frozenset("print breakpoint input".split())


def check(file: File) -> Iterator[Finding]:
    for name, compilation in file.compilations.functions.items():
        if compilation.node is None or compilation.options.get("fullgraph") is True:
            continue
        seen: set[int] = set()
        for inner in _running(compilation.node):
            if (
                isinstance(inner, ast.Call)
                and isinstance(inner.func, ast.Name)
                and inner.func.id in _CALLS
            ):
                seen.add(inner.lineno)
                yield file.finding(__name__, inner, _message(f"{inner.func.id}()"), function=name)
        for read in file.functions:
            if read.name != name:
                continue
            for item in file.own(read):
                if isinstance(item, Sync) and item.what in _BREAKS and item.place.line not in seen:
                    seen.add(item.place.line)
                    yield file.finding(
                        __name__, item.place, _message(_BREAKS[item.what]), function=name
                    )


def _running(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without functions defined in it that it never calls by name."""
    called = {
        n.func.id
        for n in ast.walk(function)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    waiting = [function]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [
            c
            for c in ast.iter_child_nodes(node)
            if not isinstance(c, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            or getattr(c, "name", "") in called
        ]


def _message(what: str) -> str:
    return (
        f"{what} breaks the graph of this compiled function: what is before and after is not fused"
    )
