# ruff: noqa
# mypy: ignore-errors
"""torch.nn: norms and dropout."""

import torch
import torch.nn.functional as F


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


class FeatureAlphaDropout(_Dropout):
    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)


class LocalResponseNorm(Module):
    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        self.how = (size, alpha, beta, k)

    def forward(self, input):
        return F.local_response_norm(input, *self.how)


class CrossMapLRN2d(LocalResponseNorm):
    pass
