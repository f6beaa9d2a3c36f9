"""Elements and slices by position: take, put, index_fill, index_copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.copying import compact, copy
from kpredict.eager.indexing import INDEX, part, per_element
from kpredict.eager.launches import contiguous, memcpy, sync
from kpredict.eager.operands import view
from kpredict.eager.registry import rule
from kpredict.eager.shaping import at_least_1d, wrap
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten.take", source="native/TensorAdvancedIndexing.cpp take_out; 2.6.0")
def take(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel, whatever the layout."""
    out, picks = op.out, op["index"]
    return per_element(
        INDEX, [out], [picks], reads=[part(op["self"], out), picks], writes=[out],
        because="looks every element up by flat position",
    )  # fmt: skip


@rule("aten.put_", source="native/TensorAdvancedIndexing.cpp put_; 2.6.0")
def put_(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; the index is copied first when reshaping it to the source's shape needs one."""
    return _put(op["self"], op["index"], op["source"])


@rule("aten.put", source="native/TensorAdvancedIndexing.cpp put; 2.6.0")
def put(op: Op, target: Target) -> Iterable[Launch]:
    """A clone, then `put_`."""
    yield from copy(op.out, op["self"], because="the result starts as a copy")
    yield from _put(op.out, op["index"], op["source"])


def _put(x: Tensor, picks: Tensor, values: Tensor) -> list[Launch]:
    found: list[Launch] = []
    if picks.shape != values.shape:
        picks, found = compact(picks)
        picks = view(picks, values.shape, contiguous(values).stride)
    return found + per_element(
        INDEX, [values], [picks], reads=[values, picks], writes=[part(x, values)],
        because="stores every element at its flat position",
    )  # fmt: skip


@rule("aten.index_fill_", source="native/TensorAdvancedIndexing.cpp index_fill_; 2.6.0")
def index_fill_(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel. A value on the GPU is read by the host first."""
    yield from _read_value(op)
    yield from fill_slices(op["self"], op["dim"], op["index"])


@rule("aten.index_fill", source="native/TensorAdvancedIndexing.cpp index_fill; 2.6.0")
def index_fill(op: Op, target: Target) -> Iterable[Launch]:
    """A clone, then `index_fill_`."""
    yield from copy(op.out, op["self"], because="the result starts as a copy")
    yield from _read_value(op)
    yield from fill_slices(op.out, op["dim"], op["index"])


def _read_value(op: Op) -> list[Launch]:
    value = op["value"]
    if not isinstance(value, Tensor) or not value.is_cuda:
        return []
    host = replace(value, device="cpu")
    return [
        memcpy("DtoH", value, host, because="the value to fill with"),
        sync("the host reads the value to fill with"),
    ]


def fill_slices(x: Tensor, dim: int, picks: Tensor) -> list[Launch]:
    """`x.index_fill_(dim, picks, number)`."""
    x = at_least_1d(x)
    still, where = _along(x, dim, picks)
    return per_element(
        INDEX, [still], [where], reads=[picks], writes=[part(x, still)], because="fills slices"
    )


@rule("aten.index_copy", source="native/TensorAdvancedIndexing.cpp index_copy_out; 2.6.0")
def index_copy(op: Op, target: Target) -> Iterable[Launch]:
    """A copy of the input unless in place, then one kernel."""
    yield from copy(op.out, op["self"], because="the result starts as a copy")
    yield from stored_slices(op.out, op["dim"], op["index"], op["source"])


def stored_slices(x: Tensor, dim: int, picks: Tensor, source: Tensor) -> list[Launch]:
    """`x.index_copy_(dim, picks, source)`."""
    x, source = at_least_1d(x), at_least_1d(source)
    still, where = _along(x, dim, picks)
    return per_element(
        INDEX, [still], [where, source], reads=[picks, source], writes=[part(x, source)],
        because="stores slices",
    )  # fmt: skip


def _along(x: Tensor, dim: int, picks: Tensor) -> tuple[Tensor, Tensor]:
    """`x` standing still along `dim` with the index's length, and the index along that dim."""
    dim = wrap(dim, x.ndim)
    n = picks.numel
    step = picks.stride[0] if picks.ndim else 1
    still = view(
        x,
        [n if d == dim else s for d, s in enumerate(x.shape)],
        [0 if d == dim else s for d, s in enumerate(x.stride)],
    )
    where = view(
        picks,
        [n if d == dim else 1 for d in range(x.ndim)],
        [step if d == dim else 0 for d in range(x.ndim)],
    )
    return still, where
