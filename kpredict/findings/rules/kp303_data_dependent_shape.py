"""An operation whose result has a size that only the device knows.

What it means
-------------
`nonzero`, `unique`, `masked_select`, one-argument `where` or an index by a boolean array.

Why it costs
------------
The host must wait for the GPU to learn the size before it can allocate the result and go on; the
operation itself takes several kernels, and torch.compile breaks its graph at it.

Example
-------
    def keep(boxes: torch.Tensor, scores: torch.Tensor):
        return boxes[scores > 0.5]

Instead
-------
Keep the full size with a mask (`torch.where`, multiply by the mask, `topk` with a fixed k), or
gather the indices once and reuse them.

How it is counted
-----------------
The named functions on arrays on the GPU, and subscripts whose index is known to be boolean, read or
assigned an array. Several masks on one line count once.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File
from kpredict.source.infer.trace import Sync

BAD = (
    """\
import torch

def keep(boxes: torch.Tensor, scores: torch.Tensor):
    return boxes[scores > 0.5]
""",
    """\
import torch

def where(x: torch.Tensor):
    return torch.nonzero(x)
""",
)
GOOD = (
    """\
import torch

def keep(boxes: torch.Tensor, i: torch.LongTensor):
    return boxes[i]
""",
    """\
import torch

def zero(x: torch.Tensor):
    x[x < 0] = 0.0
    return x
""",
)
_SHAPED = {
    "nonzero": "nonzero", "unique": "unique", "masked_select": "masked_select",
    "unique_consecutive": "unique_consecutive", "boolean index": "an index by a boolean array",
    "bincount": "bincount",
}  # fmt: skip


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        if file.is_compiled(read.name):
            continue
        for item in file.own(read):
            if isinstance(item, Sync) and item.what in _SHAPED:
                yield file.finding(
                    __name__,
                    item.place,
                    f"{_SHAPED[item.what]} has a size that only the GPU knows: "
                    "the host waits for it",
                    function=read.name,
                )
