"""searchsorted, bucketize, histograms, isin, segment_reduce: where values fall."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace

from kpredict.eager.copying import compact, copy, fill, like, read_by_host, to, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.operands import narrow, view
from kpredict.eager.promoting import promote, result_type
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.eager.rules.indexing import look_up
from kpredict.eager.rules.joining import join
from kpredict.eager.rules.placing import stored_slices
from kpredict.eager.rules.scans import scan_dim
from kpredict.eager.rules.sorting import sort_into
from kpredict.eager.rules.uniques import unique
from kpredict.eager.shaping import flat, fresh, unsqueeze
from kpredict.eager.summing import extreme, sum_to, truth_of
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten.searchsorted.Tensor", source="cuda/Bucketization.cu searchsorted_out_cuda; 2.6.0")
def searchsorted(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; strided operands are copied first, then cast to the dtype both promote to."""
    return _searched(op.out, op["self"], op["sorted_sequence"], op["sorter"])


@rule("aten.bucketize.Tensor", source="cuda/Bucketization.cu bucketize_out_cuda; 2.6.0")
def bucketize(op: Op, target: Target) -> Iterable[Launch]:
    """searchsorted in the boundaries."""
    return _searched(op.out, op["self"], op["boundaries"], None)


@rule(
    "aten.searchsorted.Scalar", "aten.bucketize.Scalar",
    source="cuda/Bucketization.cu, native/BucketizationUtils.h; 2.6.0",
)  # fmt: skip
def searched_number(op: Op, target: Target) -> Iterable[Launch]:
    """The number becomes a 0-dim array on the GPU by a fill, then as for arrays."""
    borders = op["sorted_sequence"] if "sorted_sequence" in op.args else op["boundaries"]
    dtype = "int64" if isinstance(op["self"], int) else "float64"
    number = fresh((), dtype)
    yield from fill(number, because="the number to search for")
    yield from _searched(op.out, number, borders, op.get("sorter"), wrapped=True)


def _searched(
    out: Tensor, x: Tensor, borders: Tensor, sorter: Tensor | None, *, wrapped: bool = False
) -> Iterator[Launch]:
    if x.numel == 0:
        return
    common = result_type([borders, x if not wrapped else (1 if x.dtype == "int64" else 1.0)])
    x, copies = compact(x)
    yield from copies
    borders, copies = compact(borders)
    yield from copies
    extra = []
    if sorter is not None:
        sorter, copies = compact(sorter)
        yield from copies
        extra = [sorter]
    for t in (x, borders):
        yield from to(t, common)[1]
    made = out if out.is_contiguous else contiguous(out)
    yield kernel("searchsorted_cuda_kernel", [x, borders, *extra], [made], because="bisects")
    if made is not out:
        yield from copy(out, made, because="back into the strided result")


@rule("aten.histc", source="cuda/SummaryOps.cu _histc_cuda_template; 2.6.0, main of 2026")
def histc(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros and one kernel. Without a range (min equals max) the extremes of the input are found
    and read by the host."""
    x = op["self"]
    yield from zero(op.out, because="bins start at 0")
    if x.numel == 0:
        return
    if op["min"] == op["max"]:
        yield from _extremes_read(x, target)
    yield kernel("kernelHistogram1D", [x, op.out], [op.out], because="counts into bins")


def _extremes_read(x: Tensor, target: Target) -> Iterator[Launch]:
    least, most = fresh((), x.dtype), fresh((), x.dtype)
    x, copies = compact(x)
    yield from copies
    pair = 2 * x.itemsize
    yield from reduce([least, most], x, None, target, accumulator=pair, because="min and max")
    yield from read_by_host(least)
    yield from read_by_host(most)


@rule("aten.bincount", source="cuda/SummaryOps.cu _bincount_cuda_template; main of 2026")
def bincount(op: Op, target: Target) -> Iterable[Launch]:
    """The extremes are found and read by the host (of uint8 only the largest), then zeros and one
    kernel. Weights other than float are cast to double."""
    x, weights, out = op["self"], op["weights"], op.out
    if x.numel == 0:
        yield from zero(out, because="bins start at 0")
        return
    if weights is not None and weights.dtype != "float32":
        weights, casts = to(weights, "float64")
        yield from casts
    found = list(_extremes_read(x, target))
    yield from found if x.dtype != "uint8" else [*found[:-4], *found[-2:]]
    yield from zero(out, because="bins start at 0")
    reads = [x, out] if weights is None else [x, out, weights]
    yield kernel("kernelHistogram1D", reads, [out], because="counts into bins")


@rule("aten.isin.Tensor_Tensor", source="native/TensorCompare.cpp isin_Tensor_Tensor_out; 2.6.0")
def isin(op: Op, target: Target) -> Iterable[Launch]:
    """Few test elements (fewer than 10 times the count to the power of 0.145): all pairs compared,
    any per element. Else both sides made unique, joined, sorted, neighbours compared, and the
    answers put back in order."""
    yield from _isin(op, op["elements"], op["test_elements"], op.out, target)


@rule("aten.isin.Tensor_Scalar", source="native/TensorCompare.cpp isin_Tensor_Scalar_out; 2.6.0")
def isin_one(op: Op, target: Target) -> Iterable[Launch]:
    """A comparison with one number."""
    return elementwise([op.out], [op["elements"]], result="bool", because="compares with a number")


@rule("aten.isin.Scalar_Tensor", source="native/TensorCompare.cpp isin_Scalar_Tensor_out; 2.6.0")
def is_one_in(op: Op, target: Target) -> Iterator[Launch]:
    """The number becomes a 0-dim array on the GPU by a fill, then as for arrays."""
    number = fresh((), "int64" if isinstance(op["element"], int) else "float32")
    yield from fill(number, because="the number to look for")
    yield from _isin(op, number, op["test_elements"], op.out, target)


def _isin(op: Op, x: Tensor, tests: Tensor, out: Tensor, target: Target) -> Iterator[Launch]:
    if x.numel == 0:
        return
    if tests.numel < int(10.0 * x.numel**0.145):
        yield from fill(out, because="the answer for no match")
        pairs = fresh((*x.shape, tests.numel), "bool")
        common = promote(x.dtype, tests.dtype)
        yield from elementwise(
            [pairs], [unsqueeze(x, x.ndim), flat(compact(tests)[0])], compute=common,
            result="bool", because="compares all pairs",
        )  # fmt: skip
        answers = fresh(x.shape, "bool")
        yield from truth_of(answers, pairs, -1, target)
        yield from copy(out, answers)
        return
    yield from _isin_sorted(op, x, tests, out, target)


def _isin_sorted(op: Op, x: Tensor, tests: Tensor, out: Tensor, target: Target) -> Iterator[Launch]:
    many = [x, tests]
    places: Tensor | None = None
    if op["assume_unique"]:
        for i, t in enumerate(many):
            made, copies = compact(t)
            yield from copies
            many[i] = flat(made)
    else:
        for i, t in enumerate(many):
            n = t.numel // 2 if op.assumed is None else min(int(op.assumed), t.numel)
            distinct, inverse = fresh((n,), t.dtype), fresh(t.shape, "int64")
            args = {"self": t, "sorted": False, "return_inverse": i == 0}
            outputs = (distinct, inverse if i == 0 else fresh((0,), "int64"))
            step = replace(op, name="aten._unique.default", args=args, outputs=outputs)
            yield from unique(step, target)
            many[i] = distinct
            places = inverse if i == 0 else places
    common = promote(x.dtype, tests.dtype)
    n = sum(t.numel for t in many)
    joined, ordered, order = fresh((n,), common), fresh((n,), common), fresh((n,), "int64")
    yield from join(joined, many, 0)
    yield from sort_into(ordered, order, joined, 0, True, target)
    twins, found = fresh((n,), "bool"), fresh((n,), "bool")
    same = fresh((n - 1,), "bool")
    yield from elementwise(
        [same], [narrow(ordered, 0, 1, n - 1), narrow(ordered, 0, 0, n - 1)], compute=common,
        result="bool", because="compares neighbours",
    )  # fmt: skip
    yield from copy(narrow(twins, 0, 0, n - 1), same)
    last = Tensor((), (), "bool", "cpu")
    yield from copy(view(twins, (), (), n - 1), last, non_blocking=False)
    yield from stored_slices(found, 0, order, twins)
    if places is None:
        yield from copy(out, view(narrow(found, 0, 0, x.numel), x.shape, contiguous(x).stride))
        return
    answers = fresh(x.shape, "bool")
    yield from look_up(answers, found, [places])
    yield from copy(out, answers)


@rule("aten.segment_reduce", source="native/SegmentReduce.cpp, cuda/SegmentReduce.cu; 2.6.0")
def segment_reduce(op: Op, target: Target) -> Iterable[Launch]:
    """Lengths are checked on the host (two reads) unless unsafe, and turned into offsets; then one
    kernel, or for 1-D data CUB's segmented reduce (and a division for means)."""
    data, copies = compact(op["data"])
    lengths, offsets = op["lengths"], op["offsets"]
    if offsets is None and not op["unsafe"]:
        least, total = fresh((), lengths.dtype), fresh(lengths.shape[:-1], "int64")
        dense, made = compact(lengths)
        yield from [*copies, *made, *extreme(least, dense, None, target)]
        yield from read_by_host(least)
        yield from sum_to(total, lengths, -1, target)
        same, every = like(total, "bool"), fresh((), "bool")
        yield from elementwise([same], [total], compute="int64", because="sums to the length")
        yield from truth_of(every, same, None, target)
        yield from read_by_host(every)
    else:
        yield from copies
    given, made = compact(lengths if offsets is None else offsets)
    yield from made
    bounds = yield from _segments(given, from_lengths=offsets is None)
    if op.out.ndim > 1:
        yield kernel("segment_reduce_forward_kernel", [data, *bounds], [op.out])
        return
    yield kernel("DeviceSegmentedReduceKernel", [data, bounds[1]], [op.out])
    if op["reduce"] == "mean":
        yield kernel("post_sum_div_kernel", [op.out, bounds[0]], [op.out])


@rule("aten._segment_reduce_backward", source="cuda/SegmentReduce.cu; 2.6.0")
def segment_reduce_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Contiguous operands, zeros, offsets from lengths, one kernel."""
    ready: list[Tensor] = []
    for name in ("grad", "output", "data"):
        t, copies = compact(op[name])
        yield from copies
        ready.append(t)
    by_offsets = op["offsets"] is not None
    given, copies = compact(op["offsets"] if by_offsets else op["lengths"])
    yield from copies
    yield from zero(op.out, because="elements outside every segment have no gradient")
    bounds = yield from _segments(given, from_lengths=not by_offsets)
    yield kernel("segment_reduce_backward_kernel", [*ready, *bounds], [op.out])


def _segments(given: Tensor, *, from_lengths: bool) -> Generator[Launch, None, list[Tensor]]:
    """Lengths and offsets of segments: a difference of offsets, or a 0 before the lengths (zeros,
    cat) and their running sum."""
    if not from_lengths:
        n = given.shape[-1] - 1
        lengths = fresh((*given.shape[:-1], n), given.dtype)
        last = given.ndim - 1
        ends = [narrow(given, last, 1, n), narrow(given, last, 0, n)]
        yield from elementwise([lengths], ends, because="lengths are differences of offsets")
        return [lengths, given]
    first = fresh((*given.shape[:-1], 1), given.dtype)
    yield from zero(first, because="the first offset")
    offsets = fresh((*given.shape[:-1], given.shape[-1] + 1), given.dtype)
    yield from join(offsets, [first, given], given.ndim - 1)
    yield from scan_dim([offsets], offsets, offsets.ndim - 1)
    return [given, offsets]
