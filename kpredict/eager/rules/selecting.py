"""Selections: topk, kthvalue, median, nonzero.

Read: aten/src/ATen/native/cuda/TensorTopK.cu and .cpp, Sorting.cpp of release
2.6.0. 2.13.0 differs in topk: no full sort for one long slice, and each radix pass of the
multi-block selection is three kernels, not two, as its launches show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kpredict.eager import cub, indexing
from kpredict.eager.copying import compact, copy, fill, like, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import called, contiguous, kernel, memset, workspace
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.eager.rules.sorting import SMALL, sort_in_place, sort_into
from kpredict.eager.shaping import wrap
from kpredict.eager.summing import flattened, sum_to
from kpredict.model import Launch, Op, Target, Tensor

_BLOCK = 256
_MULTI_BLOCK_FROM = ((20, 20000), (40, 10000), (80, 8000), (199, 5000), (799, 3000), (4000, 800))
"""(slices up to, slice size from) where many blocks select together; 400 beyond 4000 slices."""


@rule("aten.topk", source="native/cuda/TensorTopK.cpp and .cu; 2.6.0, 2.13.0")
def topk(op: Op, target: Target) -> Iterable[Launch]:
    """The input is made contiguous. Few or short slices: one block selects from each. Else all
    blocks do a radix select together: 3 kernels per byte of the dtype, two scans by key, a gather.
    The k results are sorted in place (bitonic, warp merge or radix by k) unless unsorted."""
    x: Tensor = op["self"]
    values, indices = op.outputs
    if values.numel == 0:
        return
    dim, k = wrap(op["dim"], x.ndim), op["k"]
    yield from select_top(values, indices, x, dim, target)
    if not op["sorted"] or values.numel <= 1:
        return
    if k <= SMALL:
        yield from sort_in_place(values, indices, dim, stable=False)
        return
    order, ordered = like(indices), like(values)
    yield from sort_into(ordered, order, values, dim, False, target)
    gathered = contiguous(indices)
    yield kernel("_scatter_gather_elementwise_kernel", [indices, order], [gathered])
    yield from copy(indices, gathered)
    yield from copy(values, ordered)


def select_top(
    values: Tensor, indices: Tensor, x: Tensor, dim: int, target: Target
) -> Iterator[Launch]:
    """The k largest of each slice in no order (launch_gather_topk_kernel)."""
    x, copies = compact(x)
    yield from copies
    size = x.shape[dim] if x.ndim else 1
    slices = x.numel // size
    if not _multi_block(slices, size):
        yield kernel("gatherTopK", [x], [values, indices], because="one block per slice")
        return
    per_block = _items_per_thread(slices * size, target) * _BLOCK
    blocks = slices * -(-size // per_block)
    found, within = workspace(slices, "int32"), workspace(blocks, "int32")
    kth, state = workspace(blocks, "int32"), workspace(slices, x.dtype)
    counts, sums = workspace(blocks * 256, "int16"), workspace(slices * 256, "int32")
    yield memset(found)
    yield kernel("fill", [], [found], because="how many are still to be found")
    yield memset(within)
    why = f"{slices} slices of {size}: {x.itemsize} radix passes by {blocks} blocks"
    for _ in range(x.itemsize):
        yield kernel("computeBlockDigitCounts", [x, state], [counts], because=why)
        yield kernel("computeDigitCumSum", [counts], [sums], because=why)
        yield kernel(
            "computeBlockwiseWithinKCounts", [sums, counts, found, within],
            [state, found, within], because=why,
        )  # fmt: skip
    yield kernel("computeBlockwiseKthCounts", [state, counts], [kth])
    for array in (within, kth):
        yield from cub.scan_by_key(workspace(blocks, "uint8"), [array], array)
    yield kernel("gatherTopK", [x, state, within, kth], [values, indices])


def _multi_block(slices: int, size: int) -> bool:
    if max(slices, size) >= 2**32:
        return False
    for most, least in _MULTI_BLOCK_FROM:
        if slices <= most:
            return size >= least
    return size >= 400


def _items_per_thread(total: int, target: Target) -> int:
    """4 to 64, so that one wave of blocks (six per SM, by registers) covers the input."""
    return max(4, min(-(-total // (target.sms * 6 * _BLOCK)), 64))


@rule("aten.kthvalue", source="native/cuda/Sorting.cpp kthvalue_out_cuda; 2.6.0")
def kthvalue(op: Op, target: Target) -> Iterable[Launch]:
    """The input is made contiguous, then one kernel selects from each slice."""
    x: Tensor = op["self"]
    if x.ndim == 0:
        return [*copy(op.outputs[0], x), *fill(op.outputs[1])]
    return _pick("gatherKthValue", op)


@rule(
    "aten.median.dim", "aten.nanmedian.dim", "aten.median.dim_values", "aten.nanmedian.dim_values",
    source="native/cuda/Sorting.cpp median_with_indices_impl; 2.6.0",
)  # fmt: skip
def median_dim(op: Op, target: Target) -> Iterable[Launch]:
    """The input is made contiguous, then one kernel selects from each slice."""
    return _pick("gatherMedian", op)


def _pick(name: str, op: Op) -> Iterator[Launch]:
    x, copies = compact(op["self"])
    yield from copies
    if x.numel:
        yield kernel(name, [x], op.outputs, because="one block selects from each slice")


@rule("aten.median.default", "aten.nanmedian.default",
      source="native/cuda/Sorting.cpp median_impl; 2.6.0")  # fmt: skip
def median(op: Op, target: Target) -> Iterable[Launch]:
    """All elements are flattened (a copy if they must be) and sorted. median: isnan of the last one
    and a where; nanmedian counts the NaN and indexes with what is left."""
    x: Tensor = op["self"]
    if x.numel == 0:
        yield from copy(
            op.out, replace(op.out, device="cpu", storage=-1), because="NaN, on the host"
        )
        return
    flat = flattened(x)
    if flat is None:
        x, copies = compact(x)
        yield from copies
        flat = flattened(x)
        assert flat is not None
    ordered, order = contiguous(flat), contiguous(flat, dtype="int64")
    found = sort_into(ordered, order, flat, 0, False, target)
    yield from called("aten.sort.default", found)
    if op.name.startswith("aten.median"):
        last = replace(narrow(ordered, 0, x.numel - 1, 1), shape=(), stride=())
        middle = replace(narrow(ordered, 0, (x.numel - 1) // 2, 1), shape=(), stride=())
        is_nan = contiguous(last, dtype="bool")
        yield from _is_nan(is_nan, last)
        yield from elementwise(
            [op.out], [is_nan, last, middle], compute=["bool", x.dtype, x.dtype],
            because="the middle one unless NaN", op="aten.where.self",
        )  # fmt: skip
        return
    is_nan = contiguous(ordered, dtype="bool")
    yield from _is_nan(is_nan, ordered)
    count = contiguous(op.out, dtype="int64")
    yield from sum_to(count, is_nan, None, target)
    yield from elementwise([count], [count], because="how many are no NaN")
    half = contiguous(count, dtype="float32")
    yield from elementwise([half], [count], compute="float32", because="half of them")
    at, casts = to(half, "int64")
    yield from casts
    yield kernel("index_elementwise_kernel", [at], [op.out], because="the middle one")


def _is_nan(out: Tensor, x: Tensor) -> list[Launch]:
    """`x != x`, of integers too."""
    return elementwise([out], [x, x], because="x != x is NaN", reads=[x], op="aten.ne.Tensor")


@rule("aten.nonzero.default", source="native/cuda/Nonzero.cu nonzero_cuda_out_impl; 2.6.0")
def nonzero(op: Op, target: Target) -> Iterable[Launch]:
    """Depends on data. Counted by CUB (one kernel to 4096 elements, else two), read by the host,
    selected (two kernels), and for more than one dim taken apart into indices."""
    x: Tensor = op["self"]
    _, found = indexing.nonzero(x, op.out.shape[0])
    return found


@rule("aten.nonzero_static.default", source="native/cuda/Nonzero.cu nonzero_static; 2.6.0")
def nonzero_static(op: Op, target: Target) -> Iterable[Launch]:
    """No host read: block sums, their scan, a selection and a fill of the rest; for more than one
    dim a kernel that takes positions apart."""
    x, copies = compact(op["self"])
    out = op.out
    yield from copies
    if out.numel == 0 or x.numel == 0:
        return
    sums, totals = workspace(target.sms, "int32"), workspace(target.sms, "int64")
    yield kernel("calc_block_sums", [x], [sums])
    yield kernel("compute_agg", [sums], [totals])
    yield kernel("flag_kernel", [x, totals], [out])
    yield kernel("write_fill_value", [totals], [out])
    if x.ndim > 1:
        yield kernel("write_indices", [out, totals], [out])
