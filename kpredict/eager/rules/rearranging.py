"""Copies in another order: flip, roll, rot90, repeat, tril/triu, diagonals, shuffles, windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpredict.eager import cub
from kpredict.eager.copying import compact, copy, expand, like, to, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.indexing import per_element
from kpredict.eager.launches import contiguous, kernel, memcpy, sync
from kpredict.eager.operands import view
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.eager.rules.unviewing import diagonal
from kpredict.eager.shaping import fresh, permute, wrap
from kpredict.eager.summing import sum_to
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten.flip", source="native/TensorTransformations.cpp flip; 2.6.0")
def flip(op: Op, target: Target) -> Iterable[Launch]:
    """One index kernel that walks the output backwards; a copy when no flipped dim has more than
    one distinct element."""
    return flipped(op.out, op["self"], op["dims"])


def flipped(out: Tensor, x: Tensor, dims: Sequence[int]) -> list[Launch]:
    """`out = x.flip(dims)`."""
    chosen = {wrap(d, x.ndim) for d in dims}
    moving = {d for d in chosen if x.ndim and x.shape[d] > 1 and x.stride[d] != 0}
    if not moving or x.numel <= 1:
        return copy(out, x, because="no dim has two elements to swap")
    still = view(x, x.shape, [0 if d in moving else st for d, st in enumerate(x.stride)])
    return per_element(
        "index_elementwise_kernel", [out], [x, still], reads=[x], writes=[out],
        because="walks the output backwards",
    )  # fmt: skip


@rule("aten.rot90", source="native/TensorTransformations.cpp rot90; 2.6.0")
def rot90(op: Op, target: Target) -> Iterable[Launch]:
    """A flip of one or both dims, seen transposed for odd turns; a contiguous clone for none."""
    x, out, turns = op["self"], op.out, op["k"] % 4
    first, second = (wrap(d, x.ndim) for d in op["dims"])
    if turns == 0:
        return copy(out, x, because="a full turn is a clone")
    if turns == 2:
        return flipped(out, x, (first, second))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return flipped(permute(out, order), x, (second,) if turns == 1 else (first,))


@rule("aten.roll", source="cuda/TensorTransformations.cu roll_cuda, TensorTransformations.h; 2.6.0")
def roll(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per rolled dim (one over the flat array without dims), each into a fresh array; a
    strided input is copied first."""
    out = op.out
    x, copies = compact(op["self"])
    yield from copies
    n = max(len(op["dims"]), 1)
    if out.numel == 0:
        return
    for i in range(n):
        step = out if i == n - 1 else contiguous(out)
        yield kernel("roll_cuda_kernel", [x], [step], because="rolls one dim")
        x = step


@rule("aten.repeat", source="native/TensorShape.cpp repeat; 2.6.0")
def repeat(op: Op, target: Target) -> Iterable[Launch]:
    """One copy of the broadcast input into the output seen as tiles."""
    x, out = op["self"], op.out
    if out.numel == 0:
        return []
    sizes = (1,) * (out.ndim - x.ndim) + x.shape
    tiles = view(
        out,
        [*(o // max(s, 1) for o, s in zip(out.shape, sizes, strict=True)), *sizes],
        [*(st * max(s, 1) for st, s in zip(out.stride, sizes, strict=True)), *out.stride],
    )
    return copy(tiles, expand(x, tiles.shape), because="every tile is the input")


@rule("aten.repeat_interleave.Tensor", source="native/Repeat.h, cuda/Repeat.cu; 2.6.0")
def repeat_interleave(op: Op, target: Target) -> Iterable[Launch]:
    """The running sum of the repeats (CUB scan; int32 ones are cast), then one kernel. Without an
    output size the host reads the sum, and whether all repeats are positive."""
    repeats, out = op["repeats"], op.out
    if repeats.numel == 0:
        return
    repeats, copies = compact(repeats)
    yield from copies
    as_long, casts = to(repeats, "int64")
    yield from casts
    sums = fresh(repeats.shape, "int64")
    yield from cub.scan(as_long, sums)
    if op["output_size"] is None:
        yield from _read(view(sums, (), (), sums.numel - 1), "the length of the result")
        good, every = like(repeats, "bool"), fresh((), "bool")
        yield from elementwise([good], [repeats], compute=repeats.dtype, because="is not negative")
        yield from reduce([every], good, None, target, accumulator=1, because="all of them")
        yield from _read(every, "whether repeats are negative")
    yield kernel("compute_cuda_kernel", [repeats, sums], [out], because="writes each index out")


def _read(value: Tensor, what: str) -> list[Launch]:
    host = Tensor((), (), value.dtype, "cpu")
    return [memcpy("DtoH", value, host, because=what), sync(f"the host reads {what}")]


@rule("aten.tril", "aten.triu", source="cuda/TriangularOps.cu triu_tril_cuda_template; 2.6.0")
def triangle(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel, any strides, in place or not."""
    x, out = op["self"], op.out
    return [] if x.numel == 0 else [kernel("triu_tril_kernel", [x], [out], because="keeps half")]


@rule("aten.trace", source="cuda/TriangularOps.cu trace_cuda; 2.6.0")
def trace(op: Op, target: Target) -> Iterable[Launch]:
    """The sum of the diagonal: one reduction."""
    return sum_to(op.out, diagonal(op["self"], 0, 0, 1), None, target)


@rule("aten.diag_embed", source="native/TensorShape.cpp diag_embed; 2.6.0")
def diag_embed(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then a copy into the diagonal."""
    out = op.out
    yield from zero(out, because="zeros around the diagonal")
    on_it = diagonal(out, op["offset"], op["dim1"], op["dim2"])
    yield from copy(on_it, op["self"], because="the diagonal")


@rule("aten.pixel_shuffle", source="native/PixelShuffle.cpp math_pixel_shuffle; 2.6.0")
def pixel_shuffle(op: Op, target: Target) -> Iterable[Launch]:
    """One copy of the permuted view: channels c·r² become blocks of r by r pixels."""
    return _shuffled(op.out, op["self"], op["upscale_factor"], up=True)


@rule("aten.pixel_unshuffle", source="native/PixelShuffle.cpp math_pixel_unshuffle; 2.6.0")
def pixel_unshuffle(op: Op, target: Target) -> Iterable[Launch]:
    """One copy of the permuted view: blocks of r by r pixels become channels."""
    return _shuffled(op.out, op["self"], op["downscale_factor"], up=False)


def _shuffled(out: Tensor, x: Tensor, r: int, *, up: bool) -> list[Launch]:
    """Both ends as (…, c, r, r, h, w), where (c, r, r) are the many channels and (h, r), (w, r) the
    large plane."""
    many, large = (x, out) if up else (out, x)
    c, h, w = large.shape[-3], many.shape[-2], many.shape[-1]
    shape = (*x.shape[:-3], c, r, r, h, w)
    sc, sh, sw = many.stride[-3:]
    split_channels = view(many, shape, (*many.stride[:-3], sc * r * r, sc * r, sc, sh, sw))
    sc, sh, sw = large.stride[-3:]
    split_plane = view(large, shape, (*large.stride[:-3], sc, sh, sw, sh * r, sw * r))
    to_, from_ = (split_plane, split_channels) if up else (split_channels, split_plane)
    return copy(to_, from_, because="a permuted view, made contiguous")


@rule(
    "aten.channel_shuffle",
    "aten.native_channel_shuffle",
    source="native/ChanelShuffle.cpp math_channel_shuffle; 2.6.0",
)
def channel_shuffle(op: Op, target: Target) -> Iterable[Launch]:
    """One copy of the permuted view."""
    x, out, groups = op["self"], op.out, op["groups"]
    if x.numel == 0:
        return []
    b, c = x.shape[:2]
    rest = x.numel // (b * c)
    source = view(
        x, (b, c // groups, groups, rest), (x.stride[0], x.stride[1], x.stride[1] * c // groups, 1)
    )
    made = view(out, source.shape, contiguous(out, shape=source.shape).stride)
    return copy(made, source, because="a permuted view, made contiguous")


@rule("aten.linalg_cross", source="cuda/CrossKernel.cu cross_impl; 2.6.0")
def cross(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel over all vectors; operands are broadcast without copies."""
    out = op.out
    dim = wrap(op["dim"], out.ndim)
    a, b = (expand(op[name], out.shape) for name in ("self", "other"))
    ends = [
        view(
            t, [1 if d == dim else n for d, n in enumerate(t.shape)], t.stride
        ) for t in (out, a, b)
    ]  # fmt: skip
    return per_element(
        "cross_kernel", ends[:1], ends[1:], reads=[op["self"], op["other"]], writes=[out],
        because="one thread per vector", per_thread=1,
    )  # fmt: skip
