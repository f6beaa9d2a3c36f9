"""grid_sample, affine_grid, im2col and col2im (F.unfold, F.fold), both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpredict.eager.copying import compact, copy, fill, like, zero
from kpredict.eager.elementwise import elementwise, indexed
from kpredict.eager.launches import contiguous, kernel, library, memcpy
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.eager.rules.matmul import multiply_batch
from kpredict.eager.rules.unviewing import select
from kpredict.eager.shaping import fresh, permute
from kpredict.model import Launch, Op, Target, Tensor


@rule(
    "aten.grid_sampler_2d", "aten.grid_sampler_3d",
    source="cuda/GridSampler.cpp, GridSampler.cu; 2.6.0",
)  # fmt: skip
def grid_sampler(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel, any strides and modes."""
    if op.out.numel == 0:
        return []
    name = op.packet.removeprefix("aten.") + "_kernel"
    return [kernel(name, [op["input"], op["grid"]], [op.out], because="samples at the grid")]


@rule(
    "aten.grid_sampler_2d_backward", "aten.grid_sampler_3d_backward",
    source="cuda/GridSampler.cpp, GridSampler.cu; 2.6.0",
)  # fmt: skip
def grid_sampler_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros for the input's gradient, if it is wanted, then one kernel for both gradients."""
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    if op["output_mask"][0]:
        yield from zero(outs[0], because="gradients are added up in it")
    if op["grad_output"].numel:
        name = op.packet.removeprefix("aten.") + "_kernel"
        yield kernel(name, [op["grad_output"], op["input"], op["grid"]], outs)


@rule("aten.cudnn_grid_sampler", source="native/cudnn/GridSampler.cpp; 2.6.0")
def cudnn_grid_sampler(op: Op, target: Target) -> Iterator[Launch]:
    """cuDNN's call, taken for bilinear sampling of 4-D inputs with aligned corners and zeros
    outside; the grid is made contiguous."""
    grid, copies = compact(op["grid"])
    yield from copies
    yield library("cudnnSpatialTfSamplerForward", [op["self"], grid], [op.out], hi=2)


@rule("aten.cudnn_grid_sampler_backward", source="native/cudnn/GridSampler.cpp; 2.6.0")
def cudnn_grid_sampler_backward(op: Op, target: Target) -> Iterator[Launch]:
    """cuDNN's call, which makes both gradients whichever is wanted. How it clears what it adds into
    is its own affair."""
    grid, copies = compact(op["grid"])
    yield from copies
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    reads = [op["self"], grid, op["grad_output"]]
    yield library("cudnnSpatialTfSamplerBackward", reads, outs, hi=3)


@rule("aten.affine_grid_generator", source="native/AffineGridGenerator.cpp; 2.6.0")
def affine_grid(op: Op, target: Target) -> Iterable[Launch]:
    """A base grid, filled coordinate by coordinate (a linspace, scaled unless corners are aligned,
    and a copy each, then a fill with ones), times theta: one batched GEMM."""
    theta, size = op["theta"], tuple(op["size"])
    n, spatial = size[0], size[2:]
    grid = fresh((n, *spatial, len(spatial) + 1), theta.dtype)
    for i, steps in enumerate(reversed(spatial)):
        line, found = _from_minus_one(theta.dtype, steps, op["align_corners"])
        yield from found
        shape = (steps, *(1,) * i)
        along = view(line, shape, (1,) * len(shape)) if line.ndim else line
        yield from copy(select(grid, -1, i), along, because="one coordinate of the base grid")
    yield from fill(select(grid, -1, len(spatial)), because="the homogeneous coordinate")
    flat_shape = (n, grid.numel // (n * grid.shape[-1]) if n else 0)
    base = view(grid, (*flat_shape, grid.shape[-1]), contiguous(
        grid, shape=(*flat_shape, grid.shape[-1])).stride)  # fmt: skip
    result_shape = (*flat_shape, len(spatial))
    result = view(op.out, result_shape, contiguous(op.out, shape=result_shape).stride)
    yield from multiply_batch(result, base, permute(theta, (0, 2, 1)), target)


def _from_minus_one(dtype: str, steps: int, aligned: bool) -> tuple[Tensor, list[Launch]]:
    """`steps` points from -1 to 1: corners, or the centers of as many cells; of one step a 0 that
    comes from the host."""
    if steps <= 1:
        zero_dim = fresh((), dtype)
        return zero_dim, copy(zero_dim, Tensor((), (), dtype, "cpu"), because="a single step")
    line = fresh((steps,), dtype)
    found = indexed(line, because="points from -1 to 1")
    if not aligned:
        for what in ("times steps - 1", "divided by steps"):
            scaled = like(line)
            found += elementwise([scaled], [line], because=what)
            line = scaled
    return line, found


@rule("aten.im2col", source="cuda/Im2Col.cu; 2.6.0")
def im2col(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous input, then one kernel per image of the batch. The result starts as large as the
    input and is resized: growing copies what it held."""
    x, out = op["self"], op.out
    made, copies = compact(x)
    yield from copies
    yield from _grown(out, x)
    images = x.shape[0] if x.ndim == 4 else 1
    why = "one launch per image" if images > 1 else ""
    source, result = (narrow(t, 0, 0, 1) if images > 1 else t for t in (made, out))
    for _ in range(images):
        yield kernel("im2col_kernel", [source], [result], because=why)


@rule("aten.col2im", source="cuda/Col2Im.cu col2im_batched; 2.6.0")
def col2im(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous input, then one kernel for the whole batch; a result larger than the input
    grows, which copies what it held."""
    x, out = op["self"], op.out
    made, copies = compact(x)
    yield from copies
    yield from _grown(out, x)
    if out.numel:
        yield kernel("col2im_batched_kernel", [made], [out], because="adds up columns")


def _grown(out: Tensor, x: Tensor) -> list[Launch]:
    if out.numel <= x.numel or x.numel == 0:
        return []
    held = contiguous(x)
    return [memcpy("DtoD", held, out, because="resizing keeps what the smaller array held")]
