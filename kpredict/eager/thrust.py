"""Launch sequences of Thrust's algorithms, for the host code that calls them.

In: the arrays of one call. Out: launches. Thrust is compiled into PyTorch and mostly calls CUB; the
host waits after each algorithm, and again for a result it returns. As release 2.13.0 launches them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpredict.eager import cub
from kpredict.eager.launches import kernel, memcpy, sync, workspace
from kpredict.model import Launch, Target, Tensor

_THREADS = 256


def transform(reads: Sequence[Tensor], out: Tensor, *, because: str) -> Iterator[Launch]:
    """sequence, scatter and the like: one kernel."""
    yield kernel("transform_kernel", reads, [out], because=because)
    yield waits()


def difference(reads: Sequence[Tensor], out: Tensor) -> Iterator[Launch]:
    """adjacent_difference, out of place."""
    yield kernel("DeviceAdjacentDifferenceDifferenceKernel", reads, [out])
    yield waits()


def inclusive_scan(src: Tensor, dst: Tensor) -> Iterator[Launch]:
    yield from cub.scan(src, dst)
    yield waits()


def merge_sort(keys: Tensor, values: Sequence[Tensor]) -> Iterator[Launch]:
    """Tiles of 256 threads with 17 elements of 4 bytes, or fewer wider ones, are sorted; then two
    kernels per doubling. What sorts by a comparison, or keys that are no plain numbers."""
    arrays = [keys, *values]
    per_thread = max(min(17 * 4 // keys.itemsize, 17), 1)
    tiles = -(-keys.numel // (_THREADS * per_thread))
    yield kernel("DeviceMergeSortBlockSortKernel", arrays, arrays, because="sorts tiles")
    for _ in range((tiles - 1).bit_length()):
        yield kernel("DeviceMergeSortPartitionKernel", arrays, [workspace(tiles, "int64")])
        yield kernel("DeviceMergeSortMergeKernel", arrays, arrays, because="merges pairs of tiles")
    yield waits()


def sort_by_key(keys: Tensor, values: Tensor, target: Target) -> Iterator[Launch]:
    """A radix sort between two buffers, copied back after an odd number of passes; a merge sort of
    half types."""
    if keys.dtype in ("float16", "bfloat16"):
        yield from merge_sort(keys, [values])
        return
    others = [workspace(t.numel, t.dtype) for t in (keys, values)]
    found = cub.radix_sort([keys, values], others, target=target)
    yield from found
    passes = sum(launch.name in _LAST_OF_PASS for launch in found)
    if passes % 2:
        for src, dst in zip(others, (keys, values), strict=True):
            yield memcpy("DtoD", src, dst, because="an odd number of passes")
            yield waits()
    yield waits()


_LAST_OF_PASS = (
    "DeviceRadixSortSingleTileKernel", "DeviceRadixSortOnesweepKernel",
    "DeviceRadixSortDownsweepKernel",
)  # fmt: skip


def reduce(src: Tensor, *, accumulates: str, result: str = "") -> Iterator[Launch]:
    """inner_product, count_if, find: a reduction by CUB whose value the host reads. A pair of a
    flag and a place, as find accumulates, is a complex128 here: as wide."""
    yield from cub.reduce(src, workspace(1, accumulates), accumulates=accumulates)
    yield waits()
    yield from read(result or accumulates)


def unique(keys: Sequence[Tensor], kept: Tensor) -> Iterator[Launch]:
    """The first of each run, and the host reads how many."""
    yield kernel("_kernel_agent", [], [workspace(2, "int64")], because="Thrust's tiles")
    yield kernel("_kernel_agent", keys, [kept], because="the first of each run")
    yield waits()
    yield from read("int32")


def unique_by_key(keys: Tensor, kept: Sequence[Tensor]) -> Iterator[Launch]:
    yield from cub.unique_by_key(keys, kept)
    yield waits()
    yield from read("int32")


def reduce_by_key(keys: Tensor, outs: Sequence[Tensor]) -> Iterator[Launch]:
    yield kernel("_kernel_agent", [], [workspace(2, "int64")], because="Thrust's tiles")
    yield kernel("_kernel_agent", [keys], outs, because="adds up each run")
    yield waits()
    yield from read("int32")


def max_element(src: Tensor) -> Iterator[Launch]:
    """Of few elements, as there are after a reduction by key."""
    yield kernel("_kernel_agent", [src], [workspace(1, "complex128")], because="the largest")
    yield waits()
    yield from read("complex128")


def read(dtype: str) -> Iterator[Launch]:
    """A value goes to the host, which waits."""
    host = Tensor((1,), (1,), dtype, "cpu")
    yield memcpy("DtoH", workspace(1, dtype), host, because="Thrust returns a value")
    yield sync("the host waits for the value")


def waits() -> Launch:
    return sync("Thrust waits for its kernels")
