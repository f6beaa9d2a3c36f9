# ruff: noqa
# mypy: ignore-errors
"""Activations of torch.nn.functional."""

import torch


def relu(input, inplace=False):
    return aten.relu_(input) if inplace else aten.relu(input)


def relu6(input, inplace=False):
    return aten.hardtanh(input, 0.0, 6.0)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return (
        aten.leaky_relu_(input, negative_slope)
        if inplace
        else aten.leaky_relu(input, negative_slope)
    )


def elu(input, alpha=1.0, inplace=False):
    return aten.elu(input, alpha)


def selu(input, inplace=False):
    return aten.elu(input, 1.6732632423543772, 1.0507009873554805)


def celu(input, alpha=1.0, inplace=False):
    return aten.elu(input, alpha, 1.0, 1.0)


def gelu(input, approximate="none"):
    return aten.gelu(input, approximate=approximate)


def silu(input, inplace=False):
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input, inplace=False):
    return aten.mish(input)


def hardswish(input, inplace=False):
    return aten.hardswish(input)


def hardsigmoid(input, inplace=False):
    return aten.hardsigmoid(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return aten.hardtanh(input, min_val, max_val)


def softplus(input, beta=1, threshold=20):
    return aten.softplus(input, beta, threshold)


def softsign(input):
    return input / (input.abs() + 1)


def tanhshrink(input):
    return input - input.tanh()


def logsigmoid(input):
    return aten.log_sigmoid_forward(input)[0]


def glu(input, dim=-1):
    return aten.glu(input, dim)


def sigmoid(input):
    return aten.sigmoid(input)


def tanh(input):
    return aten.tanh(input)


def prelu(input, weight):
    return aten._prelu_kernel(input, weight)


def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False):
    return torch.rrelu(input, lower, upper, training)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return torch.softmax(input, -1 if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return torch.log_softmax(input, -1 if dim is None else dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return torch.softmax(-input, dim, dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    gumbels = -aten.log(aten.exponential_(torch.empty_like(logits)))
    gumbels = (logits + gumbels) / tau
    y_soft = torch.softmax(gumbels, dim)
    if hard:
        index = aten.max(y_soft, dim, True)[1]
        y_hard = aten.scatter_(torch.zeros_like(logits), dim, index, 1.0)
        return y_hard - y_soft.detach() + y_soft
    return y_soft


def dropout(input, p=0.5, training=True, inplace=False):
    return torch.dropout(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    return torch.alpha_dropout(input, p, training)


def dropout1d(input, p=0.5, training=True, inplace=False):
    return torch.feature_dropout(input, p, training)


dropout2d = dropout1d


dropout3d = dropout1d


def elu_(input, alpha=1.0):
    return aten.elu_(input, alpha)


def celu_(input, alpha=1.0):
    return aten.celu_(input, alpha)


def selu_(input):
    return aten.elu_(input, 1.6732632423543772, 1.0507009873554805)


def hardshrink(input, lambd=0.5):
    return aten.hardshrink(input, lambd)


def softshrink(input, lambd=0.5):
    return aten.softshrink(input, lambd)


def threshold(input, threshold, value, inplace=False):
    return (
        aten.threshold_(input, threshold, value)
        if inplace
        else aten.threshold(input, threshold, value)
    )


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    return torch.feature_alpha_dropout(input, p, training)
