"""Pooling in 1 to 3 dims: max, average, fractional, unpooling; both directions."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.copying import compact, zero
from kpredict.eager.launches import Array, kernel
from kpredict.eager.registry import rule
from kpredict.eager.shaping import (
    CHANNELS_LAST,
    CHANNELS_LAST_3D,
    CONTIGUOUS,
    formatted,
    is_dense_in,
    suggested_format,
    unsqueeze,
)
from kpredict.model import Launch, Op, Target, Tensor

GRID_LIMIT = 65535
"""Blocks along z of one launch of the 3-D kernels; more planes take more launches."""


def sliced(
    name: str, count: int, reads: Iterable[Array], writes: Iterable[Array], limit: int = GRID_LIMIT
) -> list[Launch]:
    """One launch per `limit` planes."""
    launches = -(-count // limit)
    why = f"{launches} launches of at most {limit} planes" if launches > 1 else ""
    return [kernel(name, reads, writes, because=why) for _ in range(launches)]


@rule("aten.max_pool2d_with_indices", source="cuda/DilatedMaxPool2d.cu; 2.6.0")
def max_pool2d(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for the memory format the input suggests (`nchw` or `nhwc`), after a copy when the
    input is not dense in it."""
    if op.out.numel == 0:
        return []
    memory_format = suggested_format(op["self"])
    x, copies = formatted(op["self"], memory_format)
    name = f"max_pool_forward_{_letters(memory_format)}"
    return [*copies, kernel(name, [x], op.outputs, because="values and indices")]


@rule("aten.max_pool2d_with_indices_backward", source="cuda/DilatedMaxPool2d.cu; 2.6.0")
def max_pool2d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Input, gradient and indices in the input's format, zeros, one kernel."""
    if op["grad_output"].numel == 0:
        return
    memory_format = suggested_format(op["self"])
    ready: list[Tensor] = []
    for name in ("self", "grad_output", "indices"):
        t, copies = formatted(op[name], memory_format)
        ready.append(t)
        yield from copies
    yield from zero(op.out, because="elements that were not the largest have no gradient")
    yield kernel(f"max_pool_backward_{_letters(memory_format)}", ready[1:], [op.out])


def _letters(memory_format: str) -> str:
    return "nhwc" if memory_format == CHANNELS_LAST else "nchw"


@rule("aten.max_pool3d_with_indices", source="cuda/DilatedMaxPool3d.cu; 2.6.0")
def max_pool3d(op: Op, target: Target) -> Iterable[Launch]:
    """The input dense in its format (a copy if not), then one kernel per 65,535 planes of the
    output, 64 times as many when channels are last."""
    x, memory_format = _spatial_last(op["self"])
    if x.numel == 0:
        return []
    x, copies = formatted(x, memory_format)
    return [
        *copies,
        *sliced(
            "max_pool3d_with_indices_single_out_frame", planes(op.out), [x], op.outputs,
            _per_launch(memory_format),
        ),
    ]  # fmt: skip


@rule("aten.max_pool3d_with_indices_backward", source="cuda/DilatedMaxPool3d.cu; 2.6.0")
def max_pool3d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, gradient and indices in the input's format, then kernels as in the forward."""
    yield from zero(op.out, because="elements that were not the largest have no gradient")
    grad, indices = op["grad_output"], op["indices"]
    if grad.numel == 0:
        return
    _, memory_format = _spatial_last(op["self"])
    count = planes(grad)
    if memory_format != CONTIGUOUS and grad.ndim == 4:
        grad, indices = unsqueeze(grad, 0), unsqueeze(indices, 0)
    grad, copies = formatted(grad, memory_format)
    yield from copies
    indices, copies = formatted(indices, memory_format)
    yield from copies
    yield from sliced(
        "max_pool3d_with_indices_backward_single_out_frame", count, [grad, indices], [op.out],
        _per_launch(memory_format),
    )  # fmt: skip


def _spatial_last(x: Tensor) -> tuple[Tensor, str]:
    """A 5-D view and its format; an unbatched input counts as channels last only when it is dense
    that way and not contiguous."""
    if x.ndim == 5:
        return x, suggested_format(x) if suggested_format(x) == CHANNELS_LAST_3D else CONTIGUOUS
    batch = unsqueeze(x, 0)
    if not batch.is_contiguous and is_dense_in(batch, CHANNELS_LAST_3D):
        return batch, CHANNELS_LAST_3D
    return x, CONTIGUOUS


def _per_launch(memory_format: str) -> int:
    return GRID_LIMIT * (64 if memory_format == CHANNELS_LAST_3D else 1)


def planes(t: Tensor) -> int:
    """Everything but height and width: batches, channels and frames."""
    n = 1
    for size in t.shape[:-2]:
        n *= size
    return n


@rule("aten.avg_pool2d", source="cuda/AveragePool2d.cu; 2.6.0")
def avg_pool2d(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for the memory format the input suggests, after a copy when it is not dense."""
    memory_format = suggested_format(op["self"])
    x, copies = formatted(op["self"], memory_format)
    return [*copies, *_avg2d("avg_pool2d_out_cuda_frame", memory_format, x, op.out)]


@rule("aten.avg_pool2d_backward", source="cuda/AveragePool2d.cu; 2.6.0")
def avg_pool2d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Input and gradient in the input's format, then one kernel that writes every element."""
    memory_format = suggested_format(op["self"])
    _, copies = formatted(op["self"], memory_format)
    yield from copies
    grad, copies = formatted(op["grad_output"], memory_format)
    yield from copies
    yield from _avg2d("avg_pool2d_backward_out_cuda_frame", memory_format, grad, op.out)


def _avg2d(name: str, memory_format: str, x: Tensor, out: Tensor) -> list[Launch]:
    if out.numel == 0:
        return []
    return [kernel(f"{name}_nhwc" if memory_format == CHANNELS_LAST else name, [x], [out])]


@rule("aten.avg_pool3d", source="cuda/AveragePool3d.cu; 2.6.0")
def avg_pool3d(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous input, then one kernel per 65,535 planes of the output."""
    x, copies = compact(op["self"])
    return [
        *copies, *sliced("avg_pool3d_cuda_update_output", planes(op.out), [x], [op.out])
    ]  # fmt: skip


@rule("aten.avg_pool3d_backward", source="cuda/AveragePool3d.cu; 2.6.0")
def avg_pool3d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros and a contiguous gradient, then kernels over planes: of the input when stride is 1 and
    padding 0, else of the gradient, with atomic additions where windows overlap."""
    out = op.out
    yield from zero(out, because="elements no window covers have no gradient")
    grad, copies = compact(op["grad_output"])
    yield from copies
    size = _triple(op["kernel_size"])
    stride = _triple(op["stride"]) if op["stride"] else size
    if stride == (1, 1, 1) and not any(op["padding"]):
        name = "avg_pool3d_single_backward_out_frame_stride1"
        yield from sliced(name, planes(out), [grad], [out])
        return
    name = "avg_pool3d_cuda_update_grad_input"
    if any(s < k for s, k in zip(stride, size, strict=True)):
        name += "_atomic"
    yield from sliced(name, planes(grad), [grad], [out])


def _triple(value: tuple[int, ...]) -> tuple[int, ...]:
    return value * 3 if len(value) == 1 else value


@rule(
    "aten.fractional_max_pool2d", "aten.fractional_max_pool3d",
    source="cuda/FractionalMaxPool2d.cu, FractionalMaxPool3d.cu; 2.6.0",
)  # fmt: skip
def fractional_max_pool(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel, any strides."""
    name = "fractional_max_pool2d_out_cuda_frame"
    if op.packet.endswith("3d"):
        name = "fractional_max_pool3d_out_frame"
    if op.out.numel == 0:
        return []
    return [kernel(name, [op["self"], op["random_samples"]], op.outputs)]


@rule(
    "aten.fractional_max_pool2d_backward", "aten.fractional_max_pool3d_backward",
    source="cuda/FractionalMaxPool2d.cu, FractionalMaxPool3d.cu; 2.6.0",
)  # fmt: skip
def fractional_max_pool_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then one kernel with atomic additions."""
    if op.out.numel == 0:
        return
    yield from zero(op.out, because="elements that were not the largest have no gradient")
    name = "fractional_max_pool2d_backward_out_cuda_frame"
    if "3d" in op.packet:
        name = "fractional_max_pool3d_backward_out_frame"
    yield kernel(name, [op["grad_output"], op["indices"]], [op.out])


@rule("aten.max_unpool2d", "aten.max_unpool3d", source="cuda/MaxUnpooling.cu; 2.6.0")
def max_unpool(op: Op, target: Target) -> Iterable[Launch]:
    """Contiguous input and indices, zeros, then one kernel; in 3-D one per 65,535 planes."""
    x, copies = compact(op["self"])
    yield from copies
    indices, copies = compact(op["indices"])
    yield from copies
    out = op.out
    yield from zero(out, because="zeros where nothing is put back")
    if x.numel == 0:
        return
    if op.packet.endswith("2d"):
        yield kernel("max_unpooling2d_forward_kernel", [x, indices], [out])
    else:
        yield from sliced("max_unpooling3d_forward_kernel", planes(x), [x, indices], [out])
