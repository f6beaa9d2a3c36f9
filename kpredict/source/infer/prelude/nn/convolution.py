# ruff: noqa
# mypy: ignore-errors
"""torch.nn: convolutions."""

import torch
import torch.nn.functional as F


def _times(v, n):
    return (v,) * n if isinstance(v, int) else tuple(v)


class _Conv(Module):
    n = 2

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        n = self.n
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _times(kernel_size, n)
        self.stride = _times(stride, n)
        self.padding = padding if isinstance(padding, str) else _times(padding, n)
        self.dilation = _times(dilation, n)
        self.groups = groups
        self.padding_mode = padding_mode
        self.weight = _made((out_channels, in_channels // groups, *self.kernel_size), device, dtype)
        self.bias = _made((out_channels,), device, dtype) if bias else None

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            twice = []
            for p in reversed(padding):
                twice = twice + [p, p]
            input = F.pad(input, tuple(twice), self.padding_mode)
            padding = 0
        return torch._conv_n(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups, self.n
        )


class Conv1d(_Conv):
    n = 1


class Conv2d(_Conv):
    n = 2


class Conv3d(_Conv):
    n = 3


class _ConvTranspose(Module):
    n = 2

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        n = self.n
        self.kernel_size = _times(kernel_size, n)
        self.stride = _times(stride, n)
        self.padding = _times(padding, n)
        self.output_padding = _times(output_padding, n)
        self.dilation = _times(dilation, n)
        self.groups = groups
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.weight = _made((in_channels, out_channels // groups, *self.kernel_size), device, dtype)
        self.bias = _made((out_channels,), device, dtype) if bias else None

    def forward(self, input, output_size=None):
        return aten.convolution(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            True,
            self.output_padding,
            self.groups,
        )


class ConvTranspose1d(_ConvTranspose):
    n = 1


class ConvTranspose2d(_ConvTranspose):
    n = 2


class ConvTranspose3d(_ConvTranspose):
    n = 3
