"""Elementwise kernels of one size, one after the other: what fusion would join.

In: a Trace. Out: Chains. A profile does not say which array a kernel wrote, so neighbours of equal
size on one stream are taken for a chain, and what it saves is the most that fusion could.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kpredict.model import ITEMSIZE, Kind, Span
from kpredict.verify.measured import Places
from kpredict.verify.names import family, is_elementwise
from kpredict.verify.recorded import Inputs, dtype_of
from kpredict.verify.trace import Activity, Trace


@dataclass(frozen=True, slots=True)
class Chain:
    """`ops` in order, how many `times` it ran, and its size where shapes were recorded.

    `bytes` are those of the intermediates, written and read back, over all times. `line` is the
    function of the user's that launched the first, where Python frames were recorded.
    """

    ops: tuple[str, ...]
    times: int = 1
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    bytes: int | None = None
    line: Span | None = None

    @property
    def removed(self) -> int:
        """Launches that fusion would remove."""
        return (len(self.ops) - 1) * self.times


@dataclass(frozen=True, slots=True)
class _Link:
    op: str
    shape: tuple[int, ...] | None
    dtype: str
    threads: int
    span: int
    line: Span | None

    def continues(self, last: _Link) -> bool:
        if self.shape is not None and last.shape is not None:
            return math.prod(self.shape) == math.prod(last.shape)
        return self.threads == last.threads


def chains(trace: Trace) -> tuple[Chain, ...]:
    """Equal chains are counted together; those that cost most bytes, then launches, first."""
    found = Counter(_chain(run) for run in _runs(trace) if len(run) > 1)
    rows = [
        replace(chain, times=n, bytes=None if chain.bytes is None else chain.bytes * n)
        for chain, n in found.items()
    ]
    return tuple(sorted(rows, key=lambda c: (-(c.bytes or 0), -c.removed, c.ops)))


def _runs(trace: Trace) -> Iterator[list[_Link]]:
    running: dict[tuple[int, int], list[_Link]] = {}
    places = Places(trace)
    for work in trace.activities():
        where = (work.device, work.stream)
        link = _link(trace, work, places)
        run = running.setdefault(where, [])
        if run and (link is None or not link.continues(run[-1])):
            yield run
            running[where] = run = []
        if link is not None and not (run and 0 <= link.span == run[-1].span):
            run.append(link)  # several kernels of one call (huge arrays) are one link
    yield from running.values()


def _link(trace: Trace, work: Activity, places: Places) -> _Link | None:
    """None for what is no elementwise kernel of eager PyTorch; compiled ones are fused already."""
    place = places[work.span]
    op = place.op
    fused = work.name.startswith("triton") or op.startswith("triton")
    if work.kind is not Kind.KERNEL or fused or not is_elementwise(work.name):
        return None
    shape, dtype = _result(trace.inputs(work.span) if work.span >= 0 else None)
    threads = math.prod(work.grid or ()) * math.prod(work.block or ())
    line = place.lines[0] if place.lines else None
    return _Link(op or family(work.name), shape, dtype, threads, work.span, line)


def _result(inputs: Inputs | None) -> tuple[tuple[int, ...] | None, str]:
    """The shape that the tensor arguments broadcast to, and the type of the first of them."""
    if inputs is None:
        return None, ""
    tensors = [
        (tuple(dims), dtype)
        for dims, name in zip(inputs.dims, inputs.types, strict=False)
        if (dtype := dtype_of(name)) and all(isinstance(d, int) for d in dims)
    ]
    if not tensors:
        return None, ""
    return _broadcast(shape for shape, _ in tensors), tensors[0][1]


def _broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...] | None:
    result: tuple[int, ...] = ()
    for shape in shapes:
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        padded = (1,) * (len(longer) - len(shorter)) + shorter
        if any(a != b and 1 not in (a, b) for a, b in zip(longer, padded, strict=True)):
            return None
        result = tuple(b if a == 1 else a for a, b in zip(longer, padded, strict=True))
    return result


def _chain(links: list[_Link]) -> Chain:
    """What kernel i wrote, kernel i+1 read: with its own first argument's type."""
    ops = tuple(link.op for link in links)
    if any(link.shape is None for link in links):
        return Chain(ops, line=links[0].line)
    moved = sum(2 * math.prod(k.shape or ()) * ITEMSIZE[k.dtype] for k in links[1:])
    return Chain(ops, 1, links[0].shape, links[0].dtype, moved, links[0].line)
