"""A constant written out at full size where a number would do.

What it means
-------------
`torch.where` or an arithmetic op is given a whole array of zeros, ones or one value.

Why it costs
------------
A fill kernel writes the array and the next kernel reads it: two passes for one number. Arithmetic
takes a Python number for nothing; `where` still fills an array, but of one element.

Example
-------
    def clean(x: torch.Tensor):
        return torch.where(x > 0, x, torch.zeros_like(x))

Instead
-------
Pass the number: `torch.where(x > 0, x, 0.0)`, `x.masked_fill(mask, 0.0)`, `x + 1`.

How it is counted
-----------------
`zeros_like`, `ones_like`, `full_like`, `zeros`, `ones` or `full` of an array on the GPU with more
than one element, whose only use is as an operand of `where`, an arithmetic or a comparison op,
next to an array of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File, size_of, users
from kpredict.source.infer.trace import Step
from kpredict.source.infer.trace import steps as all_steps
from kpredict.source.infer.values import Array

BAD = (
    """\
import torch

def clean(x: torch.Tensor):
    return torch.where(x > 0, x, torch.zeros_like(x))
""",
    """\
import torch

def f(x: torch.Tensor):
    one = torch.ones_like(x)
    return one - x
""",
)
GOOD = (
    """\
import torch

def clean(x: torch.Tensor):
    return torch.where(x > 0, x, 0.0)
""",
    """\
import torch

def f(x: torch.Tensor):
    out = torch.zeros_like(x)
    out[0] = x[0]
    return out + x
""",
)
_FULL = frozenset(
    "zeros_like ones_like full_like zeros ones full new_zeros new_ones new_full".split()
)
_OPERATORS = frozenset("where add sub mul div maximum minimum eq ne lt le gt ge rsub".split())


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        if file.is_compiled(read.name):
            continue
        own = file.own_steps(read)
        readers = users(own)
        everywhere = users(list(all_steps(read.items)))
        kept = {a.storage for a in read.returned}
        for step in own:
            if step.short not in _FULL or not step.results:
                continue
            out = step.results[0]
            if out.device != "cuda" or out.numel == 1 or out.shape == () or out.storage in kept:
                continue
            using = readers.get(out.storage, [])
            if len(using) != 1 or len(everywhere.get(out.storage, [])) != 1:
                continue
            user = using[0]
            if (
                user.short not in _OPERATORS
                or user.packet.endswith("_")
                or not _spares(step, user, out)
            ):
                continue
            size = size_of(out)
            yield file.finding(
                __name__,
                step.place,
                f"{step.short} fills a whole array that {user.short} only reads as one number: "
                f"{_instead(user.short)}",
                function=read.name,
                before=2,
                after=2 if user.short == "where" else 1,
                bytes=2 * size if size is not None else None,
            )


def _instead(user: str) -> str:
    """What the number itself would cost. `where` makes an array of a number, of one element."""
    if user == "where":
        return "written out and read back; with the number itself the fill is of one element"
    how = {"maximum": " (`clamp`)", "minimum": " (`clamp`)"}.get(user, "")
    return f"2 kernels, 1 with the number itself{how}"


def _spares(step: Step, user: Step, constant: Array) -> bool:
    """Whether the result has its shape without the constant: another operand is as large."""
    others = [a for a in user.arrays if a.storage != constant.storage]
    if user.short == "where":
        branches = [user.args.get("self"), user.args.get("other")]
        if not all(isinstance(b, Array) for b in branches):
            return False
    model = step.args.get("self")
    if isinstance(model, Array) and any(a.storage == model.storage for a in others):
        return True
    return constant.shape is not None and any(a.shape == constant.shape for a in others)
