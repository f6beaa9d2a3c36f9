# ruff: noqa
# mypy: ignore-errors
"""Convolution and pooling (Convolution.cpp, Pooling.cpp)."""


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups, 3)


def _conv(input, weight, bias, stride, padding, dilation, groups, n):
    stride, dilation = _wide(stride, n), _wide(dilation, n)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
        padding = [t // 2 for t in total]
    elif padding == "valid":
        padding = 0
    unbatched = input.dim() == n + 1
    if unbatched is True:
        input = input.unsqueeze(0)
    out = aten.convolution(
        input, weight, bias, stride, _wide(padding, n), dilation, False, (0,) * n, groups
    )
    return out.squeeze(0) if unbatched is True else out


_conv_n = _conv


def _wide(v, n):
    if isinstance(v, int):
        return (v,) * n
    if known(v) and len(v) == 1:
        return tuple(v) * n
    return tuple(v) if known(v) else v


def conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    return aten.convolution(
        input,
        weight,
        bias,
        _wide(stride, 1),
        _wide(padding, 1),
        _wide(dilation, 1),
        True,
        _wide(output_padding, 1),
        groups,
    )


def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    return aten.convolution(
        input,
        weight,
        bias,
        _wide(stride, 2),
        _wide(padding, 2),
        _wide(dilation, 2),
        True,
        _wide(output_padding, 2),
        groups,
    )


def conv_transpose3d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    return aten.convolution(
        input,
        weight,
        bias,
        _wide(stride, 3),
        _wide(padding, 3),
        _wide(dilation, 3),
        True,
        _wide(output_padding, 3),
        groups,
    )


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return aten.max_pool2d_with_indices(
        input,
        _wide(kernel_size, 2),
        _wide(kernel_size if stride is None else stride, 2),
        _wide(padding, 2),
        _wide(dilation, 2),
        ceil_mode,
    )[0]


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    stride = kernel_size if stride is None else stride
    out = aten.max_pool2d_with_indices(
        input.unsqueeze(-2),
        (1, _one(kernel_size)),
        (1, _one(stride)),
        (0, _one(padding)),
        (1, _one(dilation)),
        ceil_mode,
    )[0]
    return out.squeeze(-2)


def _one(v):
    return v if isinstance(v, int) else v[0]


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    stride = kernel_size if stride is None else stride
    out = aten.avg_pool2d(
        input.unsqueeze(-2),
        (1, _one(kernel_size)),
        (1, _one(stride)),
        (0, _one(padding)),
        ceil_mode,
        count_include_pad,
    )
    return out.squeeze(-2)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    return aten.avg_pool2d(
        input,
        _wide(kernel_size, 2),
        _wide(kernel_size if stride is None else stride, 2),
        _wide(padding, 2),
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def adaptive_avg_pool2d(input, output_size):
    size = _wide(output_size, 2)
    if known(size) and size[0] == 1 and size[1] == 1:
        return aten.mean(input, (-1, -2), True)
    return aten._adaptive_avg_pool2d(
        input, tuple(input.shape[-2 + i] if v is None else v for i, v in enumerate(size))
    )


def adaptive_avg_pool1d(input, output_size):
    n = _one(output_size)
    if n == 1:
        return aten.mean(input, (-1,), True)
    return aten._adaptive_avg_pool2d(input.unsqueeze(-2), (1, n)).squeeze(-2)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return aten.max_pool3d_with_indices(
        input, _wide(kernel_size, 3), _wide(kernel_size if stride is None else stride, 3),
        _wide(padding, 3), _wide(dilation, 3), ceil_mode,
    )[0]  # fmt: skip


def lstm_cell(*args):
    return missing("lstm_cell", *args)


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False
):
    stride = kernel_size if stride is None else stride
    out = aten.max_pool2d_with_indices(
        input.unsqueeze(-2),
        (1, _one(kernel_size)),
        (1, _one(stride)),
        (0, _one(padding)),
        (1, _one(dilation)),
        ceil_mode,
    )
    return out[0].squeeze(-2), out[1].squeeze(-2)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False
):
    return aten.max_pool2d_with_indices(
        input,
        _wide(kernel_size, 2),
        _wide(kernel_size if stride is None else stride, 2),
        _wide(padding, 2),
        _wide(dilation, 2),
        ceil_mode,
    )


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False
):
    return aten.max_pool3d_with_indices(
        input, _wide(kernel_size, 3), _wide(kernel_size if stride is None else stride, 3),
        _wide(padding, 3), _wide(dilation, 3), ceil_mode,
    )  # fmt: skip


def adaptive_avg_pool3d(input, output_size):
    size = _wide(output_size, 3)
    if known(size) and size[0] == 1 and size[1] == 1 and size[2] == 1:
        return aten.mean(input, (-1, -2, -3), True)
    return aten._adaptive_avg_pool3d(
        input, tuple(input.shape[-3 + i] if v is None else v for i, v in enumerate(size))
    )
