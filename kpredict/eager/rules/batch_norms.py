"""PyTorch's own batch norm on CUDA (cuDNN's is another op), and the parts SyncBatchNorm calls.

Read: aten/src/ATen/native/cuda/Normalization.cu (2.6.0) and Normalization.cuh (2.13.0 headers).
Three implementations, by layout: contiguous (N, C, *), channels last (and (N, C) matrices), and a
general one from reductions and elementwise passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from kpredict.eager.copying import compact, copy, fill, to, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.operands import view
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.eager.rules.reductions import HALVES
from kpredict.eager.shaping import fits_32bit
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_BLOCK = 512
_TILE_X = 32
_PER_THREAD = 16
_MOST_ROWS = 128

CONTIGUOUS, CHANNELS_LAST, GENERAL = "contiguous", "channels last", "general"


@rule(
    "aten.native_batch_norm", "aten._native_batch_norm_legit",
    source="native/cuda/Normalization.cu batch_norm_cuda_out; 2.6.0",
)  # fmt: skip
def batch_norm(op: Op, target: Target) -> Iterable[Launch]:
    """Training: statistics, then one small pass that updates the running ones and inverts the
    deviation, then the transform: three kernels. Evaluation: a copy of the running mean, a small
    pass, the transform. Channels last adds a fill of semaphores for tall inputs."""
    x: Tensor = op["input"]
    out = op.out
    mean, var = op.get("running_mean"), op.get("running_var")
    acc = _accumulates(x)
    saved = [contiguous(x, shape=(x.shape[1],), dtype=acc) for _ in range(2)]
    saved = [_same_memory(s, t) for s, t in zip(saved, op.outputs[1:], strict=False)]
    if x.numel == 0:
        return
    if op["training"]:
        yield from statistics(saved, x, target)
        if mean is not None:
            compute = [acc, acc, mean.dtype, var.dtype]
            yield from elementwise(
                [mean, var, saved[1]], [saved[0], saved[1], mean, var], compute=compute,
                because="updates the running statistics and inverts the deviation",
            )  # fmt: skip
        else:
            yield from _invert(saved[1], saved[1])
    else:
        yield from copy(saved[0], mean)
        yield from _invert(saved[1], var)
    yield from transform(out, x, op["weight"], op["bias"], saved)


def statistics(saved: list[Tensor], x: Tensor, target: Target) -> Iterator[Launch]:
    """Mean and variance per channel (batch_norm_mean_var)."""
    kind = implementation(x)
    if kind == CONTIGUOUS:
        flat, copies = _with_one_inner_dim(x)
        yield from copies
        yield kernel(
            "batch_norm_collect_statistics_kernel", [flat], saved, because="one block per channel",
            grid=(x.shape[1], 1, 1), block=_feature_block(flat.shape[2]),
        )  # fmt: skip
    elif kind == CHANNELS_LAST:
        yield from _channels_last_reduce(
            "batch_norm_collect_statistics_channels_last_kernel", [x], saved, x
        )
    else:
        dims = [d for d in range(x.ndim) if d != 1]
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
        grid, block = _transform_launch(x)
        yield kernel(
            "batch_norm_transform_input_kernel", [x, *stats, *scales], [out],
            because="normalizes a contiguous input", grid=grid, block=block,
        )  # fmt: skip
        return
    if kind == CHANNELS_LAST and out.stride == x.stride:
        grid, block = _flexible(x, cooperative=False)
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
            operands.append(_per_channel(t, x.ndim))
    ins = [x, *operands, *(_per_channel(t, x.ndim) for t in stats)]
    yield from elementwise([out], ins, compute=[x.dtype] + [acc] * 4, because="normalizes")


@rule("aten.native_batch_norm_backward",
      source="native/cuda/Normalization.cu batch_norm_backward_cuda; 2.6.0")  # fmt: skip
def batch_norm_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One fused kernel, a block per channel, unless the input is channels last or too large for 32
    bits, or only part is asked for: then a reduction and an elementwise pass, each a kernel of its
    own for channels last when the gradient is so too."""
    grad, x, weight = op["grad_out"], op["input"], op["weight"]
    wants = op["output_mask"]
    train = op["train"]
    outs = [t if isinstance(t, Tensor) else None for t in op.outputs]
    if x.numel == 0:
        return
    reduces = train or wants[1] or wants[2]
    stats = [t for t in (op["save_mean"], op["save_invstd"]) if t is not None and t.numel]
    running = [t for t in (op["running_mean"], op["running_var"]) if t is not None]
    written = [t for t in outs if t is not None]
    scales = [] if weight is None else [weight]
    if reduces and wants[0] and not _is_channels_last(x) and fits_32bit(x, grad):
        (flat, copies), (flat_grad, more) = _with_one_inner_dim(x), _with_one_inner_dim(grad)
        yield from [*copies, *more]
        yield kernel(
            "batch_norm_backward_kernel", [flat, flat_grad, *scales, *(stats or running)], written,
            because="one block per channel", grid=(x.shape[1], 1, 1),
            block=_feature_block(flat.shape[2]),
        )  # fmt: skip
        return
    acc = _accumulates(x)
    if len(stats) < 2:
        mean, casts = to(op["running_mean"], acc)
        yield from casts if reduces else ()
        invstd = contiguous(x, shape=(x.shape[1],), dtype=acc)
        yield from _invert(invstd, op["running_var"])
        stats = [mean, invstd]
    sums = [contiguous(stats[0]) for _ in range(2)]
    if reduces:
        kept = [t for t in outs[1:] if t is not None]
        yield from backward_sums([*sums, *kept], grad, x, stats, scales)
    if outs[0] is None or not wants[0]:
        return
    if train:
        yield from backward_elements(outs[0], grad, x, stats, weight, sums)
        return
    ins = [grad, _per_channel(stats[1], x.ndim)]
    if weight is not None:
        ins.append(_per_channel(weight, x.ndim))
    compute = [grad.dtype] + [acc] * (len(ins) - 1)
    yield from elementwise([outs[0]], ins, compute=compute, because="scales the gradient")


def backward_sums(
    outs: list[Tensor], grad: Tensor, x: Tensor, stats: list[Tensor], scales: list[Tensor]
) -> Iterator[Launch]:
    """Sums per channel that the gradients need (batch_norm_backward_reduce_cuda)."""
    if fits_32bit(grad) and _is_channels_last(grad) and _is_channels_last(x):
        yield from _channels_last_reduce(
            "batch_norm_backward_reduce_channels_last_kernel", [x, grad, *stats], outs, x
        )
        return
    (flat, copies), (flat_grad, more) = _with_one_inner_dim(x), _with_one_inner_dim(grad)
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
        grid, block = _flexible(x, cooperative=False)
        yield kernel("batch_norm_backward_elemt_channels_last_kernel", reads, [grad_in],
                     grid=grid, block=block)  # fmt: skip
    elif kinds == {CONTIGUOUS}:
        grid, block = _transform_launch(x)
        yield kernel("batch_norm_backward_elemt_kernel", reads, [grad_in], grid=grid, block=block)
    else:
        if weight is None:
            scale = contiguous(stats[0], shape=())
            yield from fill(scale, because="stands for the missing weight")
        else:
            scale = _per_channel(weight, x.ndim)
        ins = [grad, x, scale, *(_per_channel(t, x.ndim) for t in (*stats, sums[1], sums[0]))]
        compute = [grad.dtype, x.dtype] + [stats[0].dtype] * 5
        yield from elementwise([grad_in], ins, compute=compute, because="gradient")


@rule("aten.batch_norm_stats", source="native/cuda/Normalization.cu batch_norm_stats_cuda; 2.6.0")
def batch_norm_stats(op: Op, target: Target) -> Iterable[Launch]:
    """Mean and inverse deviation per channel in one kernel, by layout."""
    x: Tensor = op["input"]
    saved = list(op.outputs)
    if fits_32bit(x) and _is_channels_last(x):
        yield from _channels_last_reduce(
            "batch_norm_collect_statistics_channels_last_kernel", [x], saved, x
        )
        return
    flat, copies = _with_one_inner_dim(x)
    yield from copies
    yield kernel("batch_norm_collect_statistics_kernel", [flat], saved,
                 grid=(x.shape[1], 1, 1), block=_feature_block(flat.shape[2]))  # fmt: skip


@rule("aten.batch_norm_elemt", source="native/cuda/Normalization.cu batch_norm_elemt_cuda; 2.6.0")
def batch_norm_elemt(op: Op, target: Target) -> Iterable[Launch]:
    """The transform of batch norm, with statistics given."""
    return transform(op.out, op["input"], op["weight"], op["bias"], [op["mean"], op["invstd"]])


@rule("aten.batch_norm_gather_stats", "aten.batch_norm_gather_stats_with_counts",
      source="native/cuda/Normalization.cu batch_norm_gather_stats_cuda; 2.6.0")  # fmt: skip
def batch_norm_gather_stats(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; a count given as a number is sent to the GPU first and cast."""
    counts = op.get("counts")
    if counts is None:
        n = op["mean"].shape[0]
        sent, host = workspace(n, "int64"), Tensor((n,), (1,), "int64", "cpu")
        yield memcpy("HtoD", host, sent, because="the count of each process")
        yield sync("the copy comes from pageable memory")
        like_type = op["running_mean"] if op["running_mean"] is not None else op["input"]
        counts, casts = to(sent, like_type.dtype)
        yield from casts
    running = [t for t in (op["running_mean"], op["running_var"]) if t is not None]
    yield kernel(
        "batch_norm_reduce_statistics_kernel", [op["mean"], op["invstd"], counts, *running],
        [*op.outputs, *running],
    )  # fmt: skip


@rule("aten.batch_norm_backward_reduce",
      source="native/cuda/Normalization.cu batch_norm_backward_reduce_cuda; 2.6.0")  # fmt: skip
def batch_norm_backward_reduce(op: Op, target: Target) -> Iterable[Launch]:
    """The sums of the backward in one kernel, by layout."""
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    scales = [] if op["weight"] is None else [op["weight"]]
    stats = [op["mean"], op["invstd"]]
    return backward_sums(outs, op["grad_out"], op["input"], stats, scales)


@rule("aten.batch_norm_backward_elemt",
      source="native/cuda/Normalization.cu batch_norm_backward_elemt_cuda; 2.6.0")  # fmt: skip
def batch_norm_backward_elemt(op: Op, target: Target) -> Iterable[Launch]:
    """The input's gradient in one kernel, by layout."""
    grad, x = op["grad_out"], op["input"]
    scales = [] if op["weight"] is None else [op["weight"]]
    reads = [op["mean"], op["invstd"], *scales, op["sum_dy"], op["sum_dy_xmu"], op["count"]]
    if fits_32bit(grad) and _is_channels_last(grad) and _is_channels_last(x):
        grid, block = _flexible(x, cooperative=False)
        yield kernel("batch_norm_backward_elemt_channels_last_kernel", [x, grad, *reads], [op.out],
                     grid=grid, block=block)  # fmt: skip
        return
    (flat, copies), (flat_grad, more) = _with_one_inner_dim(x), _with_one_inner_dim(grad)
    yield from [*copies, *more]
    grid, block = _transform_launch(x)
    yield kernel("batch_norm_backward_elemt_kernel", [flat, flat_grad, *reads], [op.out],
                 grid=grid, block=block)  # fmt: skip


@rule("aten.batch_norm_update_stats",
      source="native/cuda/Normalization.cu batch_norm_update_stats_cuda; 2.6.0")  # fmt: skip
def batch_norm_update_stats(op: Op, target: Target) -> Iterable[Launch]:
    """Statistics, then one small pass that updates the running ones."""
    x: Tensor = op["input"]
    saved = list(op.outputs)
    yield from statistics(saved, x, target)
    mean, var = op["running_mean"], op["running_var"]
    if mean is not None:
        compute = [saved[0].dtype, saved[1].dtype, mean.dtype, var.dtype]
        yield from elementwise([mean, var], [*saved, mean, var], compute=compute)


def implementation(x: Tensor) -> str:
    """Which of three (batch_norm_choose_impl)."""
    if not fits_32bit(x):
        return GENERAL
    if x.is_contiguous:
        return CHANNELS_LAST if x.stride[1] == 1 else CONTIGUOUS
    return CHANNELS_LAST if x.ndim == 4 and x.is_channels_last else GENERAL


def _is_channels_last(x: Tensor) -> bool:
    return x.is_channels_last or (x.is_contiguous and x.stride[1] == 1)


def _channels_last_reduce(
    name: str, reads: list[Tensor], outs: list[Tensor], x: Tensor
) -> Iterator[Launch]:
    """A reduction to channels; several rows of blocks meet in a workspace behind semaphores."""
    grid, block = _flexible(x, cooperative=True)
    spare: list[Tensor] = []
    if grid[1] > 1:
        semaphores = workspace(grid[0], "int32")
        spare = [workspace(4 * x.shape[1] * grid[1], _accumulates(x)), semaphores]
        yield from zero(semaphores, because="counts the blocks that share a channel")
    yield kernel(name, [*reads, *spare], [*outs, *spare], grid=grid, block=block,
                 because="blocks of channels that lie dense")  # fmt: skip


def _flexible(x: Tensor, *, cooperative: bool) -> tuple[Dim3, Dim3]:
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


def _feature_block(features: int) -> Dim3:
    threads = _threads(features)
    return (threads, max(1, _BLOCK // threads), 1)


def _transform_launch(x: Tensor) -> tuple[Dim3, Dim3]:
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


def _with_one_inner_dim(t: Tensor) -> tuple[Tensor, list[Launch]]:
    """`t.reshape(N, C, -1)`: a view if the inner dims lie as one, else a copy."""
    inner = prod(t.shape[2:])
    step, stride = 0, 1
    for size, st in reversed(list(zip(t.shape[2:], t.stride[2:], strict=True))):
        if size == 1:
            continue
        if step and st != step:
            dense, copies = compact(t)
            return _with_one_inner_dim(dense)[0], copies
        stride = stride if step else st
        step = st * size
    return view(t, (*t.shape[:2], inner), (*t.stride[:2], stride)), []


def _per_channel(t: Tensor, ndim: int) -> Tensor:
    """A vector as an array that broadcasts along all dims but the channels."""
    shape, stride = [1] * ndim, [0] * ndim
    shape[1], stride[1] = t.shape[0], t.stride[0]
    return view(t, shape, stride)


def _invert(out: Tensor, var: Tensor) -> list[Launch]:
    return elementwise(
        [out], [var], compute=var.dtype, result=out.dtype, because="inverts the deviation"
    )


def _accumulates(x: Tensor) -> str:
    return "float32" if x.dtype in HALVES else x.dtype


def _same_memory(fresh: Tensor, output: object) -> Tensor:
    """`fresh` as the op's output, unless fake tensors gave that another shape."""
    if isinstance(output, Tensor) and output.shape == fresh.shape:
        return replace(fresh, storage=output.storage)
    return fresh
