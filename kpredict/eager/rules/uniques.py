"""unique in all its forms. How many distinct elements there are depends on data and is supposed;
the number of launches does not depend on it.

Read: aten/src/ATen/native/cuda/UniqueCub.cu and Unique.cu of release 2.6.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kpredict.eager import cub, thrust
from kpredict.eager.copying import compact, fill
from kpredict.eager.elementwise import indexed
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.registry import rule
from kpredict.eager.rules.gathering import select_slices
from kpredict.eager.shaping import wrap
from kpredict.model import Launch, Op, Target, Tensor


@rule(
    "aten._unique", "aten._unique2", "aten.unique_consecutive",
    source="native/cuda/UniqueCub.cu; 2.6.0",
)  # fmt: skip
def unique(op: Op, target: Target) -> Iterable[Launch]:
    """CUB's radix sort unless consecutive, then its selection of first ones (two kernels), or a run
    length encoding where counts are wanted; the host reads how many. Inverse indices add an arange
    before the sort and a difference, a scan and a scatter after it. Bools are counted instead."""
    x: Tensor = op["self"]
    if op.get("dim") is not None:
        yield from _unique_rows(op, x, op["dim"], target)
        return
    if x.numel == 0:
        return
    x, copies = compact(x)
    yield from copies
    consecutive = "consecutive" in op.name
    inverse, counts = bool(op["return_inverse"]), bool(op.get("return_counts"))
    if x.dtype == "bool" and not consecutive:
        yield from _unique_bools(x, inverse)
        return
    n = x.numel
    flat = replace(contiguous(x, shape=(n,)), storage=x.storage)
    ordered = flat if consecutive else workspace(n, x.dtype)
    order = workspace(n, "int64")
    if not consecutive and not inverse:
        yield from cub.radix_sort([flat], [ordered], target=target)
    elif not consecutive:
        counted = workspace(n, "int64")
        yield from indexed(counted, because="numbers the elements")
        yield from cub.radix_sort([flat, counted], [ordered, order], target=target)
    if inverse:
        yield from _inverse(op, ordered, order, consecutive)
    out, length = replace(workspace(n, x.dtype), storage=op.out.storage), workspace(1, "int64")
    if counts:
        yield from cub.run_length_encode(ordered, [out, workspace(n, "int64"), length])
    else:
        yield from cub.select([ordered], [out, length], n)
    yield from _read(length)


def _inverse(op: Op, ordered: Tensor, order: Tensor, consecutive: bool) -> Iterator[Launch]:
    """Where each element went: steps between neighbours, summed up, put back in place."""
    n = ordered.numel
    steps, place = workspace(n, "int32"), workspace(n, "int64")
    result = replace(place, storage=op.outputs[1].storage)
    yield kernel("adjacent_difference_kernel", [ordered], [steps])
    yield from cub.scan(steps, result if consecutive else place, state="int32")
    if not consecutive:
        yield kernel("scatter_kernel", [place, order], [result])


def _unique_bools(x: Tensor, inverse: bool) -> Iterator[Launch]:
    trues = workspace(1, "int32")
    yield from cub.reduce(x, trues, accumulates="int32")
    yield kernel("unique_bool_write_output", [trues], [workspace(2, "bool"), workspace(2, "int64")])
    if inverse:
        indices = workspace(x.numel, "int64")
        yield kernel("unique_bool_write_inverse_indices", [x, trues], [indices])
    yield from _read(trues)


def _read(length: Tensor) -> Iterator[Launch]:
    host = Tensor((1,), (1,), length.dtype, "cpu")
    yield memcpy("DtoH", length, host, because="how many are distinct")
    yield sync("the host reads how many are distinct")


@rule(
    "aten.unique_dim", "aten.unique_dim_consecutive",
    source="native/cuda/Unique.cu unique_dim_cuda_template; 2.6.0, Thrust's kernels of 2.13.0",
)  # fmt: skip
def unique_dim(op: Op, target: Target) -> Iterable[Launch]:
    """Rows along `dim` are compared by Thrust: a merge sort of their numbers unless consecutive,
    for inverse indices a difference, a scan and a scatter, then a selection of first ones (with
    counts: by key, and a difference), which the host waits for; last an index_select."""
    return _unique_rows(op, op["self"], op["dim"], target)


def _unique_rows(op: Op, x: Tensor, dim: int, target: Target) -> Iterator[Launch]:
    dim = wrap(dim, x.ndim)
    n = x.shape[dim]
    if x.numel == 0:
        return
    rows, copies = compact(_front(x, dim))
    yield from copies
    order = workspace(n, "int64")
    yield from indexed(order, because="numbers the rows")
    if "consecutive" not in op.name:
        yield from thrust.merge_sort(order, [rows])
    if op["return_inverse"]:
        steps = workspace(n, "int64")
        yield from thrust.difference([order, rows], steps)
        yield from fill(_element(steps, 0))
        yield from thrust.inclusive_scan(steps, steps)
        yield from thrust.transform([steps, order], op.outputs[1], because="puts them in place")
    kept = op.out.shape[dim]
    if op["return_counts"]:
        numbers = workspace(n + 1, "int64")
        yield from indexed(numbers, because="numbers the rows")
        yield from thrust.unique_by_key(order, [order, numbers])
        yield from fill(_element(numbers, kept))
        yield from thrust.difference([numbers], op.outputs[2])
    else:
        yield from thrust.unique([order, rows], order)
    yield from select_slices(op.out, x, dim, replace(order, shape=(kept,)))


def _element(t: Tensor, i: int) -> Tensor:
    return replace(t, shape=(), stride=(), offset=i)


def _front(x: Tensor, dim: int) -> Tensor:
    """`x.moveaxis(dim, 0)`."""
    order = [dim, *(d for d in range(x.ndim) if d != dim)]
    return replace(
        x, shape=tuple(x.shape[d] for d in order), stride=tuple(x.stride[d] for d in order)
    )
