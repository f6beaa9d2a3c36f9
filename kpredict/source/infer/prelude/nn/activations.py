# ruff: noqa
# mypy: ignore-errors
"""torch.nn: activations and reshapes."""

import torch
import torch.nn.functional as F


class ReLU(Module):
    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.relu(input, self.inplace)


class ReLU6(Module):
    def __init__(self, inplace=False):
        pass

    def forward(self, input):
        return F.relu6(input)


class LeakyReLU(Module):
    def __init__(self, negative_slope=0.01, inplace=False):
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(Module):
    def __init__(self, alpha=1.0, inplace=False):
        self.alpha = alpha

    def forward(self, input):
        return F.elu(input, self.alpha)


class SELU(Module):
    def __init__(self, inplace=False):
        pass

    def forward(self, input):
        return F.selu(input)


class CELU(Module):
    def __init__(self, alpha=1.0, inplace=False):
        self.alpha = alpha

    def forward(self, input):
        return F.celu(input, self.alpha)


class GELU(Module):
    def __init__(self, approximate="none"):
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)


class SiLU(Module):
    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.silu(input, self.inplace)


class Mish(Module):
    def __init__(self, inplace=False):
        pass

    def forward(self, input):
        return F.mish(input)


class Hardswish(Module):
    def __init__(self, inplace=False):
        pass

    def forward(self, input):
        return F.hardswish(input)


class Hardsigmoid(Module):
    def __init__(self, inplace=False):
        pass

    def forward(self, input):
        return F.hardsigmoid(input)


class Hardtanh(Module):
    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val)


class Sigmoid(Module):
    def forward(self, input):
        return torch.sigmoid(input)


class Tanh(Module):
    def forward(self, input):
        return torch.tanh(input)


class Softplus(Module):
    def __init__(self, beta=1.0, threshold=20.0):
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    def forward(self, input):
        return F.softsign(input)


class LogSigmoid(Module):
    def forward(self, input):
        return F.logsigmoid(input)


class PReLU(Module):
    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        self.weight = _made((num_parameters,), device, dtype)

    def forward(self, input):
        return F.prelu(input, self.weight)


class GLU(Module):
    def __init__(self, dim=-1):
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)


class Softmax(Module):
    def __init__(self, dim=None):
        self.dim = dim

    def forward(self, input):
        return F.softmax(input, self.dim)


class LogSoftmax(Module):
    def __init__(self, dim=None):
        self.dim = dim

    def forward(self, input):
        return F.log_softmax(input, self.dim)


class Flatten(Module):
    def __init__(self, start_dim=1, end_dim=-1):
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    def __init__(self, dim, unflattened_size):
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        return torch.unflatten(input, self.dim, self.unflattened_size)


class PixelShuffle(Module):
    def __init__(self, upscale_factor):
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return torch.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    def __init__(self, downscale_factor):
        self.downscale_factor = downscale_factor

    def forward(self, input):
        return torch.pixel_unshuffle(input, self.downscale_factor)


class Hardshrink(Module):
    def __init__(self, lambd=0.5):
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)


class Softshrink(Module):
    def __init__(self, lambd=0.5):
        self.lambd = lambd

    def forward(self, input):
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    def forward(self, input):
        return F.tanhshrink(input)


class Softmin(Module):
    def __init__(self, dim=None):
        self.dim = dim

    def forward(self, input):
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    def forward(self, input):
        return F.softmax(input, -3)


class Threshold(Module):
    def __init__(self, threshold, value, inplace=False):
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(Module):
    def __init__(self, lower=0.125, upper=0.3333333333333333, inplace=False):
        self.lower = lower
        self.upper = upper

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training)


class ChannelShuffle(Module):
    def __init__(self, groups):
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)


class Unfold(Module):
    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        self.how = (kernel_size, dilation, padding, stride)

    def forward(self, input):
        return F.unfold(input, *self.how)


class Fold(Module):
    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        self.how = (output_size, kernel_size, dilation, padding, stride)

    def forward(self, input):
        return F.fold(input, *self.how)
