"""Sort and argsort: small slices in place by one block or warp, long ones by CUB's radix sort.

Read: aten/src/ATen/native/Sorting.cpp, cuda/Sort.cpp, cuda/Sort.cu, cuda/SortStable.cu of release
2.6.0; the same in 2.13.0 and 2.14.1 as their launches show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kpredict.eager import cub
from kpredict.eager.copying import copy, fill, like
from kpredict.eager.elementwise import indexed
from kpredict.eager.iterator import fastest_first
from kpredict.eager.launches import called, contiguous, kernel, workspace
from kpredict.eager.registry import rule
from kpredict.eager.shaping import wrap
from kpredict.model import Launch, Op, Target, Tensor

SMALL = 4096
"""Elements of a slice that are still sorted in place by one block."""

_MOST_AT_ONCE = 2**31 - 1


@rule("aten.sort", source="native/Sorting.cpp sort_stable_out, cuda/Sort.cpp; 2.6.0")
def sort(op: Op, target: Target) -> Iterable[Launch]:
    """The values are copied first. Slices of up to 4096: indices are filled by an arange and a
    copy, the values are copied again, then one kernel sorts in place (bitonic to 32 unless stable,
    warp merge to 128, else radix). Longer: CUB, by how many slices there are and how long."""
    values, indices = op.outputs
    return sort_into(values, indices, op["self"], op["dim"], bool(op.get("stable")), target)


@rule("aten.argsort.stable", source="native/Sorting.cpp argsort_stable; 2.6.0")
def argsort(op: Op, target: Target) -> Iterable[Launch]:
    """As sort, of which only the indices are kept."""
    x: Tensor = op["self"]
    return sort_into(like(x), op.out, x, op["dim"], bool(op["stable"]), target)


def sort_into(
    values: Tensor, indices: Tensor, x: Tensor, dim: int, stable: bool, target: Target
) -> Iterator[Launch]:
    """`torch.sort(x, dim)` into arrays laid out like dense `x`."""
    yield from copy(values, x)
    if x.ndim == 0:
        yield from fill(indices)
        return
    dim = wrap(dim, x.ndim)
    if x.shape[dim] <= SMALL:
        yield from _count_up(indices, dim)
        yield from copy(values, x)
        yield from sort_in_place(values, indices, dim, stable)
    else:
        yield from _sort_long(values, indices, x, dim, target)


def sort_in_place(values: Tensor, indices: Tensor, dim: int, stable: bool) -> list[Launch]:
    """Keys and values of slices of at most 4096, any layout (sortKeyValueInplace)."""
    n = values.shape[dim] if values.ndim else 1
    if n <= 1 or values.numel == 0:
        return []
    if n <= 32 and not stable:
        name, why = "bitonicSortKVInPlace", "slices of at most 32"
    elif n <= 128:
        name, why = "warpMergeSortKVInPlace", "slices of at most 128, one per warp"
    else:
        name, why = "radixSortKVInPlace", "slices of at most 4096, one per block"
    return [kernel(name, [values, indices], [values, indices], because=why)]


def _count_up(indices: Tensor, dim: int) -> Iterator[Launch]:
    """`indices` along `dim` are 0, 1, 2, …: an arange, broadcast by a copy."""
    if indices.numel == 0:
        return
    n = indices.shape[dim]
    counted = contiguous(indices, shape=(n,))
    yield from called("aten.arange.default", indexed(counted, because="positions before sorting"))
    shape = tuple(n if d == dim else 1 for d in range(indices.ndim))
    yield from copy(indices, replace(contiguous(counted, shape=shape), storage=counted.storage))


def _sort_long(
    values: Tensor, indices: Tensor, x: Tensor, dim: int, target: Target
) -> Iterator[Launch]:
    """Slices lie dense and in the last place first, if need be through copies on both sides."""
    source = x
    if not (x.is_dense and x.stride[dim] == 1):
        source = _dim_last(x, dim)
        yield from copy(source, x)
    sorted_values = values if values.stride == source.stride else like(source)
    sorted_indices = (
        indices if indices.stride == source.stride else replace(like(source, "int64"))
    )  # fmt: skip
    n = x.shape[dim]
    most = min(x.numel, _MOST_AT_ONCE) // n * n
    for start in range(0, x.numel, max(most, 1)):
        count = min(most, x.numel - start)
        yield from _sort_segments(sorted_values, sorted_indices, source, count // n, n, target)
    if sorted_values is not values:
        yield from copy(values, sorted_values)
    if sorted_indices is not indices:
        yield from copy(indices, sorted_indices)


def _sort_segments(
    values: Tensor, indices: Tensor, x: Tensor, segments: int, n: int, target: Target
) -> Iterator[Launch]:
    """launch_stable_sort_kernel: one segment or a million elements each: a sort per segment; fewer
    than 128: one sort by value and one by segment; else one block per segment."""
    if segments == 1 or n >= 1_000_000:
        counted = workspace(n, "int64")
        yield kernel("fill_reverse_indices_kernel", [], [counted])
        keys = contiguous(x, shape=(n,))
        for i in range(segments):
            part = replace(keys, storage=x.storage, offset=x.offset + i * n)
            sorted_part = replace(keys, storage=values.storage, offset=values.offset + i * n)
            order = replace(counted, storage=indices.storage, offset=indices.offset + i * n)
            yield from cub.radix_sort([part, counted], [sorted_part, order], target=target)
        return
    keys = replace(contiguous(x, shape=(segments * n,)), storage=x.storage)
    if segments < 128:
        pairs, by_value = workspace(segments * n, "int64"), workspace(segments * n, "int64")
        yield kernel("fill_index_and_segment_kernel", [], [pairs])
        yield from cub.radix_sort([keys, pairs], [workspace(keys.numel, x.dtype), by_value],
                                  target=target)  # fmt: skip
        yield from cub.radix_sort(
            [by_value], [pairs], bits=max(1, (segments - 1).bit_length()), target=target
        )
        yield kernel("sort_postprocess_kernel", [x, pairs], [values, indices])
        return
    counted = workspace(segments * n, "int64")
    yield kernel("fill_reverse_indices_kernel", [], [counted])
    yield from cub.segmented_radix_sort([keys, counted], [values, indices])


def _dim_last(x: Tensor, dim: int) -> Tensor:
    """A fresh dense array in which `dim` is the fastest and the others keep their order."""
    order = [dim, *(d for d in fastest_first(x.shape, x.stride) if d != dim)]
    strides, step = [0] * x.ndim, 1
    for d in order:
        strides[d] = step
        step *= x.shape[d]
    return replace(contiguous(x), stride=tuple(strides))
