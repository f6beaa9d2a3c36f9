# ruff: noqa
# mypy: ignore-errors
"""torch.nn: resizing, pooling, padding."""

import torch
import torch.nn.functional as F


class Upsample(Module):
    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode="nearest",
        align_corners=None,
        recompute_scale_factor=None,
    ):
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)


class _MaxPool(Module):
    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode
        self.return_indices = return_indices

    def forward(self, input):
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool2d(_MaxPool):
    pass


class MaxPool1d(_MaxPool):
    def forward(self, input):
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool3d(_MaxPool):
    def forward(self, input):
        return aten.max_pool3d_with_indices(
            input,
            _times(self.kernel_size, 3),
            _times(self.stride, 3),
            _times(self.padding, 3),
            _times(self.dilation, 3),
            self.ceil_mode,
        )[0]


class _AvgPool(Module):
    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return torch.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPool):
    pass


class AvgPool1d(_AvgPool):
    def forward(self, input):
        return torch.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool3d(_AvgPool):
    def forward(self, input):
        return aten.avg_pool3d(
            input,
            _times(self.kernel_size, 3),
            _times(self.stride, 3),
            _times(self.padding, 3),
            self.ceil_mode,
            self.count_include_pad,
        )


class AdaptiveAvgPool2d(Module):
    def __init__(self, output_size):
        self.output_size = output_size

    def forward(self, input):
        return torch.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool1d(Module):
    def __init__(self, output_size):
        self.output_size = output_size

    def forward(self, input):
        return torch.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveMaxPool2d(Module):
    def __init__(self, output_size, return_indices=False):
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool2d):
    def forward(self, input):
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(AdaptiveMaxPool2d):
    def forward(self, input):
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool3d(Module):
    def __init__(self, output_size):
        self.output_size = output_size

    def forward(self, input):
        return F.adaptive_avg_pool3d(input, self.output_size)


class _Padding(Module):
    n = 2
    mode = "constant"

    def __init__(self, padding, value=0.0):
        self.padding = (padding,) * (2 * self.n) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, self.mode, self.value)


class ZeroPad2d(_Padding):
    pass


class ZeroPad1d(_Padding):
    n = 1


class ConstantPad1d(_Padding):
    n = 1


class ConstantPad2d(_Padding):
    pass


class ReflectionPad1d(_Padding):
    n = 1
    mode = "reflect"


class ReflectionPad2d(_Padding):
    mode = "reflect"


class ReplicationPad1d(_Padding):
    n = 1
    mode = "replicate"


class ReplicationPad2d(_Padding):
    mode = "replicate"


class ZeroPad3d(_Padding):
    n = 3


class ConstantPad3d(_Padding):
    n = 3


class ReflectionPad3d(_Padding):
    n = 3
    mode = "reflect"


class ReplicationPad3d(_Padding):
    n = 3
    mode = "replicate"


class CircularPad1d(_Padding):
    n = 1
    mode = "circular"


class CircularPad2d(_Padding):
    mode = "circular"


class CircularPad3d(_Padding):
    n = 3
    mode = "circular"


class UpsamplingNearest2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class _LPPool(Module):
    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        self.how = (norm_type, kernel_size, stride, ceil_mode)


class LPPool1d(_LPPool):
    def forward(self, input):
        return F.lp_pool1d(input, *self.how)


class LPPool2d(_LPPool):
    def forward(self, input):
        return F.lp_pool2d(input, *self.how)


class LPPool3d(_LPPool):
    def forward(self, input):
        return F.lp_pool3d(input, *self.how)


class MaxUnpool2d(Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        self.how = (kernel_size, stride, padding)

    def forward(self, input, indices, output_size=None):
        return F.max_unpool2d(input, indices, *self.how, output_size)


class MaxUnpool1d(MaxUnpool2d):
    def forward(self, input, indices, output_size=None):
        return F.max_unpool1d(input, indices, *self.how, output_size)
