# ruff: noqa
# mypy: ignore-errors
"""Softmax, dropout, norms, embedding (SoftMax.cpp, Dropout.cpp, layer_norm.cpp, Normalization.cpp)."""

import torch


def softmax(input, dim, dtype=None):
    half = dtype is torch.float32 and input.dtype is torch.float16
    if dtype is None or half:
        return aten._softmax(input, dim, half)
    return aten._softmax(input.to(dtype), dim, False)


def log_softmax(input, dim, dtype=None):
    half = dtype is torch.float32 and input.dtype is torch.float16
    if dtype is None or half:
        return aten._log_softmax(input, dim, half)
    return aten._log_softmax(input.to(dtype), dim, False)


def dropout(input, p=0.5, train=True):
    if p == 0 or not train:
        return input
    if p == 1:
        return input * 0
    return aten.native_dropout(input, p, train)[0]


def feature_dropout(input, p, train):
    if p == 0 or not train:
        return input
    noise = (
        input.new_empty((*input.shape[:2], *(1,) * (input.dim() - 2)))
        if known(input.dim())
        else input.new_empty((1,))
    )
    noise = aten.bernoulli_(noise, 1 - p)
    noise = aten.div_(noise, 1 - p)
    return aten.mul(input, noise)


def alpha_dropout(input, p=0.5, train=False):
    """Dropout.cpp: a mask, its affine correction, and the product."""
    if p == 0 or not train:
        return input
    noise = aten.bernoulli_(torch.empty_like(input), 1 - p)
    b = aten.add(noise, -1)
    b = aten.mul(b, 1.0)
    b = aten.add_(b, 1.0)
    noise = aten.mul(noise, 1.0)
    return aten.add_(aten.mul(input, noise), b)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return aten.native_layer_norm(input.contiguous(), normalized_shape, weight, bias, eps)[0]


def rms_norm(input, normalized_shape, weight=None, eps=None):
    return aten._fused_rms_norm(input, normalized_shape, weight, eps)[0]


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    if known(input.shape):
        n, c = input.shape[0], input.shape[1]
        hw = input.numel() // (n * c)
    else:
        n = c = hw = unknown()
    return aten.native_group_norm(input.contiguous(), weight, bias, n, c, hw, num_groups, eps)[0]


def batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    """Normalization.cpp _select_batch_norm_backend: cuDNN where it can."""
    dims = input.dim()
    cudnn = weight is not None and bias is not None and input.is_cuda and eps >= 1e-5
    cudnn = cudnn and (running_mean is not None or training)
    if known(input.shape):
        cudnn = cudnn and dims >= 3 and dims <= 5
        cudnn = cudnn and input.shape[0] <= (880801 if training else 65535)
    if cudnn and input.dtype is torch.bfloat16:
        cudnn = False
    if cudnn:
        return aten.cudnn_batch_norm(
            input.contiguous() if input.dim() != 4 else input,
            weight,
            bias,
            running_mean,
            running_var,
            training,
            momentum,
            eps,
        )[0]
    return aten.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


def instance_norm(
    input,
    running_mean,
    running_var,
    weight,
    bias,
    use_input_stats,
    momentum,
    eps,
    cudnn_enabled=True,
):
    b, c = input.shape[0], input.shape[1]
    shape = (1, b * c, *input.shape[2:])
    w = None if weight is None else weight.repeat(b)
    bb = None if bias is None else bias.repeat(b)
    rm = None if running_mean is None else running_mean.repeat(b)
    rv = None if running_var is None else running_var.repeat(b)
    out = batch_norm(input.contiguous().view(shape), rm, rv, w, bb, use_input_stats, momentum, eps)
    return out.view(input.shape)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return aten.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)


def log_sigmoid(input):
    return aten.log_sigmoid_forward(input)[0]


def special_softmax(input, dim, dtype=None):
    return softmax(input, dim, dtype)


def selu(input):
    return aten.elu(input, 1.6732632423543772, 1.0507009873554805)


def relu6(input):
    return aten.hardtanh(input, 0.0, 6.0)


def prelu(input, weight):
    return aten._prelu_kernel(input, weight)


def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False):
    return aten.rrelu_with_noise(input, torch.empty_like(input), lower, upper, training)


def feature_alpha_dropout(input, p=0.5, train=False):
    if p == 0 or not train:
        return input
    noise = aten.bernoulli_(
        input.new_empty((*input.shape[:2], *(1,) * (input.dim() - 2)))
        if known(input.dim())
        else input.new_empty((1,)),
        1 - p,
    )
    b = aten.add(noise, -1)
    b = aten.add_(aten.mul_(b, 1.0), 1.0)
    noise = aten.mul_(noise, 1.0)
    return aten.add_(aten.mul(input, noise), b)
