"""gather, scatter and its reductions, index_select, index_add, index_reduce."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from kpredict.eager.copying import copy, expand, fill, like, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.gemm import release
from kpredict.eager.indexing import gathers_rows, part, per_element, scatters_rows
from kpredict.eager.launches import Array, kernel
from kpredict.eager.operands import view
from kpredict.eager.registry import rule
from kpredict.eager.rules.placing import fill_slices
from kpredict.eager.shaping import at_least_1d, fits_32bit, wrap
from kpredict.model import Launch, Op, Target, Tensor

LOOP = "_scatter_gather_elementwise_kernel"
SMALL = 16
"""Indices up to which one thread walks over all of them."""

_ADDS_ROWS = ("float32", "float64", "float16", "bfloat16")


@rule("aten.gather", source="cuda/ScatterGatherKernel.cu gather_cuda_kernel; main of 2026")
def gather(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel over the index. Where one index per row is broadcast along dense rows of a
    multiple of 16 bytes, whole rows are moved: `vectorized_gather_kernel`."""
    return gather_from(op.out, op["self"], op["dim"], op["index"])


def gather_from(out: Tensor, x: Tensor, dim: int, picks: Tensor) -> list[Launch]:
    """`out = x.gather(dim, picks)`."""
    if picks.numel == 0:
        return []
    x, picks, out = at_least_1d(x), at_least_1d(picks), at_least_1d(out)
    dim = wrap(dim, picks.ndim)
    source = view(x, picks.shape, [0 if d == dim else s for d, s in enumerate(x.stride)])
    destination = view(out, picks.shape, out.stride)
    return per_element(
        LOOP, [destination], [source, picks], reads=[part(x, picks), picks], writes=[out],
        because="picks along one dim", fast=gathers_rows(x.stride[dim] * x.itemsize),
        per_thread=8,
    )  # fmt: skip


@rule(
    "aten.scatter", "aten.scatter_add",
    source="native/TensorAdvancedIndexing.cpp scatter_impl, cuda/ScatterGatherKernel.cu; 2026",
)  # fmt: skip
def scatter(op: Op, target: Target) -> Iterable[Launch]:
    """A copy of the input unless in place, then one kernel over the index. Sums of floats whose
    rows are dense, a multiple of 16 bytes and share an index are added row by row:
    `tma_scatter_add_kernel` from compute capability 9.0 on, else `vectorized_scatter_add_kernel`
    (since torch 2.13)."""
    out = op.out
    yield from copy(out, op["self"], because="the result starts as a copy")
    adds = op.packet.rstrip("_").endswith("scatter_add") or op.get("reduce") == "add"
    src = op.get("src")
    values = src if isinstance(src, Tensor) else None
    yield from scatter_into(out, op["dim"], op["index"], values, target, adds=adds)


def scatter_into(
    x: Tensor, dim: int, picks: Tensor, values: Tensor | None, target: Target, *, adds: bool
) -> list[Launch]:
    """`x.scatter_(dim, picks, values)`, or with a number when `values` is None."""
    if picks.numel == 0:
        return []
    x, picks = at_least_1d(x), at_least_1d(picks)
    dim = wrap(dim, x.ndim)
    still = view(x, picks.shape, [0 if d == dim else s for d, s in enumerate(x.stride)])
    touched = part(x, picks)
    why = "adds along one dim" if adds else "stores along one dim"
    if values is None:
        return per_element(
            LOOP, [still], [picks], reads=[picks], writes=[touched], because=why, per_thread=8
        )  # fmt: skip
    values = at_least_1d(values)
    fast = None
    if adds and x.dtype in _ADDS_ROWS and _has_row_adds(target):
        name = "tma_scatter_add_kernel" if target.sm >= 90 else "vectorized_scatter_add_kernel"
        fast = scatters_rows(x.stride[dim] * x.itemsize, name)
    reads: list[Array] = [part(values, picks), picks]
    if adds:
        reads.append(touched)
    return per_element(
        LOOP, [still], [view(values, picks.shape, values.stride), picks], reads=reads,
        writes=[touched], because=why, fast=fast, per_thread=8,
    )  # fmt: skip


def _has_row_adds(target: Target) -> bool:
    return release(target) >= (2, 13)


@rule(
    "aten.scatter_reduce",
    source="native/TensorAdvancedIndexing.cpp scatter_reduce_two; main of 2026",
)
def scatter_reduce(op: Op, target: Target) -> Iterable[Launch]:
    """Out of place the input is copied twice. Without include_self the slots are set first. The
    reduction is one kernel (sums go as scatter_add does); a mean also counts: ones, a scatter_add
    of ones, a masked fill and a division."""
    x, out, picks, src = op["self"], op.out, op["index"], op["src"]
    dim, reduce = op["dim"], op["reduce"]
    yield from copy(out, x, because="the result starts as a copy")
    yield from copy(out, x, because="and is copied once more by scatter's own code")
    if picks.numel:
        if not op["include_self"]:
            yield from scatter_into(out, dim, picks, None, target, adds=False)
        yield from scatter_into(out, dim, picks, src, target, adds=reduce == "sum")
    if reduce == "mean":
        ones = like(src)
        yield from fill(ones, because="ones to count with")
        counts = like(out)
        yield from fill(counts, because="counts")
        yield from scatter_into(counts, dim, picks, ones, target, adds=True)
        yield from divide_by_counts(out, counts)


def divide_by_counts(out: Tensor, counts: Tensor) -> Iterator[Launch]:
    """Counts of 0 become 1, then the sums are divided."""
    empty = like(counts, "bool")
    yield from elementwise([empty], [counts], compute=counts.dtype, because="where nothing fell")
    yield from elementwise(
        [counts], [counts, empty], compute=[counts.dtype, "bool"], because="a masked fill"
    )
    yield from elementwise([out], [out, counts], because="divides by the counts")


@rule("aten.index_select", source="cuda/Indexing.cu index_select_out_cuda_impl; main of 2026")
def index_select(op: Op, target: Target) -> Iterable[Launch]:
    """Up to 16 indices: `indexSelectSmallIndex`, one thread walks over them all. More (or more than
    31 bits of offset): a gather with the index broadcast."""
    return select_slices(op.out, op["self"], op["dim"], op["index"])


def select_slices(out: Tensor, x: Tensor, dim: int, picks: Tensor) -> list[Launch]:
    """`out = x.index_select(dim, picks)`."""
    if out.numel == 0:
        return []
    n = picks.numel
    if n <= SMALL and fits_32bit(out, x, picks):
        why = f"{n} indices: each thread walks over all of them"
        return [
            kernel("indexSelectSmallIndex", [part(x, out), picks], [out], because=why)
        ]  # fmt: skip
    dim = wrap(dim, x.ndim)
    step = picks.stride[0] if picks.ndim else 1
    column = view(
        picks,
        [n if d == dim else 1 for d in range(x.ndim)],
        [step if d == dim else 0 for d in range(x.ndim)],
    )
    return gather_from(out, x, dim, expand(column, out.shape))


@rule("aten.index_add", source="cuda/Indexing.cu index_add_cuda_impl; 2.6.0, main of 2026")
def index_add(op: Op, target: Target) -> Iterable[Launch]:
    """A copy of the input unless in place, then one kernel: `indexFuncSmallIndex` up to 16 indices,
    else `indexFuncLargeIndex`. From torch 2.14 on, along dim 0 with alpha 1 and a contiguous index,
    real numbers go as scatter_add does."""
    yield from copy(op.out, op["self"], because="the result starts as a copy")
    yield from add_slices(op.out, op["dim"], op["index"], op["source"], op["alpha"], target)


def add_slices(
    x: Tensor, dim: int, picks: Tensor, source: Tensor, alpha: complex, target: Target
) -> list[Launch]:
    """`x.index_add_(dim, picks, source, alpha=alpha)`."""
    x, source = at_least_1d(x), at_least_1d(source)
    dim = wrap(dim, x.ndim)
    if math.prod(s for d, s in enumerate(x.shape) if d != dim) == 0:
        return []
    n = picks.numel
    if (
        release(target) >= (2, 14)
        and dim == 0 and alpha == 1 and n > 0 and picks.is_contiguous
        and not x.is_complex and x.dtype != "bool"
    ):  # fmt: skip
        column = view(picks, [n] + [1] * (source.ndim - 1), [1] * source.ndim)
        return scatter_into(x, 0, expand(column, source.shape), source, target, adds=True)
    if source.numel == 0:
        return []
    return [_over_slices(x, picks, source)]


def _over_slices(x: Tensor, picks: Tensor, source: Tensor) -> Launch:
    n = picks.numel
    small = n <= SMALL and fits_32bit(x, source, picks)
    name = "indexFuncSmallIndex" if small else "indexFuncLargeIndex"
    why = f"{n} indices, {'walked over by each thread' if small else 'spread over threads'}"
    touched = part(x, source)
    return kernel(name, [touched, picks, source], [touched], because=why)


@rule("aten.index_reduce", source="cuda/Indexing.cu index_reduce_func_cuda_impl; 2.6.0")
def index_reduce(op: Op, target: Target) -> Iterable[Launch]:
    """As index_add's own kernels; slots are filled first without include_self; a mean also counts
    by an index_add of ones and divides."""
    out, picks, source = op.out, op["index"], op["source"]
    dim, reduce = op["dim"], op["reduce"]
    yield from copy(out, op["self"], because="the result starts as a copy")
    if not op["include_self"]:
        as_long, casts = to(picks, "int64")
        yield from casts
        yield from fill_slices(out, dim, as_long)
    if source.numel:
        yield _over_slices(at_least_1d(out), picks, at_least_1d(source))
    if reduce == "mean":
        counts, ones = like(out), like(source)
        yield from fill(counts, because="counts")
        yield from fill(ones, because="ones to count with")
        yield from add_slices(counts, dim, picks, ones, 1, target)
        yield from divide_by_counts(out, counts)
