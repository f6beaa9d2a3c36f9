"""A cast that is undone at once.

What it means
-------------
An array is converted to another dtype and straight back, or to the dtype it has by way of another.

Why it costs
------------
Two passes through memory that change nothing but, perhaps, the precision.

Example
-------
    def f(x: torch.Tensor):
        h = x.half()
        return h.float().half()                  # two kernels for nothing

Instead
-------
Use the array from before the first cast.
`kpredict FILE --what-if` writes the change and predicts it.

How it is counted
-----------------
A cast whose input is itself the result of a cast from the dtype it goes to, with only views in
between. Both dtypes must be known. Two kernels are spared, or one when the first cast's result is
used for something else too.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpredict.findings.finding import Finding
from kpredict.findings.reading import File, makers, users
from kpredict.source.infer.trace import Step
from kpredict.source.infer.values import Array

BAD = (
    """\
import torch

def f(x: torch.Tensor):
    h = x.half()
    return h.float().half()
""",
)
GOOD = (
    """\
import torch

def f(x: torch.Tensor):
    h = x.half()
    return torch.sin(h.float()).half()
""",
    """\
import torch

def f(x: torch.Tensor):
    return x.float().half()
""",
)


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        own = file.own_steps(read)
        by = makers(own)
        readers = users(own)
        for step in own:
            first = _source(step)
            if first is None:
                continue
            cast = by.get(first.storage)
            before = _source(cast) if cast is not None and cast is not step else None
            if before is None or not step.results or before.dtype is None:
                continue
            if before.dtype == step.results[0].dtype and _keeps(before.dtype, first.dtype):
                shared = any(s is not step and "view" not in s.tags for s in readers[first.storage])
                told = "1 kernel more than needed" if shared else "2 kernels"
                yield file.finding(
                    __name__, step.place, f"cast from {before.dtype} to {first.dtype} and back: "
                    f"{told}", function=read.name, before=1 if shared else 2, after=0,
                )  # fmt: skip


def _source(step: Step | None) -> Array | None:
    """What a cast on the GPU reads."""
    if step is None or step.short != "_to_copy" or step.args.get("device") is not None:
        return None
    x = step.args["self"]
    return x if isinstance(x, Array) and x.dtype is not None else None


_EXACT = {
    "bool": ("uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32"),
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "int8": ("int16", "int32", "int64", "float32"),
    "uint8": ("int16", "int32", "int64", "float32"),
    "int32": ("int64", "float64"),
}


def _keeps(dtype: str, between: str | None) -> bool:
    """Whether `between` holds every value of `dtype`."""
    return between in _EXACT.get(dtype, ())
