"""interpolate / upsample: nearest, linear, cubic and anti-aliased, 1 to 3 dims, both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpredict.eager.copying import compact, copy, zero
from kpredict.eager.gemm import release
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.registry import rule
from kpredict.eager.shaping import CHANNELS_LAST, formatted, is_dense_in, suggested_format
from kpredict.model import Launch, Op, Target, Tensor

SMALL_CUBIC = 18432
"""Output pixels up to which bicubic spreads batches and channels over blocks."""


def _kind(op: Op) -> str:
    """`upsample_nearest2d` of `aten._upsample_nearest_exact2d_backward.default`."""
    name = op.packet.removeprefix("aten.").lstrip("_").replace("_exact", "").removesuffix("_aa")
    return name.removesuffix("_backward")


def _back(out: Tensor, made: Tensor) -> list[Launch]:
    """A result the kernel could not write in its format is copied there."""
    return [] if made is out else copy(out, made, because="back into the result's format")


def _dense(t: Tensor) -> Tensor:
    return t if t.is_contiguous else contiguous(t)


@rule(
    "aten.upsample_nearest1d", "aten._upsample_nearest_exact1d",
    "aten.upsample_nearest3d", "aten._upsample_nearest_exact3d",
    source="cuda/UpSampleNearest1d.cu, UpSampleNearest3d.cu; 2.6.0",
)  # fmt: skip
def nearest(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous input, one kernel, and a copy when the result is in another format."""
    x, copies = compact(op["self"])
    made = _dense(op.out)
    if x.numel == 0:
        return copies
    return [*copies, kernel(f"{_kind(op)}_out_frame", [x], [made]), *_back(op.out, made)]


@rule(
    "aten.upsample_nearest1d_backward", "aten._upsample_nearest_exact1d_backward",
    "aten.upsample_nearest3d_backward", "aten._upsample_nearest_exact3d_backward",
    source="cuda/UpSampleNearest1d.cu, UpSampleNearest3d.cu; 2.6.0",
)  # fmt: skip
def nearest_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous gradient, then one kernel that writes every element."""
    grad, copies = compact(op["grad_output"])
    if op.out.numel == 0:
        return copies
    return [*copies, kernel(f"{_kind(op)}_backward_out_frame", [grad], [op.out])]


@rule(
    "aten.upsample_nearest2d", "aten._upsample_nearest_exact2d",
    source="cuda/UpSampleNearest2d.cu; 2.6.0",
)  # fmt: skip
def nearest2d(op: Op, target: Target) -> Iterable[Launch]:
    """A copy for equal sizes; the `nhwc` kernel for channels last with at least 4 channels; else
    one kernel on contiguous arrays."""
    return _two_d(op["self"], op.out, "upsample_nearest2d{}_out_frame", 4)


@rule(
    "aten.upsample_nearest2d_backward", "aten._upsample_nearest_exact2d_backward",
    source="cuda/UpSampleNearest2d.cu; 2.6.0",
)  # fmt: skip
def nearest2d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """As the forward direction, by the gradient's format; nothing is set to zero."""
    return _two_d(op["grad_output"], op.out, "upsample_nearest2d_backward{}_out_frame", 4)


def _two_d(x: Tensor, out: Tensor, name: str, channels: int) -> Iterator[Launch]:
    if out.numel == 0 or x.numel == 0:
        return
    if x.shape == out.shape:
        yield from copy(out, x, because="sizes are equal")
    elif _channels_last(x, out, channels):
        x, copies = formatted(x, CHANNELS_LAST)
        yield from copies
        yield kernel(name.format("_nhwc"), [x], [out], because="channels last")
    else:
        made = _dense(out)
        x, copies = compact(x)
        yield from copies
        yield kernel(name.format(""), [x], [made])
        yield from _back(out, made)


def _channels_last(x: Tensor, out: Tensor, channels: int) -> bool:
    return (
        suggested_format(x) == CHANNELS_LAST
        and out.shape[1] >= channels
        and is_dense_in(out, CHANNELS_LAST)
    )


@rule("aten.upsample_bilinear2d", source="cuda/UpSampleBilinear2d.cu; 2.6.0, main of 2026")
def bilinear2d(op: Op, target: Target) -> Iterable[Launch]:
    """A copy for equal sizes; the `nhwc` kernel for channels last with at least 16 channels; else
    one kernel, any strides."""
    x, out = op["self"], op.out
    if x.shape == out.shape:
        return copy(out, x, because="sizes are equal")
    if _channels_last(x, out, 16):
        x, copies = formatted(x, CHANNELS_LAST)
        name = "upsample_bilinear2d_nhwc_out_frame"
        return [*copies, kernel(name, [x], [out], because="channels last")]
    return [kernel("upsample_bilinear2d_out_frame", [x], [out])]


@rule("aten.upsample_bilinear2d_backward", source="cuda/UpSampleBilinear2d.cu; 2.6.0")
def bilinear2d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then a copy for equal sizes; else one kernel with atomic additions: `nhwc` for a
    channels-last gradient with at least 4 channels, or on contiguous arrays."""
    grad, out = op["grad_output"], op.out
    if out.numel == 0:
        return
    yield from zero(out, because="gradients are added up in it")
    if grad.shape == out.shape:
        yield from copy(out, grad, because="sizes are equal")
    elif _channels_last(grad, out, 4):
        grad, copies = formatted(grad, CHANNELS_LAST)
        yield from copies
        yield kernel("upsample_bilinear2d_backward_nhwc_out_frame", [grad], [out])
    else:
        made = _dense(out)
        if made is not out:
            yield from zero(made, because="a contiguous one to add up in")
        grad, copies = compact(grad)
        yield from copies
        yield kernel("upsample_bilinear2d_backward_out_frame", [grad], [made])
        yield from _back(out, made)


@rule(
    "aten.upsample_linear1d", "aten.upsample_bicubic2d",
    source="cuda/UpSampleLinear1d.cu, UpSampleBicubic2d.cu; 2.6.0, main of 2026",
)  # fmt: skip
def linear1d_bicubic2d(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel, any strides; before torch 2.14 the result is set to zero first. Bicubic spreads
    up to 18,432 output pixels over more blocks (`_parallel`, since 2.13)."""
    x, out = op["self"], op.out
    if release(target) < (2, 14):
        yield from zero(out, because="set to zero, although every element is written")
    name = f"{_kind(op)}_out_frame"
    few = out.shape[-1] * out.shape[-2] <= SMALL_CUBIC and x.shape[0] * x.shape[1] > 0
    if "cubic" in name and few and release(target) >= (2, 13):
        name += "_parallel"
    yield kernel(name, [x], [out])


@rule("aten.upsample_trilinear3d", source="cuda/UpSampleTrilinear3d.cu; 2.6.0")
def trilinear3d(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel, any strides."""
    return [kernel("upsample_trilinear3d_out_frame", [op["self"]], [op.out])]


@rule(
    "aten.upsample_linear1d_backward", "aten.upsample_bicubic2d_backward",
    "aten.upsample_trilinear3d_backward",
    source="cuda/UpSampleLinear1d.cu, UpSampleBicubic2d.cu, UpSampleTrilinear3d.cu; 2.6.0",
)  # fmt: skip
def linear_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous gradient, zeros, one kernel with atomic additions; in 3-D into a contiguous
    array, copied back when the result is in another format."""
    grad, copies = compact(op["grad_output"])
    yield from copies
    out, kind = op.out, _kind(op)
    made = out
    if kind.endswith("3d"):
        made, copies = compact(out)
        yield from copies
    yield from zero(made, because="gradients are added up in it")
    linear = kind.endswith("1d")
    name = f"{kind}_out_frame_backward" if linear else f"{kind}_backward_out_frame"
    yield kernel(name, [grad], [made])
    yield from _back(out, made)


@rule(
    "aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa",
    source="cuda/UpSampleBilinear2d.cu upsample_gen2d_aa_out_cuda_template; 2.6.0",
)  # fmt: skip
def antialiased(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous input, one kernel, and a copy when the result is in another format."""
    x, copies = compact(op["self"])
    made = _dense(op.out)
    return [*copies, kernel("upsample_gen2d_aa_out_frame", [x], [made]), *_back(op.out, made)]


@rule(
    "aten._upsample_bilinear2d_aa_backward", "aten._upsample_bicubic2d_aa_backward",
    source="cuda/UpSampleBilinear2d.cu upsample_gen2d_aa_backward_out_cuda_template; 2.6.0",
)  # fmt: skip
def antialiased_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous gradient, zeros, one kernel with atomic additions."""
    grad, copies = compact(op["grad_output"])
    yield from copies
    yield from zero(op.out, because="gradients are added up in it")
    yield kernel("upsample_gen2d_aa_backward_out_frame", [grad], [op.out])
