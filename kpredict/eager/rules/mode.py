"""The most frequent element of each slice.

Read: aten/src/ATen/native/cuda/TensorModeKernel.cpp and .cu of release 2.6.0; Thrust's kernels as
2.13.0 launches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kpredict.eager import thrust
from kpredict.eager.copying import compact, copy, fill
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.registry import rule
from kpredict.eager.shaping import fits_32bit, wrap
from kpredict.model import Count, Launch, Op, Target, Tensor

_LONGEST = 2048
"""Elements of a slice that one block can take."""

_MOST_LISTED = 4096


@rule("aten.mode", source="native/cuda/TensorModeKernel.cpp; 2.6.0")
def mode(op: Op, target: Target) -> Iterable[Launch]:
    """Slices of at most 2048, of inputs that 32 bits can index: copied unless they lie dense and
    last, then one kernel. Others are copied, then each is sorted and counted by Thrust, with host
    reads between (beyond 4096 slices not listed one by one)."""
    x: Tensor = op["self"]
    values, indices = op.outputs
    if x.numel == 0:
        return
    if x.ndim == 0 or x.shape[wrap(op["dim"], x.ndim)] == 1:
        yield from copy(replace(values, shape=x.shape, stride=x.stride), x)
        yield from fill(indices)
        return
    dim = wrap(op["dim"], x.ndim)
    swapped = _swap(x, dim)
    size = x.shape[dim]
    rows, copies = compact(swapped)
    yield from copies
    if size <= _LONGEST and fits_32bit(x):
        yield kernel("compute_mode", [rows], [values, indices], because="one block per slice")
        return
    if not copies:
        rows = contiguous(swapped)
        yield from copy(rows, swapped)
    slices = x.numel // size
    found: list[Launch] = []
    for i in range(slices if slices <= _MOST_LISTED else 1):
        keys = replace(rows, shape=(size,), stride=(1,), offset=rows.offset + i * size)
        found += _of_bools(keys) if x.dtype == "bool" else _of_slice(keys, target)
        found += _written(values, indices)
    if slices > _MOST_LISTED:
        found = [replace(launch, count=Count(slices, slices)) for launch in found]
    yield from found


def _of_slice(keys: Tensor, target: Target) -> Iterator[Launch]:
    """Numbers the elements, sorts, counts the runs, takes the longest and looks for it."""
    size = keys.numel
    order, runs = workspace(size, "int64"), workspace(size, "int64")
    yield from thrust.transform([], order, because="numbers the elements")
    yield from thrust.sort_by_key(keys, order, target)
    yield from thrust.reduce(replace(keys, shape=(size - 1,)), accumulates="int32")
    yield from thrust.reduce_by_key(keys, [workspace(size, keys.dtype), runs])
    yield from thrust.max_element(runs)
    yield from thrust.read(keys.dtype)
    yield from thrust.reduce(keys, accumulates="complex128")
    yield from thrust.read("int64")


def _of_bools(flags: Tensor) -> Iterator[Launch]:
    """Counts what is true and looks for the first of the more frequent ones."""
    yield from thrust.reduce(flags, accumulates="int64")
    yield from thrust.reduce(flags, accumulates="complex128")


def _written(values: Tensor, indices: Tensor) -> Iterator[Launch]:
    for out in (values, indices):
        host = Tensor((1,), (1,), out.dtype, "cpu")
        yield memcpy("HtoD", host, replace(out, shape=(), stride=()), because="a slice's mode")
    yield sync("the host waits for each slice")


def _swap(x: Tensor, dim: int) -> Tensor:
    """`x.transpose(dim, -1)`."""
    order = list(range(x.ndim))
    order[dim], order[-1] = order[-1], order[dim]
    return replace(
        x, shape=tuple(x.shape[d] for d in order), stride=tuple(x.stride[d] for d in order)
    )
