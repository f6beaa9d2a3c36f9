"""Embedding tables: look-ups, bags, and gradients of dense tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kpredict.eager import cub
from kpredict.eager.calling import Host
from kpredict.eager.copying import compact, copy, like, to, zero
from kpredict.eager.elementwise import elementwise, indexed
from kpredict.eager.gemm import release
from kpredict.eager.indexing import part
from kpredict.eager.launches import Array, contiguous, kernel, workspace
from kpredict.eager.operands import view
from kpredict.eager.promoting import promote, real_part
from kpredict.eager.registry import rule
from kpredict.eager.rules.gathering import select_slices
from kpredict.eager.rules.indexing import look_up
from kpredict.eager.rules.sorting import sort_into
from kpredict.eager.shaping import flat, fresh, reshape, unsqueeze, wrap
from kpredict.model import Access, Launch, Op, Target, Tensor

FEW = 3072
"""Indices up to which one kernel adds a table's gradient without sorting."""

_ROWS_PER_THREAD = 10
_MEAN, _MAX = 1, 2


@rule("aten.embedding", source="native/Embedding.cpp embedding_symint; 2.6.0")
def embedding(op: Op, target: Target) -> Iterable[Launch]:
    """An index_select of rows; indices that do not lie in one line are copied first."""
    table, picks = op["weight"], op["indices"]
    line, copies = reshape(picks, (picks.numel,)) if picks.ndim != 1 else (picks, [])
    shape = (picks.numel, *table.shape[1:])
    rows = view(op.out, shape, contiguous(table, shape=shape).stride)
    return [*copies, *select_slices(rows, table, 0, line)]


@rule(
    "aten.embedding_dense_backward", source="cuda/Embedding.cu, EmbeddingBackwardKernel.cu; 2.6.0"
)
def embedding_dense_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Up to 3072 indices, unless scaled by frequency: zeros and one kernel. More: the indices are
    numbered and sorted by CUB over the bits the table's length needs, then rows with equal indices
    are added up in segments (`add_segments`). Indices and gradient are made contiguous first."""
    picks, copies = compact(op["indices"])
    yield from copies
    grad, copies = compact(op["grad_output"])
    yield from copies
    out = op.out
    if picks.numel <= FEW and not op["scale_grad_by_freq"]:
        yield from zero(out, because="rows that were not looked up have no gradient")
        why = f"{picks.numel} indices: added without sorting"
        reads = [picks, grad]
        yield kernel("embedding_backward_feature_kernel", reads, [part(out, grad)], because=why)
        return
    yield from _sorted_way(
        out, grad, picks, op["num_weights"], op["scale_grad_by_freq"], target, bag=None
    )


@dataclass(frozen=True, slots=True)
class Bag:
    """What the gradient of bags needs besides the indices."""

    offset2bag: Tensor
    sizes: Tensor
    weights: Tensor | None


def _sorted_way(
    out: Tensor, grad: Tensor, picks: Tensor, table_length: int, by_frequency: bool,
    target: Target, *, bag: Bag | None,
) -> Iterator[Launch]:  # fmt: skip
    n, dtype = picks.numel, picks.dtype
    numbers, keys, order = (fresh((n,), dtype) for _ in range(3))
    yield from indexed(numbers, because="numbers the indices")
    bits = cub.key_bits(table_length)
    yield from cub.radix_sort([flat(picks), numbers], [keys, order], bits=bits, target=target)
    counts: list[Tensor] = []
    if by_frequency:
        counts = [fresh((n,), dtype)]
        yield from cub.scan_by_key(keys, [], counts[0])
        yield from cub.scan_by_key(keys, counts, counts[0])
    yield from add_segments(out, grad, keys, order, counts, table_length, bag, target)


def add_segments(
    out: Tensor, grad: Tensor, keys: Tensor, order: Tensor, counts: list[Tensor],
    table_length: int, bag: Bag | None, target: Target,
) -> Iterator[Launch]:  # fmt: skip
    """Zeros; runs of equal indices are found (CUB unique by key), cut into partial segments of 10
    rows whose starts a CUB scan gives, summed up and scattered (embedding_backward_cuda_kernel).
    Few rows of many indices each are added up by atomics, halves in a float array (main of 2026).
    """
    n, dtype = keys.numel, keys.dtype
    yield from zero(out, because="rows that were not looked up have no gradient")
    starts, length = fresh((n,), dtype), workspace(1, "int64")
    yield from cub.unique_by_key(keys, [starts, length])
    most = min(n, table_length)
    partials, offsets = fresh((most,), dtype), fresh((most,), dtype)
    yield kernel("krn_partials_per_segment", [starts, length], [partials])
    yield from cub.scan(partials, offsets)
    total = workspace(1, "int64")
    yield kernel("compute_num_of_partial_segments", [partials, offsets, length], [total])
    pieces = fresh((n // _ROWS_PER_THREAD + most,), dtype)
    yield kernel("krn_partial_segment_offset", [partials, offsets, starts, length], [pieces])
    kept = "float32" if grad.dtype in ("float16", "bfloat16") else grad.dtype
    if bag is None and _few_rows(most, pieces.numel, out.shape[-1], target):
        of_piece = fresh(pieces.shape, dtype)
        yield kernel("krn_partial_to_segment_idx", [partials, offsets, length], [of_piece])
        added = out if kept == out.dtype else contiguous(out, dtype=kept)
        if added is not out:
            yield from zero(added, because="sums of halves are made in float")
        reads = [order, grad, *counts, pieces, total, keys, of_piece, starts]
        why = f"{most} rows would leave the GPU idle: added by atomics"
        yield kernel("compute_grad_weight_atomic_accumulate", reads, [added], because=why)
        if added is not out:
            yield from copy(out, added)
        return
    sums = fresh((pieces.numel, out.shape[-1]), kept)
    name, extra = "compute_grad_weight", list[Tensor]()
    if bag is not None:
        name, extra = "compute_grad_weight_bags", [bag.offset2bag, bag.sizes]
        if bag.weights is not None:
            extra.append(bag.weights)
    yield kernel(name, [order, grad, *counts, *extra, pieces, total], [sums])
    yield kernel("sum_and_scatter", [keys, starts, sums, offsets, total], [part(out, sums)])


def _few_rows(segments: int, pieces: int, width: int, target: Target) -> bool:
    """Whether scattering would launch few blocks, and summing four times as many."""
    warped = -(-width // 32) * 32
    blocks = -(-segments * warped // min(warped, 1024))
    return blocks < 4 * target.sms and pieces > 4 * blocks


@rule("aten.embedding_renorm_", source="cuda/Embedding.cu embedding_renorm_cuda_; 2.6.0")
def embedding_renorm_(op: Op, target: Target) -> Iterable[Launch]:
    """The indices are wrapped (from 2.13 on), sorted, made unique by CUB, then one kernel with a
    block per index rescales rows whose norm is too large."""
    picks, table = op["indices"], op["self"]
    if release(target) >= (2, 13):
        wrapped = like(picks)
        yield kernel("embedding_renorm_wrap_indices_kernel", [picks], [wrapped])
        picks = wrapped
    ordered, order = like(picks), like(picks, "int64")
    yield from sort_into(ordered, order, picks, -1, False, target)
    ordered, copies = compact(ordered)
    yield from copies
    unique, length = fresh((picks.numel,), picks.dtype), workspace(1, "int64")
    yield from cub.select([ordered], [unique, length], picks.numel)
    rows = Access(table, min(table.nbytes, picks.numel * table.shape[1] * table.itemsize))
    yield kernel("renorm_kernel", [rows, unique, length], [rows], because="a block per index")


@rule(
    "aten._embedding_bag", "aten._embedding_bag_forward_only",
    source="cuda/EmbeddingBag.cu _embedding_bag_cuda; 2.6.0",
)  # fmt: skip
def embedding_bag(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel by mode; indices and offsets of different integer types are cast first."""
    picks, offsets, casts = _promoted(op["indices"], op["offsets"])
    yield from casts
    table, mode = op["weight"], op["mode"]
    read = Access(table, min(table.nbytes, picks.numel * table.shape[1] * table.itemsize))
    reads: list[Array] = [read, picks, offsets]
    weights = op.get("per_sample_weights")
    if weights is not None:
        reads.append(weights)
    out, offset2bag, sizes, best = op.outputs
    name = "EmbeddingBag_updateOutputKernel_" + ("max" if mode == _MAX else "sum_mean")
    writes = [out, offset2bag, sizes, *([best] if mode == _MAX else [])]
    yield kernel(name, reads, writes, because="looks rows up and reduces each bag")


def _promoted(picks: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, list[Launch]]:
    common = promote(picks.dtype, offsets.dtype)
    picks, found = to(picks, common)
    offsets, more = to(offsets, common)
    return picks, offsets, [*found, *more]


@rule(
    "aten._embedding_bag_backward", "aten._embedding_bag_dense_backward",
    "sparse.aten._embedding_bag_backward",
    source="native/EmbeddingBag.cpp, cuda/EmbeddingBag.cu; 2.6.0",
)  # fmt: skip
def embedding_bag_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Max: zeros and one kernel. Sum and mean: as a table's gradient in the sorted way, whatever
    the number of indices. A sparse gradient is index_select, scaled, masked where padded."""
    picks, offsets = op["indices"], op.get("offsets")
    if offsets is not None:
        picks, offsets, casts = _promoted(picks, offsets)
        yield from casts
    if op.get("sparse"):
        yield from _sparse_bags(op)
        return
    grad, copies = compact(op["grad"])
    yield from copies
    out = op.out
    if op["mode"] == _MAX:
        best = op["maximum_indices"]
        yield from zero(out, because="rows that were not picked have no gradient")
        yield kernel("EmbeddingBag_accGradParametersKernel_max", [best, grad], [part(out, grad)])
        return
    if picks.numel == 0:
        yield from zero(out, because="all bags are empty")
        return
    bag = Bag(op["offset2bag"], op["bag_size"], op.get("per_sample_weights"))
    yield from _sorted_way(
        out, grad, picks, op["num_weights"], op["scale_grad_by_freq"], target, bag=bag
    )


def _sparse_bags(op: Op) -> Iterator[Launch]:
    """_embedding_bag_sparse_backward and embedding_sparse_backward."""
    grad, picks, offset2bag = op["grad"], op["indices"], op["offset2bag"]
    rows = fresh((picks.numel, grad.shape[1]), grad.dtype)
    yield from select_slices(rows, grad, 0, offset2bag)
    if op["mode"] == _MEAN:
        sizes, casts = to(op["bag_size"], grad.dtype)
        yield from casts
        inverse = like(sizes)
        yield from elementwise([inverse], [sizes], because="1 / bag size")
        scale = fresh((picks.numel, 1), grad.dtype)
        yield from select_slices(scale, unsqueeze(inverse, 1), 0, offset2bag)
        yield from elementwise([rows], [rows, scale], because="the mean of each bag")
    weights = op.get("per_sample_weights")
    if weights is not None:
        yield from elementwise([rows], [rows, unsqueeze(weights, 1)], because="weighted")
    if op["padding_idx"] != -1:
        kept = like(picks, "bool")
        yield from elementwise([kept], [picks], compute=picks.dtype, because="is not padding")
        n = picks.numel // 2 if op.assumed is None else int(op.assumed)
        yield from look_up(fresh((n,), picks.dtype), picks, [kept])
        yield from look_up(fresh((n, grad.shape[1]), grad.dtype), rows, [kept])


@rule(
    "aten._embedding_bag_per_sample_weights_backward",
    source="cuda/EmbeddingBag.cu _embedding_bag_per_sample_weights_backward_cuda; 2.6.0",
)
def per_sample_weights_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel with a warp per sample; none without samples."""
    picks, _, casts = _promoted(op["indices"], op["offsets"])
    yield from casts
    if picks.numel:
        grad, table = op["grad"], op["weight"]
        read = Access(table, min(table.nbytes, picks.numel * table.shape[1] * table.itemsize))
        yield kernel(
            "_embedding_bag_per_sample_weights_backward_kernel",
            [grad, read, picks, op["offset2bag"]], [op.out], because="one dot product per sample",
        )  # fmt: skip


@rule("aten.renorm", source="native/Normalization.cpp renorm_out; 2.6.0")
def renorm(op: Op, target: Target) -> Iterable[Launch]:
    """A norm per slice (of half types in float), the factor that keeps it below the limit, and a
    product."""
    host, x = Host(target), op["self"]
    dims = tuple(d for d in range(x.ndim) if d != wrap(op["dim"], x.ndim))
    shape = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    kept = "float32" if x.dtype in ("float16", "bfloat16") else real_part(x.dtype)
    norm = host.call(
        "aten.linalg_vector_norm.default", fresh(shape, kept), self=x, ord=op["p"], dim=dims,
        keepdim=True, dtype=None if kept == x.dtype else kept,
    )  # fmt: skip
    factor = norm if kept == real_part(x.dtype) else fresh(shape, x.dtype)
    host.add(elementwise([factor], [norm], result=kept, because="1 or what shrinks to the limit"))
    host.add(elementwise([op.out], [x, factor], because="scales each slice"))
    return host.launches
