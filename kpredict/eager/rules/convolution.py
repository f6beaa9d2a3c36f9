"""Convolutions, forward and backward: which back end, the layout copies, the bias."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from kpredict.eager.convolving import (
    CUDNN,
    DEPTHWISE,
    EMPTY,
    Convolution,
    as_planes,
    in_layout,
    suggested_layout,
)
from kpredict.eager.copying import compact, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import accesses, kernel, library
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.eager.slow_convolving import slow_backward, slow_forward
from kpredict.eager.splitting import convolution_kernels
from kpredict.model import Kind, Launch, Op, Target, Tensor

_SOURCE = "aten/src/ATen/native/Convolution.cpp and cudnn/ConvShared.cpp, 2.6; ConvUtils.h, 2.13"


def _execute(
    direction: str, conv: Convolution, reads: list[Tensor], written: Tensor, layout: str,
    target: Target,
) -> Launch:  # fmt: skip
    """One cuDNN graph: "forward", "input gradient" or "weight gradient"."""
    count = convolution_kernels(direction, conv, layout, target)
    return library(
        "cudnnBackendExecute", reads, [written], lo=count.lo, hi=count.hi,
        expected=count.expected, because=count.because, flops=conv.flops,
    )  # fmt: skip


def _cudnn_forward(
    x: Tensor, weight: Tensor, out: Tensor, conv: Convolution, target: Target
) -> Iterator[Launch]:
    layout = suggested_layout(x, weight)
    x, copies = in_layout(x, layout)
    w, more = in_layout(weight, layout)
    yield from (*copies, *more)
    direction = "input gradient" if conv.transposed else "forward"
    yield _execute(direction, conv, [x, w], out, layout, target)


def _bias_over(bias: Tensor, ndim: int) -> Tensor:
    """The bias broadcast over batch and space: one element per channel."""
    return replace(
        bias, shape=(1, bias.shape[0]) + (1,) * (ndim - 2),
        stride=(0, bias.stride[0]) + (0,) * (ndim - 2),
    )  # fmt: skip


def _depthwise_name(weight: Tensor) -> str:
    """Filters of 1x1, 3x3 and 5x5 have kernels of their own (cuda/DepthwiseConv2d.cu, 2.6)."""
    if weight.ndim == 5:
        return "conv_depthwise3d_cuda_kernel"
    own = weight.shape[2:] in ((1, 1), (3, 3), (5, 5))
    return "conv_depthwise2d_forward_kernel" + ("" if own else "_generic")


@rule("aten.convolution", "aten._convolution", "aten.convolution_overrideable", source=_SOURCE)
def convolution(op: Op, target: Target) -> Iterable[Launch]:
    """cuDNN for what it takes, the bias added by a kernel of its own; copies where an operand is
    not in the common layout (channels-last if input or weight is). Depthwise: a kernel of
    PyTorch's own, cuDNN only for channels-last and for some half-precision sizes. bfloat16 before
    sm_80: im2col and a GEMM per sample."""
    x, weight, bias, out = op["input"], op["weight"], op["bias"], op.out
    if not x.is_cuda:
        return
    if weight.ndim == 3:
        x, copies = compact(x)
        yield from copies
        x, weight, out = as_planes(x), as_planes(weight), as_planes(out)
    conv = Convolution.of(op, x, weight, out, target)
    if conv.backend == EMPTY:
        yield from elementwise([out], [x])
        return
    if conv.backend == DEPTHWISE:
        x, copies = compact(x)
        w, more = compact(weight)
        yield from (*copies, *more)
        reads = [x, w] + ([bias] if bias is not None else [])
        yield replace(
            kernel(
                _depthwise_name(w),
                reads,
                [out],
                because="depthwise: PyTorch's own kernel, bias included",
            ),
            flops=conv.flops,
        )
    elif conv.backend == CUDNN:
        yield from _cudnn_forward(x, weight, out, conv, target)
        if bias is not None:
            yield from elementwise(
                [out], [out, _bias_over(bias, out.ndim)], because="cuDNN's result plus the bias"
            )
    else:
        yield from slow_forward(x, weight, bias, out, conv, target)


@rule("aten.cudnn_convolution", "aten.cudnn_convolution_transpose", source=_SOURCE)
def cudnn_convolution(op: Op, target: Target) -> Iterable[Launch]:
    """One cuDNN graph, after copies of operands that are not in the common layout."""
    x, weight, out = op["self"], op["weight"], op.out
    conv = Convolution.of(op, x, weight, out, target)
    return _cudnn_forward(x, weight, out, conv, target)


@rule("aten.cudnn_convolution_relu", "aten.cudnn_convolution_add_relu", source=_SOURCE)
def cudnn_convolution_relu(op: Op, target: Target) -> Iterable[Launch]:
    """One cuDNN graph with addend, bias and ReLU in it."""
    x, weight, out = op["self"], op["weight"], op.out
    conv = Convolution.of(op, x, weight, out, target)
    for launch in _cudnn_forward(x, weight, out, conv, target):
        more = accesses(t for t in (op["bias"], op.get("z")) if t is not None)
        library_call = launch.kind is Kind.LIBRARY
        yield replace(launch, reads=launch.reads + more) if library_call else launch


def _cudnn_backward(
    x: Tensor, grad: Tensor, weight: Tensor, dx: Tensor | None, dw: Tensor | None,
    conv: Convolution, target: Target,
) -> Iterator[Launch]:  # fmt: skip
    if dw is not None:  # the input is used only by the weight's gradient
        x, copies = in_layout(x, suggested_layout(x, weight))
        yield from copies
    grad, copies = in_layout(grad, suggested_layout(x, x))
    yield from copies
    if dx is not None:
        layout = suggested_layout(grad, weight)
        w, copies = in_layout(weight, layout)
        g, more = in_layout(grad, layout)
        yield from (*copies, *more)
        direction = "forward" if conv.transposed else "input gradient"
        yield _execute(direction, conv, [g, w], dx, layout, target)
    if dw is not None:
        layout = suggested_layout(x, grad)
        g, copies = in_layout(grad, layout)
        source, more = in_layout(x, layout)
        yield from (*copies, *more)
        yield _execute("weight gradient", conv, [g, source], dw, layout, target)


def _depthwise_backward(
    x: Tensor, grad: Tensor, weight: Tensor, dx: Tensor | None, dw: Tensor | None,
    conv: Convolution,
) -> Iterator[Launch]:  # fmt: skip
    grad, copies = compact(grad)
    yield from copies
    of_weight, of_input = "conv_depthwise2d_grad_weight_kernel", "conv_depthwise2d_backward_kernel"
    if x.ndim == 5:
        of_weight = "conv_depthwise3d_cuda_backward_weight_kernel"
        of_input = "conv_depthwise3d_cuda_backward_input_kernel"
    if dw is not None:
        source, copies = compact(x)
        yield from copies
        yield replace(kernel(of_weight, [grad, source], [dw]), flops=conv.flops)
    if dx is not None:
        w, copies = compact(weight)
        yield from copies
        yield replace(kernel(of_input, [grad, w], [dx]), flops=conv.flops)


@rule("aten.convolution_backward", source=_SOURCE)
def convolution_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One cuDNN graph for the input's gradient and one for the weight's, as asked for; the bias'
    gradient is a sum over grad_output. Copies bring grad_output into the input's layout."""
    grad, x, weight = op["grad_output"], op["input"], op["weight"]
    if not x.is_cuda:
        return
    wanted = op["output_mask"]
    dx, dw, db = (
        t if isinstance(t, Tensor) and asked else None
        for t, asked in zip(op.outputs, wanted, strict=True)
    )
    if weight.ndim == 3:
        x, copies = compact(x)
        yield from copies
        x, weight, grad = as_planes(x), as_planes(weight), as_planes(grad)
        dx, dw = (t if t is None else as_planes(t) for t in (dx, dw))
    conv = Convolution.of(op, x, weight, grad, target)
    if conv.backend == EMPTY:
        for t in (dx, dw, db):
            yield from zero(t) if t is not None else []
        return
    if conv.backend == DEPTHWISE:
        yield from _depthwise_backward(x, grad, weight, dx, dw, conv)
    elif conv.backend == CUDNN:
        yield from _cudnn_backward(x, grad, weight, dx, dw, conv, target)
    else:
        yield from slow_backward(x, grad, weight, dx, dw, db, conv, target)
        return
    if db is not None and prod(grad.shape):
        dims = [d for d in range(grad.ndim) if d != 1]
        yield from reduce([db], grad, dims, target, because="the bias' gradient")
