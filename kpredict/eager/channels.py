"""Passes over the channels of a batch: what PyTorch's batch norms are made of.

In: arrays (N, C, *). Out: launches. Three implementations, by layout: contiguous, channels last
(and (N, C) matrices), and a general one from reductions and elementwise passes. Follows
aten/src/ATen/native/cuda/Normalization.cu (2.6.0) and Normalization.cuh (2.13.0 headers).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from kpredict.eager.copying import compact, fill, to, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel, workspace
from kpredict.eager.operands import view
from kpredict.eager.reducing import reduce
from kpredict.eager.shaping import fits_32bit
from kpredict.model import Dim3, Launch, Target, Tensor

_BLOCK = 512
_TILE_X = 32
_PER_THREAD = 16
_MOST_ROWS = 128

CONTIGUOUS, CHANNELS_LAST, GENERAL = "contiguous", "channels last", "general"


def implementation(x: Tensor) -> str:
    """Which of three (batch_norm_choose_impl)."""
    if not fits_32bit(x):
        return GENERAL
    if x.is_contiguous:
        return CHANNELS_LAST if x.stride[1] == 1 else CONTIGUOUS
    return CHANNELS_LAST if x.ndim == 4 and x.is_channels_last else GENERAL


def is_channels_last(x: Tensor) -> bool:
    """Whether the channels lie dense: channels last, or a contiguous (N, C) matrix."""
    return x.is_channels_last or (x.is_contiguous and x.stride[1] == 1)


def statistics(saved: list[Tensor], x: Tensor, target: Target) -> Iterator[Launch]:
    """Mean and variance per channel (batch_norm_mean_var)."""
    kind = implementation(x)
    if kind == CONTIGUOUS:
        flat, copies = with_one_inner_dim(x)
        yield from copies
        yield kernel(
            "batch_norm_collect_statistics_kernel", [flat], saved, because="one block per channel",
            grid=(x.shape[1], 1, 1), block=feature_block(flat.shape[2]),
        )  # fmt: skip
    elif kind == CHANNELS_LAST:
        yield from channels_last_reduce(
            "batch_norm_collect_statistics_channels_last_kernel", [x], saved, x
        )
    else:
        dims = [d for d in range(x.ndim) if d != 1]
        if x.dtype == "bfloat16":  # unlike float16 it has no reduction of its own to float
            x, casts = to(x, saved[0].dtype)
            yield from casts
        yield from reduce(
            saved, x, dims, target, per_thread=2, accumulator=16, because="variance and mean"
        )


def transform(
    out: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, stats: list[Tensor]
) -> Iterator[Launch]:
    """`(x - mean) * invstd * weight + bias` (batch_norm_elementwise)."""
    scales = [t for t in (weight, bias) if t is not None]
    kind = implementation(x)
    if kind == CONTIGUOUS:
        grid, block = transform_launch(x)
        yield kernel(
            "batch_norm_transform_input_kernel", [x, *stats, *scales], [out],
            because="normalizes a contiguous input", grid=grid, block=block,
        )  # fmt: skip
        return
    if kind == CHANNELS_LAST and out.stride == x.stride:
        grid, block = flexible(x, cooperative=False)
        yield kernel(
            "batch_norm_transform_input_channels_last_kernel", [x, *stats, *scales], [out],
            because="normalizes a channels-last input", grid=grid, block=block,
        )  # fmt: skip
        return
    acc = stats[0].dtype
    operands = []
    for t in (weight, bias):
        if t is None:
            t = contiguous(stats[0], shape=())
            yield from fill(t, because="stands for a missing weight or bias")
            operands.append(t)
        else:
            operands.append(per_channel(t, x.ndim))
    ins = [x, *operands, *(per_channel(t, x.ndim) for t in stats)]
    yield from elementwise([out], ins, compute=[x.dtype] + [acc] * 4, because="normalizes")


def backward_sums(
    outs: list[Tensor], grad: Tensor, x: Tensor, stats: list[Tensor], scales: list[Tensor]
) -> Iterator[Launch]:
    """Sums per channel that the gradients need (batch_norm_backward_reduce_cuda)."""
    if fits_32bit(grad) and is_channels_last(grad) and is_channels_last(x):
        yield from channels_last_reduce(
            "batch_norm_backward_reduce_channels_last_kernel", [x, grad, *stats], outs, x
        )
        return
    (flat, copies), (flat_grad, more) = with_one_inner_dim(x), with_one_inner_dim(grad)
    yield from [*copies, *more]
    y = min(_last_pow2(flat.shape[0]), _BLOCK // 32)
    threads = min(max(_threads(flat.shape[2]), 32), _BLOCK // y)
    yield kernel(
        "batch_norm_backward_reduce_kernel", [flat, flat_grad, *stats], outs,
        because="one block per channel", grid=(x.shape[1], 1, 1), block=(threads, y, 1),
    )  # fmt: skip


def backward_elements(
    grad_in: Tensor, grad: Tensor, x: Tensor, stats: list[Tensor], weight: Tensor | None,
    sums: list[Tensor],
) -> Iterator[Launch]:  # fmt: skip
    """The input's gradient in training (batch_norm_elementwise_backward_train)."""
    scales = [] if weight is None else [weight]
    kinds = {implementation(x), implementation(grad)}
    reads = [x, grad, *stats, *scales, *sums]
    if kinds == {CHANNELS_LAST}:
        grid, block = flexible(x, cooperative=False)
        yield kernel("batch_norm_backward_elemt_channels_last_kernel", reads, [grad_in],
                     grid=grid, block=block)  # fmt: skip
    elif kinds == {CONTIGUOUS}:
        grid, block = transform_launch(x)
        yield kernel("batch_norm_backward_elemt_kernel", reads, [grad_in], grid=grid, block=block)
    else:
        if weight is None:
            scale = contiguous(stats[0], shape=())
            yield from fill(scale, because="stands for the missing weight")
        else:
            scale = per_channel(weight, x.ndim)
        ins = [grad, x, scale, *(per_channel(t, x.ndim) for t in (*stats, sums[1], sums[0]))]
        compute = [grad.dtype, x.dtype] + [stats[0].dtype] * 5
        yield from elementwise([grad_in], ins, compute=compute, because="gradient")


def channels_last_reduce(
    name: str, reads: list[Tensor], outs: list[Tensor], x: Tensor
) -> Iterator[Launch]:
    """A reduction to channels; several rows of blocks meet in a workspace behind semaphores."""
    grid, block = flexible(x, cooperative=True)
    spare: list[Tensor] = []
    if grid[1] > 1:
        semaphores = workspace(grid[0], "int32")
        spare = [workspace(4 * x.shape[1] * grid[1], accumulates(x)), semaphores]
        yield from zero(semaphores, because="counts the blocks that share a channel")
    yield kernel(name, [*reads, *spare], [*outs, *spare], grid=grid, block=block,
                 because="blocks of channels that lie dense")  # fmt: skip


def flexible(x: Tensor, *, cooperative: bool) -> tuple[Dim3, Dim3]:
    """Block and grid for (rows, channels) matrices (flexible_launch_configs)."""
    channels = x.shape[1]
    rows = x.numel // channels
    block_x = min(_last_pow2(channels), _TILE_X)
    block_y = min(_last_pow2(-(-rows // _PER_THREAD)), _BLOCK // block_x)
    if block_x * block_y != _BLOCK:
        block_x = min(_last_pow2(channels), _BLOCK // block_y)
    grid_y = min(-(-rows // (block_y * _PER_THREAD)), _MOST_ROWS)
    if cooperative and grid_y < 8:
        grid_y = 1
    return (-(-channels // block_x), grid_y, 1), (block_x, block_y, 1)


def feature_block(features: int) -> Dim3:
    """Threads of a block that walks one channel."""
    threads = _threads(features)
    return (threads, max(1, _BLOCK // threads), 1)


def transform_launch(x: Tensor) -> tuple[Dim3, Dim3]:
    """Grid and block of the elementwise kernels over contiguous arrays."""
    batch, channels, features = x.shape[0], x.shape[1], prod(x.shape[2:])
    threads = max(_threads(features // 4), min(_threads(features), 64))
    rows = max(64 // threads, 1)
    grid_y = max(1, min(256 * 1024 // channels, -(-batch // rows)))
    return (channels, min(grid_y, 65535), 1), (threads, rows, 1)


def _threads(n: int) -> int:
    """The least of 32, 64 … 512 that covers `n` (getNumThreads)."""
    return next((t for t in (32, 64, 128, 256) if n <= t), _BLOCK)


def _last_pow2(n: int) -> int:
    return 1 << max(n.bit_length() - 1, 0)


def with_one_inner_dim(t: Tensor) -> tuple[Tensor, list[Launch]]:
    """`t.reshape(N, C, -1)`: a view if the inner dims lie as one, else a copy."""
    inner = prod(t.shape[2:])
    step, stride = 0, 1
    for size, st in reversed(list(zip(t.shape[2:], t.stride[2:], strict=True))):
        if size == 1:
            continue
        if step and st != step:
            dense, copies = compact(t)
            return with_one_inner_dim(dense)[0], copies
        stride = stride if step else st
        step = st * size
    return view(t, (*t.shape[:2], inner), (*t.stride[:2], stride)), []


def per_channel(t: Tensor, ndim: int) -> Tensor:
    """A vector as an array that broadcasts along all dims but the channels."""
    shape, stride = [1] * ndim, [0] * ndim
    shape[1], stride[1] = t.shape[0], t.stride[0]
    return view(t, shape, stride)


def accumulates(x: Tensor) -> str:
    """The dtype statistics of `x` are kept in."""
    return "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
