"""The host reads a value from the GPU on a hot path.

What it means
-------------
`.item()`, `float(t)`, `bool(t)`, `if t:`, `print(t)` or `.tolist()` of an array on the GPU; also an
array of one number as an index (`x[i]`) or a bound (`x[:n]`).

Why it costs
------------
The host waits until the GPU has done everything before it; while it waits it cannot launch more,
so the GPU then waits for the host. In a training loop this takes away the overlap of the two.

Example
-------
    def forward(self, x: torch.Tensor):
        if x.isnan().any():
            raise ValueError("nan")
        return x

Instead
-------
Keep the number on the GPU (`torch.where`, `masked_fill`), read it every hundredth step, or check
with `torch._assert_async`.

How it is counted
-----------------
Only arrays that are on the GPU as far as the source tells, in a module's `forward`, a function
named as a step, or inside a loop. A read under `if …:` is counted as well, as "likely".
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File
from kpredict.source.infer.trace import Fork, Item, Repeat, Sync

BAD = (
    """\
import torch
from torch import nn

class M(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.isnan().any():
            raise ValueError
        return x
""",
    """\
import torch

def total(xs: list[torch.Tensor]):
    s = 0.0
    for x in xs:
        s += x.sum().item()
    return s
""",
    """\
import torch

# kpredict: x=f32[8,4], wanted=i64[3]
def rows(x, wanted):
    out = []
    for i in wanted:
        out.append(x[i])
    return out
""",
)
GOOD = (
    """\
import torch

def value(x: torch.Tensor):
    return x.sum().item()
""",
    """\
import torch

def f(x: torch.Tensor):
    for i in range(3):
        n = torch.tensor(i).item()
        x = x + n
    return x
""",
    """\
import torch

def rows(x: torch.Tensor, wanted: list[int]):
    out = []
    for i in wanted:
        out.append(x[i] + x[:i].sum())
    return out
""",
)
_READS = {
    "item": ".item()", "__float__": "float()", "__int__": "int()", "bool": "the truth value",
    "tolist": ".tolist()", "print": "print()", "format": "formatting",
}  # fmt: skip


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        for item, sure in _items(read.items, True):
            if item.what not in _READS or not file.is_own(read, item.place):
                continue
            if not file.is_hot(read.name, item.place.line) or file.is_compiled(read.name):
                continue
            looped = file.loop_at(item.place.line) is not None
            where = "in every round of a loop" if looped else "on a hot path"
            said = _said(item.what, file.source(item.place.line))
            yield file.finding(
                __name__, item.place, f"{said} on the GPU makes the host wait, {where}",
                function=read.name,
                confidence=Confidence.CERTAIN if sure else Confidence.LIKELY,
            )  # fmt: skip


def _said(what: str, source: str) -> str:
    """The read as it stands in the source: an index and a bound have no word of their own."""
    if what == "item" and "item(" not in source:
        return "an index that is an array"
    if what == "__int__" and "int(" not in source:
        return "a bound or number that is an array"
    return f"{_READS[what]} of an array"


def _items(items: tuple[Item, ...], sure: bool) -> Iterator[tuple[Sync, bool]]:
    for item in items:
        if isinstance(item, Sync):
            yield item, sure
        elif isinstance(item, Fork):
            for branch in item.branches:
                yield from _items(branch, False)
        elif isinstance(item, Repeat):
            yield from _items(item.body, sure)
