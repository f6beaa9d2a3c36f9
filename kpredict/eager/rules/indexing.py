"""Indexing with tensors: index and index_put."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace

from kpredict.eager import cub
from kpredict.eager.advanced import (
    MASKS,
    Indices,
    Located,
    located,
    loop_indices,
    on_device,
    restrided,
)
from kpredict.eager.copying import compact, copy, expand, like, to
from kpredict.eager.elementwise import elementwise, indexed
from kpredict.eager.indexing import INDEX, gathers_rows, part, per_element
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.eager.shaping import flat, fresh, permute, unsqueeze
from kpredict.model import Launch, Op, Target, Tensor

_WARP = 32


@rule(
    "aten.index", "aten._unsafe_index",
    source="native/TensorAdvancedIndexing.cpp make_info, cuda/IndexKernel.cu; 2.6.0, main 2026",
)  # fmt: skip
def index(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that looks every element up. With one index whose slices are dense rows, 16-byte
    aligned in size, stride and address, whole rows are moved: `vectorized_gather_kernel`. Before
    it: `nonzero` for each mask, copies of indices from the CPU, casts of int32 ones."""
    return look_up(op.out, op["self"], op["indices"])


def look_up(out: Tensor, x: Tensor, indices: Indices) -> list[Launch]:
    """`out = x[indices]`."""
    found: list[Launch] = []
    at = on_device(located(x, indices, found, selected=_selected(out, x, indices)), found)
    source = restrided(at)
    wanted = loop_indices(at, found)
    step = at.tensor.stride[at.indexed.start] * x.itemsize
    return found + per_element(
        INDEX, [out], [source, *wanted], reads=[part(x, out), *wanted], writes=[out],
        because="looks every element up", fast=gathers_rows(step) if len(wanted) == 1 else None,
    )  # fmt: skip


def _selected(out: Tensor, x: Tensor, indices: Indices) -> int | None:
    """How many elements the masks select: the last size of the index shape in the result."""
    if not any(i is not None and i.dtype in MASKS for i in indices):
        return None
    dims: list[bool] = []
    for i in indices:
        n = i.ndim if i is not None and i.dtype in MASKS else 1
        dims += [i is not None] * n
    dims += [False] * (x.ndim - len(dims))
    apart = False in dims[dims.index(True) : len(dims) - dims[::-1].index(True)]
    start = 0 if apart else dims.index(True)
    length = out.ndim - dims.count(False)
    return out.shape[start + length - 1]


@rule(
    "aten._index_put_impl_", "aten.index_put_",
    source="native/TensorAdvancedIndexing.cpp _index_put_impl_, cuda/Indexing.cu; main of 2026",
)  # fmt: skip
def index_put_(op: Op, target: Target) -> Iterable[Launch]:
    """Without accumulate one kernel that stores every element; a mask with a CPU number is a masked
    fill. With accumulate the indices are made linear, sorted, and equal ones added up in order."""
    return store(
        op["self"], op["indices"], op["values"], target, accumulate=op["accumulate"],
        checked=not op.get("unsafe", False), selected=_assumed(op),
    )  # fmt: skip


@rule(
    "aten.index_put", "aten._unsafe_index_put",
    source="native/TensorAdvancedIndexing.cpp index_put; 2.6.0",
)  # fmt: skip
def index_put(op: Op, target: Target) -> Iterable[Launch]:
    """A clone, then `index_put_`."""
    yield from copy(op.out, op["self"], because="the result starts as a copy")
    yield from store(
        op.out, op["indices"], op["values"], target, accumulate=op["accumulate"],
        checked=True, selected=_assumed(op),
    )  # fmt: skip


def _assumed(op: Op) -> int | None:
    return None if op.assumed is None else int(op.assumed)


def store(
    x: Tensor, indices: Indices, values: Tensor, target: Target, *,
    accumulate: bool, checked: bool, selected: int | None = None,
) -> list[Launch]:  # fmt: skip
    """`x[indices] = values`, or `+=` when it accumulates; `checked` indices are compared with the
    bounds on the GPU first."""
    given = [i for i in indices if i is not None]
    if not accumulate and values.numel == 1 and not values.is_cuda and _one_mask(given):
        mask = _mask_of(x, indices)
        return elementwise([x], [x, mask], compute=[x.dtype, "bool"], because="a masked fill")
    found: list[Launch] = []
    if not values.is_cuda and values.ndim == 0:
        there = replace(contiguous(values), device="cuda")
        found += copy(there, values, because="the value is on the CPU")
        values = there
    if accumulate:
        whole, copies = compact(x)
        found += copies
        at = located(whole, indices, found, selected=selected)
        found += _add_up(at, values, target, checked)
        if whole is not x:
            found += copy(x, whole, because="back to the strided original")
        return found
    at = on_device(located(x, indices, found, selected=selected), found)
    destination = restrided(at)
    wanted = loop_indices(at, found)
    return found + per_element(
        INDEX, [destination], [values, *wanted], reads=[values, *wanted],
        writes=[part(x, destination)], because="stores every element where its index says",
    )  # fmt: skip


def _one_mask(given: Sequence[Tensor]) -> bool:
    return len(given) == 1 and given[0].dtype in MASKS and given[0].is_cuda


def _mask_of(x: Tensor, indices: Indices) -> Tensor:
    """The mask with a dim for every dim after it (canDispatchToMaskedFill)."""
    before = 0
    for i in indices:
        if i is not None:
            break
        before += 1
    mask = next(i for i in indices if i is not None)
    while before + mask.ndim < x.ndim:
        mask = unsqueeze(mask, mask.ndim)
    return mask


def _add_up(at: Located, values: Tensor, target: Target, checked: bool) -> Iterator[Launch]:
    """The sorted way (index_put_with_sort_kernel), into a contiguous tensor or its permutation.

    The index of every slice is computed, all are numbered and sorted by CUB over the bits that the
    largest one needs, then one kernel adds runs of equal indices: by single elements, by slices of
    at most a warp, or longer ones.
    """
    source, span = at.tensor, at.indexed
    slice_size = math.prod(source.shape[span.stop :])
    linear = yield from _linear_index(at, target, checked)
    values, copies = compact(expand(values, at.result_shape))
    yield from copies
    n = linear.numel
    if n == 0 or slice_size == 0:
        return
    dense, copies = compact(source)
    yield from copies
    linear, copies = compact(linear)
    yield from copies
    linear = flat(linear)
    yield from elementwise([linear], [linear], because="index of the slice")
    numbers, keys, order = (fresh((n,), "int64") for _ in range(3))
    yield from indexed(numbers, because="numbers the indices")
    bits = cub.key_bits((source.numel - 1) // slice_size)
    yield from cub.radix_sort([linear, numbers], [keys, order], bits=bits)
    yield kernel(
        _adder(slice_size), [keys, order, values, part(dense, values)], [part(dense, values)],
        because=f"adds slices of {slice_size} with equal indices",
    )  # fmt: skip
    if dense is not source and at.order is not None:
        inverse = [at.order.index(d) for d in range(source.ndim)]
        yield from copy(permute(source, inverse), permute(dense, inverse))


def _linear_index(at: Located, target: Target, checked: bool) -> Generator[Launch, None, Tensor]:
    """Per indexed dim: bounds check, remainder by the size, times the stride, added up. Indices on
    the CPU are worked on there and copied."""
    steps = contiguous(at.tensor).stride
    linear: Tensor | None = None
    for d in at.indexed:
        i = at.indices[d]
        assert i is not None
        if i.is_cuda:
            if i.dtype == "int32":
                i, casts = to(i, "int64")
                yield from casts
            if checked and i.numel:
                yield from _check_range(i, target)
            wrapped, scaled = like(i), like(i)
            yield from elementwise([wrapped], [i], because="negative indices count from the end")
            yield from elementwise([scaled], [wrapped], because=f"times the stride {steps[d]}")
        else:
            scaled = replace(contiguous(i), device="cuda")
            yield from copy(scaled, replace(like(i), device="cpu"))
        if linear is None:
            linear = scaled
        else:
            yield from elementwise([linear], [linear, scaled], because="adds up the linear index")
    assert linear is not None
    return linear


def _adder(slice_size: int) -> str:
    if slice_size == 1:
        return "indexing_backward_kernel_stride_1"
    if slice_size <= _WARP:
        return "indexing_backward_kernel_small_stride"
    return "indexing_backward_kernel"


def _check_range(i: Tensor, target: Target) -> Iterator[Launch]:
    """Smallest and largest index, each compared and asserted without the host waiting."""
    i, copies = compact(i)
    yield from copies
    least, most = fresh((), i.dtype), fresh((), i.dtype)
    yield from reduce(
        [least, most], i, None, target, accumulator=2 * i.itemsize, because="bounds of the indices"
    )
    for bound in (most, least):
        holds = fresh((), "bool")
        yield from elementwise([holds], [bound], compute=i.dtype, because="compares the bound")
        yield kernel("_assert_async_cuda_kernel", [holds], because="fails if out of bounds")
