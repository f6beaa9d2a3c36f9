"""Pooling to a given output size in 1 to 3 dims: average and max; both directions."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.copying import compact, copy, zero
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.registry import rule
from kpredict.eager.rules.pooling import planes, sliced
from kpredict.eager.shaping import (
    CHANNELS_LAST,
    suggested_format,
)
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten._adaptive_avg_pool2d", source="cuda/AdaptiveAveragePooling.cu; 2.6.0")
def adaptive_avg_pool2d(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for the memory format the input suggests; a contiguous copy of a strided batch."""
    x, out = op["self"], op.out
    if suggested_format(x) == CHANNELS_LAST:
        return [kernel("adaptive_average_pool_nhwc", [x], [out])] if out.numel else []
    copies: list[Launch] = []
    if x.ndim == 4:
        x, copies = compact(x)
    return [*copies, *([kernel("adaptive_average_pool", [x], [out])] if out.numel else [])]


@rule("aten._adaptive_avg_pool2d_backward", source="cuda/AdaptiveAveragePooling.cu; 2.6.0")
def adaptive_avg_pool2d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then one kernel: with atomic additions and a contiguous gradient for contiguous
    inputs, with any strides for channels last."""
    grad, out = op["grad_output"], op.out
    yield from zero(out, because="gradients are added up in it")
    if out.numel == 0:
        return
    if suggested_format(op["self"]) == CHANNELS_LAST:
        yield kernel("adaptive_average_gradinput_nhwc", [grad], [out])
        return
    grad, copies = compact(grad)
    yield from copies
    yield kernel("atomic_adaptive_average_gradinput", [grad], [out])


@rule("aten._adaptive_avg_pool3d", source="cuda/AdaptiveAveragePooling3d.cu; 2.6.0")
def adaptive_avg_pool3d(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous batch, then one kernel per 65,535 planes of the output."""
    return _adaptive_3d("adaptiveaveragepool", op, [op.out])


@rule("aten.adaptive_max_pool3d", source="cuda/AdaptiveMaxPooling3d.cu; 2.6.0")
def adaptive_max_pool3d(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous batch, then one kernel per 65,535 planes of the output."""
    return _adaptive_3d("adaptivemaxpool", op, list(op.outputs))


def _adaptive_3d(name: str, op: Op, outs: list[Tensor]) -> list[Launch]:
    x, copies = op["self"], list[Launch]()
    if x.ndim == 5:
        x, copies = compact(x)
    return [*copies, *sliced(name, planes(outs[0]) if x.numel else 0, [x], outs)]


@rule("aten._adaptive_avg_pool3d_backward", source="cuda/AdaptiveAveragePooling3d.cu; 2.6.0")
def adaptive_avg_pool3d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous gradient, zeros, then kernels over planes: of the gradient with atomic additions
    when a size does not divide, else of the input."""
    grad, copies = compact(op["grad_output"])
    yield from copies
    out = op.out
    yield from zero(out, because="gradients are added up in it")
    if _divides(out, grad):
        yield from sliced("adaptiveaveragegradinput", planes(out), [grad], [out])
    else:
        yield from sliced("atomicadaptiveaveragegradinput", planes(grad), [grad], [out])


@rule("aten.adaptive_max_pool3d_backward", source="cuda/AdaptiveMaxPooling3d.cu; 2.6.0")
def adaptive_max_pool3d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous gradient, zeros, then kernels over the gradient's planes, with atomic additions
    when a size does not divide."""
    if op["grad_output"].numel == 0:
        return
    grad, copies = compact(op["grad_output"])
    yield from copies
    yield from zero(op.out, because="elements that were not the largest have no gradient")
    name = "adaptivemaxgradinput" if _divides(op.out, grad) else "atomicadaptivemaxgradinput"
    yield from sliced(name, planes(grad), [grad, op["indices"]], [op.out])


def _divides(large: Tensor, small: Tensor) -> bool:
    return all(a % b == 0 for a, b in zip(large.shape[-3:], small.shape[-3:], strict=True))


@rule("aten.adaptive_max_pool2d", source="cuda/AdaptiveMaxPooling2d.cu; 2.6.0")
def adaptive_max_pool2d(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel on a contiguous batch; results in another format are copied there afterwards."""
    x = op["self"]
    if x.numel == 0:
        return
    if x.ndim == 4:
        x, copies = compact(x)
        yield from copies
    made = [t if t.is_contiguous else contiguous(t) for t in op.outputs]
    yield kernel("adaptivemaxpool", [x], made, because="values and indices")
    for out, t in zip(op.outputs, made, strict=True):
        if t is not out:
            yield from copy(out, t, because="back into the result's format")


@rule("aten.adaptive_max_pool2d_backward", source="cuda/AdaptiveMaxPooling2d.cu; 2.6.0")
def adaptive_max_pool2d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Contiguous gradient and indices, zeros, one kernel with atomic additions; a result in another
    format is copied there afterwards."""
    if op["grad_output"].numel == 0:
        return
    grad, copies = compact(op["grad_output"])
    yield from copies
    indices, copies = compact(op["indices"])
    yield from copies
    made = op.out if op.out.is_contiguous else contiguous(op.out)
    yield from zero(made, because="elements that were not the largest have no gradient")
    yield kernel("atomicadaptivemaxgradinput", [grad, indices], [made])
    if made is not op.out:
        yield from copy(op.out, made, because="back into the result's format")
