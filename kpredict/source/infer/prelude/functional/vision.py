# ruff: noqa
# mypy: ignore-errors
"""Padding, resizing, pooling and sampling of torch.nn.functional."""

import math

import torch


def pad(input, pad, mode="constant", value=None):
    if mode == "constant":
        return aten.constant_pad_nd(input, pad, 0 if value is None else value)
    n = len(pad) // 2
    if mode == "circular":
        return torch.circular_pad(input, pad)
    if mode == "reflect":
        return (
            aten.reflection_pad1d(input, pad)
            if n == 1
            else aten.reflection_pad2d(input, pad)
            if n == 2
            else aten.reflection_pad3d(input, pad)
        )
    return (
        aten.replication_pad1d(input, pad)
        if n == 1
        else aten.replication_pad2d(input, pad)
        if n == 2
        else aten.replication_pad3d(input, pad)
    )


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    n = input.dim() - 2
    if size is None:
        scale = (
            (scale_factor,) * n if isinstance(scale_factor, (int, float)) else tuple(scale_factor)
        )
        size = (
            tuple(int(math.floor(float(s) * f)) for s, f in zip(input.shape[2:], scale))
            if known(input.shape) and known(scale)
            else unknown()
        )
        scales = scale
    else:
        size = (size,) * n if isinstance(size, int) else tuple(size)
        scales = (None,) * n if known(n) else unknown()
    a = False if align_corners is None else align_corners
    if not known(n) or n == 2:
        h, w = (scales[0], scales[1]) if known(scales) else (None, None)
        if mode == "nearest":
            return aten.upsample_nearest2d(input, size, h, w)
        if mode == "nearest-exact":
            return aten._upsample_nearest_exact2d(input, size, h, w)
        if mode == "area":
            return torch.adaptive_avg_pool2d(input, size)
        if mode == "bilinear":
            return (
                aten._upsample_bilinear2d_aa(input, size, a, h, w)
                if antialias
                else aten.upsample_bilinear2d(input, size, a, h, w)
            )
        if mode == "bicubic":
            return (
                aten._upsample_bicubic2d_aa(input, size, a, h, w)
                if antialias
                else aten.upsample_bicubic2d(input, size, a, h, w)
            )
    if n == 1:
        if mode == "linear":
            return aten.upsample_linear1d(input, size, a)
        return aten.upsample_nearest1d(input, size)
    if n == 3:
        if mode == "trilinear":
            return aten.upsample_trilinear3d(input, size, a)
        return aten.upsample_nearest3d(input, size)
    return missing("interpolate", input)


upsample = interpolate


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    m = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    p = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    if input.dim() == 5:
        return aten.grid_sampler_3d(input, grid, m, p, bool(align_corners))
    return aten.grid_sampler_2d(input, grid, m, p, bool(align_corners))


def affine_grid(theta, size, align_corners=None):
    return aten.affine_grid_generator(theta, tuple(size), bool(align_corners))


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return aten.im2col(input, _two(kernel_size), _two(dilation), _two(padding), _two(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return aten.col2im(
        input, _two(output_size), _two(kernel_size), _two(dilation), _two(padding), _two(stride)
    )


def _two(v):
    return (v, v) if isinstance(v, int) else tuple(v)


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    if return_indices:
        return torch.max_pool2d_with_indices(
            input, kernel_size, stride, padding, dilation, ceil_mode
        )
    return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    if return_indices:
        return torch.max_pool1d_with_indices(
            input, kernel_size, stride, padding, dilation, ceil_mode
        )
    return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    if return_indices:
        return torch.max_pool3d_with_indices(
            input, kernel_size, stride, padding, dilation, ceil_mode
        )
    return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_avg_pool2d(input, output_size):
    return torch.adaptive_avg_pool2d(input, output_size)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    found = aten.adaptive_max_pool2d(input, _two(output_size))
    return found if return_indices else found[0]


def channel_shuffle(input, groups):
    b, c, h, w = input.shape
    return input.reshape(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    n = output_size if isinstance(output_size, int) else output_size[0]
    out, indices = aten.adaptive_max_pool2d(input.unsqueeze(-2), (1, n))
    return (out.squeeze(-2), indices.squeeze(-2)) if return_indices else out.squeeze(-2)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    found = aten.adaptive_max_pool3d(input, _three(output_size))
    return found if return_indices else found[0]


def adaptive_avg_pool3d(input, output_size):
    return torch.adaptive_avg_pool3d(input, output_size)


def _three(v):
    return (v, v, v) if isinstance(v, int) else tuple(v)


def _lp(pooled, p, number):
    return aten.pow(
        aten.mul(aten.mul(aten.sign(pooled), aten.relu(aten.abs(pooled))), number), 1.0 / p
    )


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    out = torch.avg_pool1d(aten.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    return _lp(out, norm_type, kernel_size)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    out = torch.avg_pool2d(aten.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    return _lp(out, norm_type, 4.0)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    kernel = _three(kernel_size)
    step = kernel if stride is None else _three(stride)
    out = aten.avg_pool3d(aten.pow(input, norm_type), kernel, step, (0, 0, 0), ceil_mode)
    return _lp(out, norm_type, 8.0)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    kernel = _two(kernel_size)
    step = kernel if stride is None else _two(stride)
    pad = _two(padding)
    if output_size is None:
        n = input.dim()
        output_size = [
            (input.shape[n - 2 + i] - 1) * step[i] - 2 * pad[i] + kernel[i] for i in range(2)
        ]
    return aten.max_unpool2d(input, indices, tuple(output_size)[-2:])


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    kernel = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
    step = kernel if stride is None else stride if isinstance(stride, int) else stride[0]
    length = (input.shape[-1] - 1) * step + kernel if output_size is None else output_size[-1]
    out = aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), (length, 1))
    return out.squeeze(-1)


def upsample_nearest(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, "bilinear", True)
