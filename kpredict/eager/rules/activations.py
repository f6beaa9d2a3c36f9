"""Activations, their backward passes, and pointwise ops of three operands.

Read: aten/src/ATen/native/Activation.cpp, Lerp.cpp, PointwiseOps.cpp, TensorCompare.cpp and
native/cuda/Activation*.cu, RreluWithNoise.cu of release 2.6.0; checked with torch 2.13.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.copying import compact, copy, expand, fill, read_by_host, to
from kpredict.eager.elementwise import blocks, elementwise
from kpredict.eager.generating import resident_blocks
from kpredict.eager.iterator import iterate
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.operands import narrow, one_pass, operands
from kpredict.eager.promoting import result_type
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_SOURCE = "native/Activation.cpp, native/cuda/Activation*.cu; 2.6.0"


@rule(
    "aten.elu", "aten.celu", "aten.gelu", "aten.hardshrink", "aten.hardsigmoid",
    "aten.hardswish", "aten.hardtanh", "aten.leaky_relu", "aten.log_sigmoid_forward", "aten.mish",
    "aten.silu", "aten.softplus", "aten.softshrink",
    source=_SOURCE,
)  # fmt: skip
def activation(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel over the input."""
    x = op["self"]
    return elementwise([op.out], [x], result=x.dtype)


@rule("aten.threshold", source=_SOURCE)
def threshold(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel whose two operands are both the input."""
    x = op["self"]
    return elementwise([op.out], [x, x], result=x.dtype, reads=[x])


@rule(
    "aten.elu_backward", "aten.gelu_backward", "aten.hardshrink_backward",
    "aten.hardsigmoid_backward", "aten.hardswish_backward", "aten.hardtanh_backward",
    "aten.mish_backward", "aten.silu_backward", "aten.softplus_backward",
    "aten.softshrink_backward",
    source=_SOURCE,
)  # fmt: skip
def activation_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that reads the gradient and what the forward pass kept."""
    ins = operands(op)
    return one_pass(op, result_type(ins))


@rule(
    "aten.leaky_relu_backward", "aten.threshold_backward", "aten.log_sigmoid_backward",
    source=_SOURCE,
)  # fmt: skip
def activation_backward_input_first(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; its iterator takes the saved input before the gradient."""
    grad, x = operands(op)[:2]
    dtype = result_type([x, grad])
    return elementwise([op.out], [x, grad], compute=dtype, result=dtype)


@rule("aten._prelu_kernel", source=_SOURCE)
def prelu(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel over the input and the broadcast weight."""
    return one_pass(op, op["self"].dtype)


@rule("aten._prelu_kernel_backward", source=_SOURCE)
def prelu_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel with two outputs: the gradients of the input and, yet to be summed, the weight."""
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    return elementwise(outs, [op["self"], op["weight"], op["grad_output"]])


@rule("aten.glu", source="native/GatedLinearUnit.cpp; 2.6.0")
def glu(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that reads both halves of the input."""
    x, dim = op["self"], op["dim"]
    half = x.shape[dim] // 2
    return elementwise([op.out], [narrow(x, dim, 0, half), narrow(x, dim, half, half)])


@rule("aten.glu_backward", source="native/cuda/Activation.cpp glu_backward_cuda; 2.6.0")
def glu_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel of its own over half of the input's elements, one thread each."""
    x, grad, out, dim = op["self"], op["grad_output"], op.out, op["dim"]
    half = x.shape[dim] // 2
    pieces = iterate([narrow(out, dim, 0, half)], [narrow(x, dim, 0, half), grad])
    if pieces.numel == 0:
        return
    for piece in pieces.pieces():
        yield kernel(
            "glu_backward_kernel", [grad, x], [out], grid=blocks(piece.numel, 1, 256),
            block=(256, 1, 1),
        )  # fmt: skip


@rule("aten.glu_jvp", source="native/GatedLinearUnit.cpp; 2.6.0")
def glu_jvp(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel over result, gate and both tangents."""
    x, tangent, dim = op["x"], op["dx"], op["dim"]
    half = x.shape[dim] // 2
    ins = [op["glu"], narrow(x, dim, half, half)]
    ins += [narrow(tangent, dim, 0, half), narrow(tangent, dim, half, half)]
    return elementwise([op.out], ins)


@rule("aten.rrelu_with_noise", source="native/cuda/RreluWithNoise.cu; 2.6.0")
def rrelu_with_noise(op: Op, target: Target) -> Iterable[Launch]:
    """In training one kernel of its own, on contiguous copies; else leaky ReLU."""
    x, out = op["self"], op.out
    if x.numel == 0:
        return
    if not op["training"]:
        yield from elementwise([out], [x], result=x.dtype)
        return
    source, copies = compact(x)
    yield from copies
    noise, copies = compact(op["noise"])
    yield from copies
    target_array, copies = compact(out)
    yield from copies
    yield kernel(
        "rrelu_with_noise_cuda_kernel", [source], [target_array, noise],
        grid=(resident_blocks(x.numel, target), 1, 1), block=(256, 1, 1),
    )  # fmt: skip
    if target_array is not out:
        yield from copy(out, target_array)


@rule("aten.rrelu_with_noise_backward", source=_SOURCE)
def rrelu_with_noise_backward(op: Op, target: Target) -> Iterable[Launch]:
    """In training the gradient times the noise; else leaky ReLU's."""
    first = op["noise"] if op["training"] else op["self"]
    return elementwise([op.out], [first, op["grad_output"]])


@rule(
    "aten.addcmul", "aten.addcdiv", "aten.lerp",
    source="native/PointwiseOps.cpp, native/Lerp.cpp; 2.6.0",
)  # fmt: skip
def three_operands(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel over all tensor operands, in the dtype they promote to. Of complex numbers the
    kernel is compiled at run time under a name of its own."""
    ins = operands(op)
    dtype = result_type(ins)
    jit = ""
    if dtype.startswith("complex"):
        scalar = "lerp" in op.name and not isinstance(op["weight"], Tensor)
        jit = {"addcmul": "addcmul", "addcdiv": "addcdiv"}.get(
            op.packet.removeprefix("aten.").rstrip("_"), "lerp_scalar" if scalar else "lerp_tensor"
        )
    return one_pass(op, dtype, jit=jit)


@rule("aten.clamp", "aten.clamp_min", "aten.clamp_max", source="native/TensorCompare.cpp; 2.6.0")
def clamp(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; a bound that promotes the input (a float bound of integers) costs a cast before.
    Bounds that are tensors are operands. A bound of NaN is a fill."""
    x, bounds = op["self"], [b for b in (op.get("min"), op.get("max")) if b is not None]
    if any(isinstance(b, Tensor) for b in bounds):
        dtype = result_type([x, *bounds])
        yield from elementwise([op.out], [x, *bounds], compute=dtype, result=dtype)
        return
    cast, casts = to(x, result_type([x, *bounds]))
    yield from casts
    if "clamp.default" in op.name and any(isinstance(b, float) and math.isnan(b) for b in bounds):
        yield from fill(op.out, because="a bound is NaN")
        return
    yield from elementwise([op.out], [cast], result=cast.dtype)


@rule("aten.where.self", "aten.where.self_out", source="native/TensorCompare.cpp; 2.6.0")
def where(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel over condition and both branches. A branch of another dtype is cast by a copy
    first, one on the host is copied over."""
    condition, sides = op["condition"], [op["self"], op["other"]]
    dtype = result_type(sides)
    ready = []
    for t in [condition, *sides]:
        wanted = "bool" if t is condition else dtype
        if t.dtype != wanted:
            t, casts = to(t, wanted)
            yield from casts
        if not t.is_cuda and op.out.is_cuda:
            moved = replace(contiguous(t), device="cuda")
            yield from copy(moved, t, because="a branch on the host moves to the GPU")
            t = moved
        ready.append(t)
    yield from elementwise([op.out], ready, compute=("bool", dtype, dtype))


@rule("aten.masked_fill", source="native/cuda/Indexing.cu masked_fill; 2.6.0")
def masked_fill(op: Op, target: Target) -> Iterable[Launch]:
    """In place: one kernel that reads array and mask. Out of place: a row-major copy of the
    broadcast input first. A value that is an array on the GPU is read by the host."""
    x, mask, value, out = op["self"], op["mask"], op["value"], op.out
    if not op.is_inplace:
        yield from copy(out, expand(x, out.shape), because="the result starts as a copy")
    if isinstance(value, Tensor):
        yield from read_by_host(value)
    if not mask.is_cuda:
        moved = replace(contiguous(mask), device="cuda")
        yield from copy(moved, mask)
        mask = moved
    mask = expand(mask, out.shape)
    yield from elementwise([out], [out, mask], compute=(out.dtype, mask.dtype))
