"""An expanded array that is then copied.

What it means
-------------
`expand` repeats an array without memory; a `.contiguous()`, `.clone()` or `.reshape()` after it
writes all the repetitions out.

Why it costs
------------
The copy is as many times larger as the array was expanded, and everything that follows reads the
large one.

Example
-------
    def repeat_kv(x: torch.Tensor, n: int):
        b, h, t, d = x.shape
        return x[:, :, None].expand(b, h, n, t, d).contiguous()

Instead
-------
Let the next operation broadcast (pointwise ops and matmul do); for grouped-query attention pass
`enable_gqa=True` to `F.scaled_dot_product_attention`.

How it is counted
-----------------
A copy whose input is the result of `expand`, with only views in between. A reshape counts
when it has fewer dims than the expanded array, so that it merges some of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File
from kpredict.source.infer.trace import Step
from kpredict.source.infer.values import Array

BAD = (
    """\
import torch

def repeat_kv(x: torch.Tensor, n: int):
    b, h, t, d = x.shape
    return x[:, :, None].expand(b, h, n, t, d).contiguous()
""",
)
GOOD = (
    """\
import torch

def add(x: torch.Tensor, y: torch.Tensor):
    return x.expand(4, 8) + y
""",
    """\
import torch

def f(x: torch.Tensor):
    y = x.expand(4, 8)
    z = y + 1
    return z.contiguous()
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        own = file.own_steps(read)
        expanded: dict[int, Step] = {}
        for step in own:
            if step.short == "expand" and step.results and step.direct:
                expanded[step.results[0].storage] = step
            if step.short != "clone" or not step.direct:
                continue
            x = step.args["self"]
            if not isinstance(x, Array) or x.storage not in expanded or x.device != "cuda":
                continue
            if x.known and 0 not in (x.stride or ()):
                continue
            text = file.source(step.place.line)
            if not any(w in text for w in (".contiguous(", ".clone(", ".reshape(", ".flatten(")):
                continue
            sure = x.known or ".contiguous(" in text or ".clone(" in text
            if not sure and not _merges(own, step, x):
                continue
            yield file.finding(
                __name__, step.place, "the expanded array is written out in full; let the next "
                "operation broadcast it", function=read.name, before=1, after=0,
                confidence=Confidence.CERTAIN if sure else Confidence.LIKELY,
            )  # fmt: skip


def _merges(own: list[Step], copy: Step, x: Array) -> bool:
    """Whether the reshape that may copy has fewer dims than the expanded array: it merges some."""
    for s in own:
        size = s.args.get("size")
        if (
            s.short == "view"
            and s.place == copy.place
            and isinstance(s.args["self"], Array)
            and s.args["self"].storage == x.storage
            and isinstance(size, tuple)
            and x.ndim is not None
        ):
            return len(size) < x.ndim
    return False
