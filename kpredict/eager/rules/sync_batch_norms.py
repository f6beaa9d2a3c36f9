"""The parts of batch norm that SyncBatchNorm calls one by one.

Read: aten/src/ATen/native/cuda/Normalization.cu of release 2.6.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.channels import (
    backward_sums,
    channels_last_reduce,
    feature_block,
    flexible,
    is_channels_last,
    statistics,
    transform,
    transform_launch,
    with_one_inner_dim,
)
from kpredict.eager.copying import to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import kernel, memcpy, sync, workspace
from kpredict.eager.registry import rule
from kpredict.eager.shaping import fits_32bit
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten.batch_norm_stats", source="native/cuda/Normalization.cu batch_norm_stats_cuda; 2.6.0")
def batch_norm_stats(op: Op, target: Target) -> Iterable[Launch]:
    """Mean and inverse deviation per channel in one kernel, by layout."""
    x: Tensor = op["input"]
    saved = list(op.outputs)
    if fits_32bit(x) and is_channels_last(x):
        yield from channels_last_reduce(
            "batch_norm_collect_statistics_channels_last_kernel", [x], saved, x
        )
        return
    flat, copies = with_one_inner_dim(x)
    yield from copies
    yield kernel("batch_norm_collect_statistics_kernel", [flat], saved,
                 grid=(x.shape[1], 1, 1), block=feature_block(flat.shape[2]))  # fmt: skip


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
    if fits_32bit(grad) and is_channels_last(grad) and is_channels_last(x):
        grid, block = flexible(x, cooperative=False)
        yield kernel("batch_norm_backward_elemt_channels_last_kernel", [x, grad, *reads], [op.out],
                     grid=grid, block=block)  # fmt: skip
        return
    (flat, copies), (flat_grad, more) = with_one_inner_dim(x), with_one_inner_dim(grad)
    yield from [*copies, *more]
    grid, block = transform_launch(x)
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
