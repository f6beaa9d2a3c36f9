"""The reduction CUDA loop: block and grid, the split of one output across blocks, 32-bit pieces.

In: outputs, input and reduced dims. Out: launches. Follows aten/src/ATen/native/cuda/Reduce.cuh
(2.13.0 headers). One kernel reduces everything, whatever is reduced. Only when many values per
thread remain do several blocks share an output: they meet in a workspace, counted in by semaphores
that a memset clears first. Release 2.6 asks for more than 128 values before it loads vectors along
the reduced dim, and has no vectors wider than 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpredict.eager.iterator import Iterator, iterate
from kpredict.eager.launches import memset, workspace
from kpredict.model import (
    ITEMSIZE,
    ONE,
    Access,
    Basis,
    Dim3,
    Kind,
    Launch,
    Target,
    Tensor,
)  # fmt: skip

KERNEL = "reduce_kernel"
WARP = 32
MIN_PER_THREAD = 16
MAX_PER_THREAD = 256


@dataclass(frozen=True, slots=True)
class Config:
    """What one launch looks like; `ctas` blocks share each output."""

    grid: Dim3
    block: Dim3
    ctas: int
    staged: int  # accumulators kept in the workspace by all blocks together


def reduce(
    outputs: Sequence[Tensor],
    input: Tensor,
    dims: Sequence[int] | int | None,
    target: Target,
    *,
    kernel: str = KERNEL,
    per_thread: int = 4,
    vector: int | None = None,
    accumulator: int | None = None,
    because: str = "",
) -> list[Launch]:
    """`input` reduced over `dims` (None or none: all) into one or two outputs of that shape.

    `outputs` may have kept the reduced dims or not. `per_thread` is how many values a thread takes
    at once (2 for Welford's variance, whose state is large), `vector` how many it loads at once
    along the reduced dim, `accumulator` the bytes of one partial result. An empty input launches
    nothing: its caller fills.
    """
    if input.numel == 0 or not input.is_cuda:
        return []
    reduced = reduced_dims(dims, input.ndim)
    views = [_with_reduced_dims(t, reduced, input.ndim) for t in outputs]
    it = iterate(views, [input], reduction=True)
    size = accumulator or max(input.itemsize, 4 if input.is_floating_point else 1)
    found: list[Launch] = []
    pieces = it.pieces()
    for piece in pieces:
        config = configure(piece, input.dtype, target, per_thread, vector or per_thread)
        share = piece.numel / it.numel
        reads = [Access(input, round(input.nbytes * share))]
        kept = _outputs_of(piece) / _outputs_of(it)
        writes = [Access(t, round(t.nbytes * kept)) for t in outputs]
        why = because
        if len(pieces) > 1:
            why = f"{why}; {len(pieces)} launches, since offsets pass 31 bits".removeprefix("; ")
            if share != kept and piece is not pieces[0]:
                reads += writes  # what the piece before left is combined with
        if config.ctas > 1:
            why = f"{why}; {config.ctas} blocks share an output".removeprefix("; ")
            semaphores = workspace(config.grid[0], "int32")
            staging = workspace(config.staged * size, "uint8")
            found.append(memset(semaphores, because="counts the blocks that share an output"))
            reads += [Access.of(staging), Access.of(semaphores)]
            writes += [Access.of(staging), Access.of(semaphores)]
        found.append(
            Launch(
                Kind.KERNEL, kernel, ONE, tuple(reads), tuple(writes), Basis.HOST_CODE, why,
                grid=config.grid, block=config.block,
            )
        )  # fmt: skip
    return found


def configure(it: Iterator, dtype: str, target: Target, per_thread: int, vector: int) -> Config:
    """Block and grid of one piece (setReduceConfig).

    Threads lie along the fastest dim of the input. Where that is a reduced one, a row of threads
    reduces together; else each thread of a row has its own output, or 2 or 4 neighbouring ones.
    """
    outputs = _outputs_of(it)
    inputs = it.numel // outputs
    source = it.operands[-1]
    n_reduced = sum(st == 0 for st in it.operands[0].strides)
    ndim = len(it.shape)
    along_reduced = n_reduced == ndim or source.strides[0] < source.strides[n_reduced]
    width, height = (inputs, outputs) if along_reduced else (outputs, inputs)
    out_vector = 1
    fastest = (
        source.itemsize if ndim == 0 else source.strides[0 if along_reduced else n_reduced]
    )  # fmt: skip
    if fastest == source.itemsize and ndim > 0:
        if along_reduced and width >= 128 and n_reduced == 1:
            width //= vector
        elif not along_reduced:
            out_vector = _output_vector(it, n_reduced)
            width //= out_vector
    most = (256 if dtype == "complex128" else 512) // out_vector
    block_x, block_y = _block(width, height, most)
    step_in, step_out = (block_x, 1) if along_reduced else (1, block_x)
    split_y = -(-inputs // step_in) >= min(block_y * 16, MAX_PER_THREAD)
    if split_y:
        step_in *= block_y
    else:
        step_out *= block_y
    grid_x = -(-(outputs // out_vector) // step_out)
    ctas = 1
    values = -(-inputs // step_in)
    wanted = target.sms * (target.max_threads_per_sm // (block_x * block_y))
    if split_y and values >= MAX_PER_THREAD and grid_x <= wanted:
        ctas = max(
            min(-(-wanted // grid_x), -(-values // MIN_PER_THREAD)), -(-values // MAX_PER_THREAD)
        )
    staged = outputs * ctas * (1 if along_reduced else block_x * out_vector)
    return Config((grid_x, ctas, 1), (block_x, block_y, 1), ctas, staged)


def reduced_dims(dims: Sequence[int] | int | None, ndim: int) -> frozenset[int]:
    """The dims meant, counted from 0; None and an empty list mean all."""
    given = (dims,) if isinstance(dims, int) else tuple(dims or ())
    return frozenset(d % ndim if ndim else 0 for d in given) if given else frozenset(range(ndim))


def reduced_shape(
    shape: tuple[int, ...], dims: Sequence[int] | int | None, keepdim: bool
) -> tuple[int, ...]:
    """The shape a reduction of `shape` over `dims` has."""
    gone = reduced_dims(dims, len(shape))
    if keepdim:
        return tuple(1 if d in gone else s for d, s in enumerate(shape))
    return tuple(s for d, s in enumerate(shape) if d not in gone)


def widest(dtype: str) -> int:
    """Bytes a sum of `dtype` is kept in on the GPU (opmath: half types in float)."""
    return 4 if dtype in ("float16", "bfloat16") else 8 if dtype == "complex32" else ITEMSIZE[dtype]


def _outputs_of(it: Iterator) -> int:
    n = 1
    for size, stride in zip(it.shape, it.operands[0].strides, strict=True):
        if stride != 0 or size == 0:
            n *= size
    return n


def _with_reduced_dims(t: Tensor, reduced: frozenset[int], ndim: int) -> Tensor:
    """The output with a dim of size 1 and stride 0 for each reduced one (review_reduce_result)."""
    if t.ndim == ndim:
        return t
    kept = iter(zip(t.shape, t.stride, strict=True))
    pairs = [(1, 0) if d in reduced else next(kept) for d in range(ndim)]
    return replace(t, shape=tuple(s for s, _ in pairs), stride=tuple(st for _, st in pairs))


def _output_vector(it: Iterator, n_reduced: int) -> int:
    """Outputs per thread: 4, halved until address, output size and every other stride divide."""
    source = it.operands[-1]
    size = 4
    numbers = [source.address // source.itemsize, it.shape[n_reduced]]
    numbers += [
        st // source.itemsize for d, st in enumerate(source.strides) if d != n_reduced
    ]  # fmt: skip
    for n in numbers:
        while n % size:
            size //= 2
    return size


def _block(width: int, height: int, most: int) -> tuple[int, int]:
    x = _last_pow2(width) if width < most else most
    y = _last_pow2(height) if height < most else most
    block_x = min(x, WARP)
    block_y = min(y, most // block_x)
    return min(x, most // block_y), block_y


def _last_pow2(n: int) -> int:
    return 1 << max(n.bit_length() - 1, 0) if n > 0 else 1
