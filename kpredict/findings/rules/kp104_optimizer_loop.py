"""An optimizer that updates one parameter at a time.

What it means
-------------
The optimizer was made with `foreach=False`, or the update is a Python loop over the parameters.

Why it costs
------------
Each parameter takes several kernels of its own. PyTorch's default (`foreach`) packs many parameters
in one launch, `fused=True` does the whole update in one: for Adam over 100 parameters, more than a
thousand kernels against about ten.

Example
-------
    opt = torch.optim.Adam(model.parameters(), foreach=False)

Instead
-------
Leave `foreach` alone or pass `fused=True`; for updates of your own use `torch._foreach_add_` and
its kin, or `torch.optim.swa_utils`.
`kpredict FILE --what-if` writes the change and predicts it.

How it is counted
-----------------
The call that makes the optimizer, or a loop over `.parameters()` whose body changes the parameter
(or its gradient) in place by arithmetic. Plain copies, loops that only set `requires_grad`, and
functions whose names say that they run once (init, build, load, reset, …) are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File, root
from kpredict.source.dotted import dotted

BAD = (
    """\
import torch

def make(model):
    return torch.optim.Adam(model.parameters(), foreach=False)
""",
    """\
import torch

def step(model, lr):
    with torch.no_grad():
        for p in model.parameters():
            p -= lr * p.grad
""",
)
GOOD = (
    """\
import torch

def make(model):
    return torch.optim.Adam(model.parameters())
""",
    """\
import torch

def freeze(model):
    for p in model.parameters():
        p.requires_grad_(False)
""",
    """\
import torch

def build_encoder(model, teacher, scale):
    for p in model.parameters():
        p.data.mul_(scale)

def share(model, teacher):
    for p, q in zip(model.parameters(), teacher.parameters()):
        p.data.copy_(q.data)
""",
)
_ARITHMETIC = frozenset("add_ sub_ mul_ div_ addcmul_ addcdiv_ lerp_".split())
_ONCE = re.compile(r"_*(init|build|load|reset|make|create|setup|from|transfer|convert|prepare)")


def check(file: File) -> Iterator[Finding]:
    for node in file.all_nodes:
        if not isinstance(node, ast.Call) or not _is_optimizer(node):
            continue
        given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
        if given.get("foreach") is False and not given.get("fused"):
            yield file.finding(
                __name__,
                node,
                f"{dotted(node.func)} with foreach=False launches its kernels once per parameter; "
                "the default packs them",
            )
    for loop in file.loops:
        variables = _parameters(loop.node)
        if not variables or _ONCE.match(file.function_at(loop.node.lineno).rpartition(".")[2]):
            continue
        updates = [n for s in loop.node.body for n in ast.walk(s) if _updates(n, variables)]
        if updates:
            n = len(updates)
            yield file.finding(
                __name__, loop.node, f"this loop updates the parameters one by one ({n} in-place "
                f"update{'s' if n > 1 else ''} each); torch._foreach_* takes them all at once",
                confidence=Confidence.LIKELY,
            )  # fmt: skip


def _is_optimizer(node: ast.Call) -> bool:
    name = dotted(node.func)
    return ".optim." in f".{name}" or name.split(".")[-1] in (
        "Adam",
        "AdamW",
        "SGD",
        "RMSprop",
        "Adagrad",
        "NAdam",
        "RAdam",
        "Adadelta",
        "Adamax",
    )


def _parameters(node: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Names that stand for parameters in a loop over `m.parameters()`, zipped or not."""
    if isinstance(node, ast.While):
        return set()
    calls = [
        n
        for n in ast.walk(node.iter)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("parameters", "named_parameters")
    ]
    if not calls:
        return set()
    return {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}


def _updates(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.AugAssign):
        target = node.target
        if isinstance(target, ast.Attribute) and target.attr != "data":
            return False
        return root(target) in names and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        plain = isinstance(owner, ast.Name) or (
            isinstance(owner, ast.Attribute) and owner.attr in ("data", "grad")
        )
        if not plain or root(owner) not in names or not node.args:
            return False
        if node.func.attr == "copy_":  # p.copy_(tau * p + (1 - tau) * q)
            made = node.args[0]
            read = {n.id for n in ast.walk(made) if isinstance(n, ast.Name)}
            return isinstance(made, ast.BinOp) and not names.isdisjoint(read)
        return node.func.attr in _ARITHMETIC
    return False
