"""Launch sequences of CUB's device-wide algorithms, for the host code that calls them.

In: the arrays of one call. Out: launches. CUB is a header library compiled into PyTorch: what it
launches follows from its dispatch code (CCCL 3.0, cub/device/dispatch/: radix sort, scan, scan by
key, select, unique by key, reduce, run length) and ATen/cuda/cub.cuh (2.13.0 headers). All are
asynchronous; temporary storage comes from the caching allocator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpredict.eager.launches import Array, kernel, memset, workspace
from kpredict.model import Launch, Target, Tensor

SCAN_CHUNK = 2**30
"""Elements per scan: ATen cuts longer ones (max_cub_size)."""

_THREADS = 256
_RADIX_BITS = 8
_PORTION = 2**28 - 1  # elements one onesweep launch covers, less than a tile short of it


def key_bits(largest: int) -> int:
    """Bits a radix sort of keys 0..largest must look at (at::cuda::cub::get_num_bits)."""
    return max(largest.bit_length(), 1)


def radix_sort(
    ins: Sequence[Tensor], outs: Sequence[Tensor], *, bits: int | None = None,
    target: Target | None = None,
) -> list[Launch]:  # fmt: skip
    """DeviceRadixSort of keys (first) with at most one array of values.

    One block does it all while the elements fit its registers: 256 threads with 19 elements of 4
    bytes each, fewer for wider ones. Longer inputs: two memsets, a histogram, an exclusive sum, and
    per 8 bits of key (`bits`, default all) and per 2^28 elements a memset and a onesweep pass.
    Before compute capability 9.0 keys of 1 or 2 bytes take three kernels per 7 (or 5) bits instead.
    """
    keys = ins[0]
    n = keys.numel
    if n == 0:
        return []
    widest = max(max(t.itemsize for t in ins), 4)
    if n <= _THREADS * max(19 * 4 // widest, 1):
        why = f"{n} elements fit one block"
        return [kernel("DeviceRadixSortSingleTileKernel", ins, outs, because=why)]
    width = keys.itemsize * 8 if bits is None else bits
    if target is not None and target.sm < 90 and keys.itemsize < 4:
        return _swept_up_and_down(ins, outs, width)
    passes = -(-width // _RADIX_BITS)
    portions = -(-n // _PORTION)
    bins = workspace(passes * 2**_RADIX_BITS, "int32")
    counters = workspace(passes * portions, "int32")
    lookback = workspace(-(-min(n, _PORTION) // 4096) * 2**_RADIX_BITS, "int32")
    found = [
        memset(counters),
        memset(bins),
        kernel("DeviceRadixSortHistogramKernel", [keys], [bins]),
        kernel("DeviceRadixSortExclusiveSumKernel", [bins], [bins]),
    ]
    why = f"{passes} passes of {_RADIX_BITS} bits"
    for _ in range(passes * portions):
        found.append(memset(lookback))
        found.append(kernel("DeviceRadixSortOnesweepKernel", [*ins, bins], outs, because=why))
    return found


def _swept_up_and_down(
    ins: Sequence[Tensor], outs: Sequence[Tensor], width: int
) -> list[Launch]:  # fmt: skip
    passes = _mixed_passes(width, 5 if ins[0].itemsize == 1 else 7)
    spine = workspace(2**7 * 1024, "int32")
    found: list[Launch] = []
    for _ in range(passes):
        found += [
            kernel("DeviceRadixSortUpsweepKernel", ins[:1], [spine]),
            kernel("RadixSortScanBinsKernel", [spine], [spine]),
            kernel("DeviceRadixSortDownsweepKernel", [*ins, spine], outs),
        ]
    return found


def segmented_radix_sort(ins: Sequence[Tensor], outs: Sequence[Tensor]) -> list[Launch]:
    """DeviceSegmentedRadixSort: one block per segment, one kernel per 6 bits of key.

    As many passes as can look at one bit less without adding a pass do so, and come first.
    """
    passes = _mixed_passes(ins[0].itemsize * 8, 5 if ins[0].itemsize == 1 else 6)
    why = f"{passes} passes over each segment"
    return [
        kernel("DeviceSegmentedRadixSortKernel", ins, outs, because=why) for _ in range(passes)
    ]  # fmt: skip


def _mixed_passes(width: int, radix: int) -> int:
    """Passes of `radix` bits or one less that `width` bits take."""
    spare = -(-width // radix) * radix - width
    narrow = min(width, spare * (radix - 1))
    return -(-narrow // (radix - 1)) + -(-(width - narrow) // radix)


def scan(src: Tensor, dst: Tensor, *, state: str = "") -> list[Launch]:
    """DeviceScan, inclusive or exclusive: its state is initialized, then one pass.

    ATen cuts at 2^30 elements and carries the running value over with a kernel of one thread.
    `state` is the dtype of the running value (default: the output's).
    """
    n = dst.numel
    if n == 0:
        return []
    status = workspace(2 * -(-n // 1024) + 64, state or dst.dtype)
    found: list[Launch] = []
    for start in range(0, n, SCAN_CHUNK):
        if start:
            found.append(kernel("transform_vals", [], [], because="carries the running value over"))
        found.append(kernel("DeviceScanInitKernel", [], [status]))
        found.append(kernel("DeviceScanKernel", [src, status], [dst, status]))
    return found


def scan_by_key(keys: Tensor, src: Iterable[Array], dst: Tensor) -> list[Launch]:
    """DeviceScan by key: a scan that starts anew where the key changes."""
    status = workspace(2 * -(-keys.numel // 1024) + 64, dst.dtype)
    return [
        kernel("DeviceScanByKeyInitKernel", [], [status]),
        kernel("DeviceScanByKeyKernel", [keys, *src, status], [dst, status]),
    ]


def select(src: Iterable[Array], dst: Iterable[Array], n: int) -> list[Launch]:
    """DeviceSelect (If, Flagged, Unique): its state is initialized, then, if there is anything, one
    pass of compaction."""
    status = workspace(-(-n // 1024) + 64, "int64")
    found = [kernel("DeviceCompactInitKernel", [], [status])]
    if n:
        found.append(kernel("DeviceSelectSweepKernel", [*src, status], [*dst, status]))
    return found


def unique_by_key(keys: Tensor, dst: Iterable[Array]) -> list[Launch]:
    """DeviceSelect::UniqueByKey: the first of each run of equal keys."""
    status = workspace(-(-keys.numel // 1024) + 64, "int64")
    return [
        kernel("DeviceCompactInitKernel", [], [status]),
        kernel("DeviceUniqueByKeySweepKernel", [keys, status], [*dst, status]),
    ]


def run_length_encode(keys: Tensor, dst: Iterable[Array]) -> list[Launch]:
    """DeviceRunLengthEncode::Encode: a reduction by key of ones."""
    status = workspace(-(-keys.numel // 1024) + 64, "int64")
    return [
        kernel("DeviceCompactInitKernel", [], [status]),
        kernel("DeviceReduceByKeyKernel", [keys, status], [*dst, status]),
    ]


def reduce(src: Tensor, dst: Tensor, *, accumulates: str) -> list[Launch]:
    """DeviceReduce to one value: one block for up to a tile of elements, else two kernels.

    A tile is 256 threads with 16 elements each, scaled by the size of the dtype it accumulates in.
    """
    size = Tensor((), (), accumulates).itemsize
    if src.numel <= _THREADS * max(min(16 * 4 // size, 32), 1):
        why = f"{src.numel} elements fit one block"
        return [kernel("DeviceReduceSingleTileKernel", [src], [dst], because=why)]
    partial = workspace(-(-src.numel // 4096), accumulates)
    return [
        kernel("DeviceReduceKernel", [src], [partial]),
        kernel("DeviceReduceSingleTileKernel", [partial], [dst]),
    ]
