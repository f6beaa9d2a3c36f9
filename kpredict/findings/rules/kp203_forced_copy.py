"""A copy forced by `.contiguous()` or `.reshape()` of a transposed array.

What it means
-------------
The array's memory is in another order than its shape, so making it contiguous writes a new one.

Why it costs
------------
A kernel that only moves: it reads and writes the whole array, and mostly with strided accesses.

Example
-------
    def merge(x: torch.Tensor):
        return x.transpose(1, 2).contiguous()

Instead
-------
Work on the transposed view where the next operation takes strides (matmul, pointwise and
reductions do), choose the layout at the producer, or let `F.scaled_dot_product_attention` take
heads as dim 1.

How it is counted
-----------------
`.contiguous()` of an array that a transpose, permute or `.T` made, or a reshape that is known to
merge such dims. With unknown shapes a transposed array is taken for one that really is out of
order, and the confidence is "likely". The output of `F.scaled_dot_product_attention` is left
alone then: its kernels write heads last, so that transposing them back costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File, megabytes, size_of
from kpredict.source.infer.trace import Step
from kpredict.source.infer.values import Array

BAD = (
    """\
import torch

def merge(x: torch.Tensor):
    return x.transpose(1, 2).contiguous()
""",
    """\
import torch

# kpredict: x=f32[2,3,4]
def merge(x):
    return x.permute(0, 2, 1).reshape(2, 12)
""",
)
GOOD = (
    """\
import torch

def merge(x: torch.Tensor):
    return (x + 1).contiguous()
""",
    """\
import torch

# kpredict: x=f32[2,3,4]
def merge(x):
    return x.reshape(6, 4)
""",
    """\
import torch
import torch.nn.functional as F

def merge(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).contiguous()
""",
)
_REORDER = frozenset("transpose permute t".split())


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        own = file.own_steps(read)
        reordered: dict[int, Step] = {}
        attended: set[int] = set()
        for step in own:
            if "scaled_dot_product" in step.short:
                attended |= {a.storage for a in step.results}
            if step.short in _REORDER:
                for a in step.results:
                    reordered[a.storage] = step
            elif step.short in ("clone", "_to_copy") and step.results:
                reordered.pop(step.results[0].storage, None)
            if step.short != "clone" or step.args.get("memory_format") != "contiguous_format":
                continue
            if not step.direct:
                continue  # a copy inside one of torch's own functions
            x = step.args["self"]
            if (
                not isinstance(x, Array)
                or x.device != "cuda"
                or "expand" in file.source(step.place.line)
            ):
                continue
            text = file.source(step.place.line)
            call = "contiguous" if ".contiguous(" in text else "reshape"
            known = x.known and x.is_contiguous is False
            turned = x.storage in reordered
            guessed = call == "contiguous" and not x.known and x.storage not in attended
            if not turned or not (known or guessed):
                continue
            how = "permuted" if reordered[x.storage].short == "permute" else "transposed"
            size = size_of(x)
            moved = f" ({megabytes(2 * size)})" if size is not None else ""
            yield file.finding(
                __name__,
                step.place,
                f"{call} of a {how} array copies it{moved}",
                function=read.name,
                before=1,
                after=0,
                bytes=2 * size if size else None,
                confidence=Confidence.CERTAIN if known else Confidence.LIKELY,
            )
