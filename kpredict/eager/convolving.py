"""What decides a convolution's back end, and the layouts cuDNN wants.

Source: aten/src/ATen/native/Convolution.cpp (2.6) and ConvUtils.h (2.13): ConvParams::use_cudnn,
use_cudnn_depthwise, is_depthwise, cudnn_conv_suggest_memory_format.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from kpredict.eager.copying import copy
from kpredict.eager.launches import contiguous
from kpredict.model import Launch, Op, Target, Tensor

CUDNN, DEPTHWISE, SLOW, EMPTY = "cudnn", "depthwise", "slow", "empty"
CHANNELS_LAST, CONTIGUOUS = "channels_last", "contiguous"


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution of 2 or 3 spatial dims; `output` is the forward's result or its gradient."""

    input: Tensor
    weight: Tensor
    output: Tensor
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    groups: int
    backend: str = ""

    @classmethod
    def of(cls, op: Op, x: Tensor, weight: Tensor, output: Tensor, target: Target) -> Convolution:
        """From an op's arguments; 1-D ones are seen as 2-D with a height of 1."""
        space = weight.ndim - 2

        def per_dim(name: str, before: int) -> tuple[int, ...]:
            given = tuple(op[name])
            if len(given) == 1:  # one number for all dims
                given *= op["weight"].ndim - 2
            return (before,) * (space - len(given)) + given

        conv = cls(
            x, weight, output, per_dim("stride", 1), per_dim("padding", 0), per_dim("dilation", 1),
            op.get("transposed", "transpose" in op.packet), op["groups"],
        )  # fmt: skip
        return replace(conv, backend=conv._choose(op, target))

    @property
    def is_dilated(self) -> bool:
        return any(d != 1 for d in self.dilation)

    @property
    def is_depthwise(self) -> bool:
        channels = self.input.shape[1]
        return (
            not self.transposed
            and self.groups > 1
            and channels == self.groups
            and self.weight.shape[0] % channels == 0
        )

    @property
    def flops(self) -> int:
        """2 per multiply-add: outputs (inputs, if transposed) times the weights each takes."""
        side = self.input if self.transposed else self.output
        return 2 * side.numel * prod(self.weight.shape[1:])

    def _choose(self, op: Op, target: Target) -> str:
        if 0 in self.input.shape[:2]:
            return EMPTY
        half = {self.input.dtype, self.weight.dtype}
        too_big = any(
            p >= s for p, s in zip(op.get("output_padding", ()), op["stride"], strict=False)
        )
        cudnn = not too_big and not ("bfloat16" in half and target.sm < 80)
        if not self.is_depthwise:
            return CUDNN if cudnn else SLOW
        if cudnn and suggested_layout(self.input, self.weight) == CHANNELS_LAST:
            return CUDNN
        if cudnn and half == {"float16"} and self._suits_half_depthwise():
            return CUDNN
        return DEPTHWISE

    def _suits_half_depthwise(self) -> bool:
        """check_cudnn_depthwise_workload_with_filter: 32 channels or more, no dilation, square
        strides and filters of 1, 3 or 5, 7 columns or more; with stride 2 only some sizes."""
        if self.input.ndim != 4 or self.is_dilated or self.input.shape[1] < 32:
            return False
        batch, channels, height, width = self.input.shape
        rows, columns = self.weight.shape[2:]
        step = self.stride[1]
        if self.stride[0] != step and height != 1:
            return False
        if height == 1 and step == 1:
            return True
        if rows != columns or columns not in (1, 3, 5) or width < 7:
            return False
        if step != 2:
            return step == 1
        if batch == 1:
            return columns > 1 or width <= 28
        if columns == 1:
            return batch <= 16 and channels >= 128 and width <= 7
        return channels >= 512 or (channels >= 256 and width >= 28)


def as_planes(t: Tensor) -> Tensor:
    """(batch, channels, length) as (batch, channels, 1, length)."""
    (n, c, w), (sn, sc, sw) = t.shape, t.stride
    return replace(t, shape=(n, c, 1, w), stride=(sn, sc, sw * w, sw))


def looks_channels_last(t: Tensor) -> bool:
    """`suggest_memory_format`: strides grow in the order channels, columns, rows, batch."""
    if t.ndim not in (4, 5) or t.stride[1] == 0:
        return False
    least = 0
    for d in (1, *range(t.ndim - 1, 1, -1), 0):
        if t.shape[d] == 0 or t.stride[d] < least:
            return False
        if d == 0 and least == t.stride[1]:
            return False  # all other dims are 1: either layout
        least = t.stride[d] * max(t.shape[d], 1)
    return True


def suggested_layout(a: Tensor, b: Tensor) -> str:
    """Channels-last when either is, never for float64 (cudnn_conv_suggest_memory_format)."""
    if "float64" in (a.dtype, b.dtype):
        return CONTIGUOUS
    return CHANNELS_LAST if looks_channels_last(a) or looks_channels_last(b) else CONTIGUOUS


def in_layout(t: Tensor, layout: str) -> tuple[Tensor, list[Launch]]:
    """`t.contiguous(memory_format)`: itself when it is, else a copy."""
    if t.is_channels_last if layout == CHANNELS_LAST else t.is_contiguous:
        return t, []
    fresh = contiguous(t)
    if layout == CHANNELS_LAST:
        fresh = channels_last(fresh)
    return fresh, copy(fresh, t, because=f"cuDNN works on {layout.replace('_', '-')} arrays here")


def channels_last(t: Tensor) -> Tensor:
    """A dense array with the channels innermost."""
    strides, step = [0] * t.ndim, 1
    for d in (1, *range(t.ndim - 1, 1, -1), 0):
        strides[d] = step
        step *= max(t.shape[d], 1)
    return replace(t, stride=tuple(strides))
