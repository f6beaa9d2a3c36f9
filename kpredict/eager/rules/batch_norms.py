"""PyTorch's own batch norm on CUDA; cuDNN's is another op.

Read: aten/src/ATen/native/cuda/Normalization.cu of release 2.6.0; the same in 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.channels import (
    accumulates,
    backward_elements,
    backward_sums,
    feature_block,
    is_channels_last,
    per_channel,
    statistics,
    transform,
    with_one_inner_dim,
)
from kpredict.eager.copying import copy, like, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.registry import rule
from kpredict.eager.shaping import fits_32bit
from kpredict.model import Launch, Op, Target, Tensor


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
    acc = accumulates(x)
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
    if op.overload != "out":
        out = replace(out, stride=like(x).stride)  # fake tensors may have laid it out otherwise
    yield from transform(out, x, op["weight"], op["bias"], saved)


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
    if reduces and wants[0] and not is_channels_last(x) and fits_32bit(x, grad):
        (flat, copies), (flat_grad, more) = with_one_inner_dim(x), with_one_inner_dim(grad)
        yield from [*copies, *more]
        yield kernel(
            "batch_norm_backward_kernel", [flat, flat_grad, *scales, *(stats or running)], written,
            because="one block per channel", grid=(x.shape[1], 1, 1),
            block=feature_block(flat.shape[2]),
        )  # fmt: skip
        return
    acc = accumulates(x)
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
    ins = [grad, per_channel(stats[1], x.ndim)]
    if weight is not None:
        ins.append(per_channel(weight, x.ndim))
    compute = [grad.dtype] + [acc] * (len(ins) - 1)
    yield from elementwise([outs[0]], ins, compute=compute, because="scales the gradient")


def _invert(out: Tensor, var: Tensor) -> list[Launch]:
    return elementwise(
        [out], [var], compute=var.dtype, result=out.dtype, because="inverts the deviation"
    )


def _same_memory(fresh: Tensor, output: object) -> Tensor:
    """`fresh` as the op's output, unless fake tensors gave that another shape."""
    if isinstance(output, Tensor) and output.shape == fresh.shape:
        return replace(fresh, storage=output.storage)
    return fresh
