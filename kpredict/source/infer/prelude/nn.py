# ruff: noqa
# mypy: ignore-errors
"""torch.nn (torch/nn/modules of 2.13): what each module holds and what its forward calls."""

import math

import torch
import torch.nn.functional as F


class Module:
    pass


class Identity(Module):
    def forward(self, input):
        return input


class Sequential(Module):
    def __init__(self, *args):
        if len(args) == 1 and isinstance(args[0], dict):
            self._items = dict(args[0])
        else:
            self._items = {str(i): m for i, m in enumerate(args)}

    def append(self, module):
        self._items[str(len(self._items))] = module
        return self

    def add_module(self, name, module):
        self._items[name] = module

    def __iter__(self):
        return self._items.values()

    def __len__(self):
        return len(self._items)

    def forward(self, input):
        for module in self._items.values():
            input = module(input)
        return input


class ModuleList(Module):
    def __init__(self, modules=None):
        self._items = [] if modules is None else list(modules)

    def append(self, module):
        self._items.append(module)
        return self

    def extend(self, modules):
        self._items.extend(modules)
        return self

    def insert(self, index, module):
        self._items.insert(index, module)


ParameterList = ModuleList


class ModuleDict(Module):
    def __init__(self, modules=None):
        self._items = {} if modules is None else dict(modules)

    def items(self):
        return self._items.items()

    def values(self):
        return self._items.values()

    def keys(self):
        return self._items.keys()

    def update(self, modules):
        self._items.update(modules)


ParameterDict = ModuleDict


def Parameter(data=None, requires_grad=True):
    return parameter(data, requires_grad)


def _made(shape, device, dtype):
    return parameter(torch.empty(shape, device=device, dtype=dtype), True)


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        self.in_features = in_features
        self.out_features = out_features
        self.weight = _made((out_features, in_features), device, dtype)
        self.bias = _made((out_features,), device, dtype) if bias else None

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)


class LazyLinear(Module):
    def __init__(self, out_features, bias=True, device=None, dtype=None):
        self.weight = _made(unknown(), device, dtype)
        self.bias = _made((out_features,), device, dtype) if bias else None

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)


class Bilinear(Module):
    def __init__(
        self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None
    ):
        self.weight = _made((out_features, in1_features, in2_features), device, dtype)
        self.bias = _made((out_features,), device, dtype) if bias else None

    def forward(self, input1, input2):
        return torch.bilinear(input1, input2, self.weight, self.bias)


class Embedding(Module):
    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = _made((num_embeddings, embedding_dim), device, dtype)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(Module):
    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        self.mode = mode
        self.weight = _made((num_embeddings, embedding_dim), device, dtype)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights
        )


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


class LayerNorm(Module):
    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
    ):
        self.normalized_shape = (
            (normalized_shape,)
            if isinstance(normalized_shape, int)
            else normalized_shape
            if not known(normalized_shape)
            else tuple(normalized_shape)
        )
        if not known(self.normalized_shape):
            self.normalized_shape = (unknown(),)
        self.eps = eps
        self.weight = _made(self.normalized_shape, device, dtype) if elementwise_affine else None
        self.bias = (
            _made(self.normalized_shape, device, dtype) if elementwise_affine and bias else None
        )

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    def __init__(
        self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None
    ):
        self.normalized_shape = (
            (normalized_shape,)
            if isinstance(normalized_shape, int)
            else normalized_shape
            if not known(normalized_shape)
            else tuple(normalized_shape)
        )
        if not known(self.normalized_shape):
            self.normalized_shape = (unknown(),)
        self.eps = eps
        self.weight = _made(self.normalized_shape, device, dtype) if elementwise_affine else None

    def forward(self, input):
        return torch.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        self.num_groups = num_groups
        self.eps = eps
        self.weight = _made((num_channels,), device, dtype) if affine else None
        self.bias = _made((num_channels,), device, dtype) if affine else None

    def forward(self, input):
        return torch.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _BatchNorm(Module):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
    ):
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.weight = _made((num_features,), device, dtype) if affine else None
        self.bias = _made((num_features,), device, dtype) if affine else None
        if track_running_stats:
            self.running_mean = buffer(torch.zeros(num_features, device=device, dtype=dtype))
            self.running_var = buffer(torch.ones(num_features, device=device, dtype=dtype))
            self.num_batches_tracked = buffer(torch.tensor(0, dtype=torch.long, device=device))
        else:
            self.running_mean = None
            self.running_var = None
            self.num_batches_tracked = None

    def forward(self, input):
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        training = self.training or (self.running_mean is None and self.running_var is None)
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    pass


class BatchNorm2d(_BatchNorm):
    pass


class BatchNorm3d(_BatchNorm):
    pass


class SyncBatchNorm(_BatchNorm):
    pass


class _InstanceNorm(Module):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
    ):
        self.eps = eps
        self.momentum = momentum
        self.weight = _made((num_features,), device, dtype) if affine else None
        self.bias = _made((num_features,), device, dtype) if affine else None
        self.running_mean = buffer(torch.zeros(num_features)) if track_running_stats else None
        self.running_var = buffer(torch.ones(num_features)) if track_running_stats else None

    def forward(self, input):
        stats = self.training or self.running_mean is None
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            stats,
            self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    pass


class InstanceNorm2d(_InstanceNorm):
    pass


class InstanceNorm3d(_InstanceNorm):
    pass


class _Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        self.p = p

    def forward(self, input):
        return F.dropout(input, self.p, self.training)


class Dropout(_Dropout):
    pass


class AlphaDropout(_Dropout):
    pass


class Dropout1d(_Dropout):
    def forward(self, input):
        return F.dropout1d(input, self.p, self.training)


class Dropout2d(Dropout1d):
    pass


class Dropout3d(Dropout1d):
    pass


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

    def forward(self, input):
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class MaxPool2d(_MaxPool):
    pass


class MaxPool1d(_MaxPool):
    def forward(self, input):
        return F.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
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

    def forward(self, input):
        return F.adaptive_max_pool2d(input, self.output_size)


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


class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        self.reduction = reduction


class MSELoss(_Loss):
    def forward(self, input, target):
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    def forward(self, input, target):
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        self.reduction = reduction
        self.beta = beta

    def forward(self, input, target):
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Module):
    def __init__(self, reduction="mean", delta=1.0):
        self.reduction = reduction
        self.delta = delta

    def forward(self, input, target):
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class BCELoss(Module):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        self.weight = weight
        self.reduction = reduction

    def forward(self, input, target):
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Module):
    def __init__(
        self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
    ):
        self.weight = weight
        self.reduction = reduction
        self.pos_weight = pos_weight

    def forward(self, input, target):
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class CrossEntropyLoss(Module):
    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        label_smoothing=0.0,
    ):
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, input, target):
        return F.cross_entropy(
            input,
            target,
            self.weight,
            None,
            self.ignore_index,
            None,
            self.reduction,
            self.label_smoothing,
        )


class NLLLoss(Module):
    def __init__(
        self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
    ):
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, input, target):
        return F.nll_loss(input, target, self.weight, None, self.ignore_index, None, self.reduction)


class KLDivLoss(Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input, target):
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CosineSimilarity(Module):
    def __init__(self, dim=1, eps=1e-8):
        self.dim = dim
        self.eps = eps

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class _RNN(Module):
    """rnn.py, and cudnn/RNN.cpp: one cuDNN call for all layers; zero states are made first."""

    gates = 1
    mode = 1

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        ways = 2 if bidirectional else 1
        self.ways = ways
        weights = []
        for layer in range(num_layers):
            for _ in range(ways):
                width = input_size if layer == 0 else hidden_size * ways
                weights.append(_made((self.gates * hidden_size, width), device, dtype))
                weights.append(_made((self.gates * hidden_size, hidden_size), device, dtype))
                if bias:
                    weights.append(_made((self.gates * hidden_size,), device, dtype))
                    weights.append(_made((self.gates * hidden_size,), device, dtype))
        self.flat = weights
        self.per_layer = 4 if bias else 2

    def flatten_parameters(self):
        pass

    def forward(self, input, hx=None):
        unbatched = input.dim() == 2
        if unbatched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        batch = input.shape[0] if self.batch_first else input.shape[1]
        zeros = (self.num_layers * self.ways, batch, self.hidden_size)
        c = None
        if self.mode == 2:
            if hx is None:
                h = torch.zeros(zeros, dtype=input.dtype, device=input.device)
                c = torch.zeros(zeros, dtype=input.dtype, device=input.device)
            else:
                h, c = hx
        else:
            h = torch.zeros(zeros, dtype=input.dtype, device=input.device) if hx is None else hx
        out = aten._cudnn_rnn(
            input,
            self.flat,
            self.per_layer,
            packed_buffer(self.flat),
            h,
            c,
            self.mode,
            self.hidden_size,
            0,
            self.num_layers,
            self.batch_first,
            self.dropout,
            self.training,
            self.bidirectional,
            (),
            None,
        )
        y = out[0]
        if unbatched:
            y = y.squeeze(0 if self.batch_first else 1)
        if self.mode == 2:
            return y, (out[1], out[2])
        return y, out[1]


class RNN(_RNN):
    pass


class LSTM(_RNN):
    gates = 4
    mode = 2


class GRU(_RNN):
    gates = 3
    mode = 3


class _Cell(Module):
    gates = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        self.hidden_size = hidden_size
        self.weight_ih = _made((self.gates * hidden_size, input_size), device, dtype)
        self.weight_hh = _made((self.gates * hidden_size, hidden_size), device, dtype)
        self.bias_ih = _made((self.gates * hidden_size,), device, dtype) if bias else None
        self.bias_hh = _made((self.gates * hidden_size,), device, dtype) if bias else None


class GRUCell(_Cell):
    gates = 3

    def forward(self, input, hx=None):
        if hx is None:
            hx = torch.zeros(
                (input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device
            )
        i = torch.matmul(input, self.weight_ih.t())
        h = torch.matmul(hx, self.weight_hh.t())
        return aten._thnn_fused_gru_cell(i, h, hx, self.bias_ih, self.bias_hh)[0]


class LSTMCell(_Cell):
    gates = 4

    def forward(self, input, hx=None):
        if hx is None:
            z = torch.zeros(
                (input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device
            )
            hx = (z, z)
        i = torch.matmul(input, self.weight_ih.t())
        h = torch.matmul(hx[0], self.weight_hh.t())
        out = aten._thnn_fused_lstm_cell(i, h, hx[1], self.bias_ih, self.bias_hh)
        return out[0], out[1]


class RNNCell(_Cell):
    def forward(self, input, hx=None):
        if hx is None:
            hx = torch.zeros(
                (input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device
            )
        return torch.tanh(
            F.linear(input, self.weight_ih, self.bias_ih)
            + F.linear(hx, self.weight_hh, self.bias_hh)
        )


class MultiheadAttention(Module):
    """activation.py and functional.py multi_head_attention_forward; the fused path in eval mode."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self._same = (kdim is None or kdim == embed_dim) and (vdim is None or vdim == embed_dim)
        self.in_proj_weight = _made((3 * embed_dim, embed_dim), device, dtype)
        self.in_proj_bias = _made((3 * embed_dim,), device, dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if not self._same:
            return missing("MultiheadAttention", query), None
        fast = (
            not self.training
            and self.batch_first
            and query is key
            and key is value
            and attn_mask is None
            and key_padding_mask is None
        )
        if (
            fast
            and query.dim() == 3
            and not (grad_enabled() and self.in_proj_weight.requires_grad)
            and self.in_proj_bias is not None
        ):
            out = aten._native_multi_head_attention(
                query,
                key,
                value,
                self.embed_dim,
                self.num_heads,
                self.in_proj_weight,
                self.in_proj_bias,
                self.out_proj.weight,
                self.out_proj.bias,
                None,
                need_weights,
                average_attn_weights,
                None,
            )
            return out[0], out[1]
        if self.batch_first and query.dim() == 3:
            one, two = query is key, key is value
            query = query.transpose(1, 0)
            key = query if one and two else key.transpose(1, 0)
            value = key if two else value.transpose(1, 0)
        t, b, e = query.shape
        s = key.shape[0]
        h, d = self.num_heads, self.head_dim
        if is_causal and attn_mask is not None and not need_weights and key_padding_mask is None:
            attn_mask = None
        else:
            is_causal = False
        q, k, v = self._project(query, key, value)
        if attn_mask is not None and attn_mask.dtype is torch.bool:
            attn_mask = aten.masked_fill_(
                torch.zeros_like(attn_mask, dtype=query.dtype), attn_mask, -math.inf
            )
        if attn_mask is not None and attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)
        q = q.view(t, b * h, d).transpose(0, 1)
        k = k.view(s, b * h, d).transpose(0, 1)
        v = v.view(s, b * h, d).transpose(0, 1)
        if key_padding_mask is not None:
            if key_padding_mask.dtype is torch.bool:
                key_padding_mask = aten.masked_fill_(
                    torch.zeros_like(key_padding_mask, dtype=query.dtype),
                    key_padding_mask,
                    -math.inf,
                )
            key_padding_mask = (
                key_padding_mask.view(b, 1, 1, s).expand(-1, h, -1, -1).reshape(b * h, 1, s)
            )
            attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
        p = self.dropout if self.training else 0.0
        if need_weights:
            q = q * math.sqrt(1.0 / float(d))
            if attn_mask is not None:
                weights = aten.baddbmm(attn_mask, q, k.transpose(-2, -1))
            else:
                weights = aten.bmm(q, k.transpose(-2, -1))
            weights = F.softmax(weights, dim=-1)
            if p > 0.0:
                weights = F.dropout(weights, p)
            out = aten.bmm(weights, v)
            out = out.transpose(0, 1).contiguous().view(t * b, e)
            out = F.linear(out, self.out_proj.weight, self.out_proj.bias).view(t, b, e)
            weights = weights.view(b, h, t, s)
            if average_attn_weights:
                weights = weights.mean(dim=1)
        else:
            if attn_mask is not None:
                if attn_mask.dim() == 3 and attn_mask.shape[0] == 1:
                    attn_mask = attn_mask.unsqueeze(0)
                else:
                    attn_mask = attn_mask.view(b, h, -1, s)
            q = q.view(b, h, t, d)
            k = k.view(b, h, s, d)
            v = v.view(b, h, s, d)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask, p, is_causal)
            out = out.permute(2, 0, 1, 3).contiguous().view(b * t, e)
            out = F.linear(out, self.out_proj.weight, self.out_proj.bias).view(t, b, e)
            weights = None
        if self.batch_first:
            out = out.transpose(1, 0)
        return out, weights

    def _project(self, q, k, v):
        e = self.embed_dim
        w, bias = self.in_proj_weight, self.in_proj_bias
        if k is v:
            if q is k:
                proj = F.linear(q, w, bias)
                proj = (
                    proj.unflatten(-1, (3, e))
                    .unsqueeze(0)
                    .transpose(0, -2)
                    .squeeze(-2)
                    .contiguous()
                )
                return proj[0], proj[1], proj[2]
            w_q, w_kv = aten.split_with_sizes(w, (e, e * 2), 0)
            b_q, b_kv = (None, None) if bias is None else aten.split_with_sizes(bias, (e, e * 2), 0)
            q = F.linear(q, w_q, b_q)
            kv = F.linear(k, w_kv, b_kv)
            kv = kv.unflatten(-1, (2, e)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return q, kv[0], kv[1]
        w_q, w_k, w_v = aten.split(w, e, 0)
        b_q, b_k, b_v = (None, None, None) if bias is None else aten.split(bias, e, 0)
        return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


class TransformerEncoderLayer(Module):
    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)
        self.name = activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        a = self.self_attn
        fast = (
            not self.training
            and a.batch_first
            and src.dim() == 3
            and src_mask is None
            and src_key_padding_mask is None
        )
        if (
            fast
            and a.num_heads % 2 == 0
            and not (grad_enabled() and self.linear1.weight.requires_grad)
        ):
            return aten._transformer_encoder_layer_fwd(
                src,
                a.embed_dim,
                a.num_heads,
                a.in_proj_weight,
                a.in_proj_bias,
                a.out_proj.weight,
                a.out_proj.bias,
                self.name == "gelu",
                self.norm_first,
                self.norm1.eps,
                self.norm1.weight,
                self.norm1.bias,
                self.norm2.weight,
                self.norm2.bias,
                self.linear1.weight,
                self.linear1.bias,
                self.linear2.weight,
                self.linear2.bias,
                None,
                None,
            )
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            x = x + self._feed(self.norm2(x))
        else:
            x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask, is_causal))
            x = self.norm2(x + self._feed(x))
        return x

    def _attend(self, x, mask, padding, is_causal):
        return self.dropout1(
            self.self_attn(
                x,
                x,
                x,
                attn_mask=mask,
                key_padding_mask=padding,
                need_weights=False,
                is_causal=is_causal,
            )[0]
        )

    def _feed(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _activation(a):
    return F.relu if a == "relu" else F.gelu if a == "gelu" else a


class TransformerDecoderLayer(Module):
    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.norm3 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        x = tgt
        if self.norm_first:
            x = x + self._self(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._cross(
                self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )
            x = x + self._feed(self.norm3(x))
        else:
            x = self.norm1(x + self._self(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
            x = self.norm2(
                x + self._cross(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            )
            x = self.norm3(x + self._feed(x))
        return x

    def _self(self, x, mask, padding, causal):
        return self.dropout1(
            self.self_attn(
                x,
                x,
                x,
                attn_mask=mask,
                key_padding_mask=padding,
                is_causal=causal,
                need_weights=False,
            )[0]
        )

    def _cross(self, x, mem, mask, padding, causal):
        return self.dropout2(
            self.multihead_attn(
                x,
                mem,
                mem,
                attn_mask=mask,
                key_padding_mask=padding,
                is_causal=causal,
                need_weights=False,
            )[0]
        )

    def _feed(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class _Stack(Module):
    def __init__(self, layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        self.layers = ModuleList([layer for _ in range(num_layers)])
        self.norm = norm


class TransformerEncoder(_Stack):
    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                is_causal=bool(is_causal),
                src_key_padding_mask=src_key_padding_mask,
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(_Stack):
    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        return torch.triu(torch.full((sz, sz), -math.inf, dtype=dtype, device=device), diagonal=1)
