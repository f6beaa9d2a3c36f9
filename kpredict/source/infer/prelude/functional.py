# ruff: noqa
# mypy: ignore-errors
"""torch.nn.functional (torch/nn/functional.py of 2.13)."""

import math

import torch


def _reduced(x, reduction):
    if reduction == "mean":
        return aten.mean(x)
    if reduction == "sum":
        return aten.sum(x)
    return x


def _code(reduction):
    return 0 if reduction == "none" else 1 if reduction == "mean" else 2


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


def linear(input, weight, bias=None):
    return torch.linear(input, weight, bias)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    return torch.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    return torch.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    return missing("local_response_norm", input)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    denominator = aten.linalg_vector_norm(input, p, dim, True)
    denominator = aten.clamp_min(denominator, eps)
    return input / aten.expand(denominator, input.shape)


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


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    return aten.embedding(
        weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse
    )


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    if offsets is None and input.dim() == 2:
        offsets = torch.arange(
            0, input.numel(), input.shape[1], dtype=input.dtype, device=input.device
        )
        input = input.reshape(-1)
    number = 0 if mode == "sum" else 1 if mode == "mean" else 2
    if grad_enabled() and weight.requires_grad:
        return aten._embedding_bag(
            weight,
            input,
            offsets,
            scale_grad_by_freq,
            number,
            sparse,
            per_sample_weights,
            include_last_offset,
            -1,
        )[0]
    return aten._embedding_bag_forward_only(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        number,
        sparse,
        per_sample_weights,
        include_last_offset,
        -1,
    )[0]


def one_hot(tensor, num_classes=-1):
    return torch.one_hot(tensor, num_classes)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    return aten.mse_loss(input, target, _code(reduction))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    return _reduced(aten.abs(aten.sub(input, target)), reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    return aten.smooth_l1_loss(input, target, _code(reduction), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    return aten.huber_loss(input, target, _code(reduction), delta)


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    return aten.binary_cross_entropy(input, target, weight, _code(reduction))


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    return aten.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, _code(reduction)
    )


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if reduction == "batchmean":
        return torch.kl_div(input, target, 2, log_target) / input.shape[0]
    return torch.kl_div(input, target, _code(reduction), log_target)


def nll_loss(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
):
    if input.dim() == 4:
        return aten.nll_loss2d_forward(input, target, weight, _code(reduction), ignore_index)[0]
    return aten.nll_loss_forward(input, target, weight, _code(reduction), ignore_index)[0]


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """LossNLL.cpp: class indices, smoothed ones, or class probabilities."""
    dim = 0 if input.dim() == 1 else 1
    logs = torch.log_softmax(input, dim)
    if known(input.shape) and known(target.shape) and input.shape == target.shape:
        x = -aten.sum(aten.mul(logs, target))
        return aten.div(x, input.shape[0]) if reduction == "mean" else x
    loss = nll_loss(logs, target, weight, None, ignore_index, None, reduction)
    if label_smoothing > 0.0:
        smooth = aten.neg(aten.sum(logs, dim))
        ignored = aten.eq(target, ignore_index)
        smooth = aten.masked_fill_(smooth, ignored, 0.0)
        if reduction == "mean":
            counted = aten.sum(aten.bitwise_not(ignored).to(input.dtype))
            smooth = aten.div(aten.sum(smooth), counted)
        elif reduction == "sum":
            smooth = aten.sum(smooth)
        return aten.add(aten.mul(loss, 1 - label_smoothing), aten.mul(smooth, label_smoothing))
    return loss


def margin_ranking_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    return _reduced(aten.clamp_min_(-target * (input1 - input2) + margin, 0), reduction)


def cosine_embedding_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    return torch.cosine_embedding_loss(input1, input2, target, margin, _code(reduction))


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2.0,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    return torch.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, _code(reduction)
    )


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    negative = aten.any(aten.lt(var, 0))
    sync("bool", negative)
    var = aten.clamp_(var, eps)
    loss = aten.mul(
        aten.add(aten.log(var), aten.div(aten.pow(aten.sub(input, target), 2), var)), 0.5
    )
    return _reduced(loss, reduction)


def poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    loss = aten.exp(input) - target * input
    return _reduced(loss, reduction)


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """LossCTC.cpp; cuDNN takes it only for CPU targets of 32 bits."""
    loss = aten._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)[
        0
    ]
    if zero_infinity:
        loss = torch.where(
            aten.eq(loss, math.inf),
            torch.scalar_tensor(0.0, dtype=loss.dtype, device=loss.device),
            loss,
        )
    if reduction == "mean":
        lengths = target_lengths.to(loss.device, loss.dtype)
        return aten.mean(aten.div(loss, aten.clamp_min_(lengths, 1)))
    return _reduced(loss, reduction)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    return torch.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return aten.linalg_vector_norm(x1 - x2 + eps, p, -1, keepdim)


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
    return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_avg_pool2d(input, output_size):
    return torch.adaptive_avg_pool2d(input, output_size)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    return aten.adaptive_max_pool2d(input, _two(output_size))[0]


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """attention.cpp; the choice of a back end is kpredict.eager.attending's."""
    backend = attention_backend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    mask = attn_mask
    if mask is not None and mask.dtype is torch.bool:
        mask = torch.where(
            mask, 0.0, torch.scalar_tensor(-math.inf, dtype=query.dtype, device=query.device)
        )
    saves = grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    if backend == "cudnn":
        return aten._scaled_dot_product_cudnn_attention(
            query, key, value, mask, saves, dropout_p, is_causal, False
        )[0]
    if backend == "flash":
        head = query.shape[-1]
        extra = -head % 8
        if extra:
            query, key, value = pad(query, (0, extra)), pad(key, (0, extra)), pad(value, (0, extra))
        out = aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False
        )[0]
        return out[..., :head] if extra else out
    if backend == "efficient":
        if mask is not None:
            if known(mask.stride()) and (
                mask.stride()[-1] != 1 or any([s % 8 for s in mask.stride()[:-1]])
            ):
                length = mask.shape[-1]
                mask = pad(mask, (0, 8 - length % 8))[..., :length]
            mask = mask.expand((*query.shape[:3], key.shape[2]))
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, saves, dropout_p, is_causal
        )[0]
    if not known(backend):
        return one_call("aten._scaled_dot_product_flash_attention", query, key, value)
    # _scaled_dot_product_attention_math
    if is_causal:
        mask = torch.ones(
            (query.shape[-2], key.shape[-2]), dtype=torch.bool, device=query.device
        ).tril()
        mask = torch.where(
            mask, 0.0, torch.scalar_tensor(-math.inf, dtype=query.dtype, device=query.device)
        )
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    q = aten.mul(query, factor)
    k = aten.mul(key.transpose(-2, -1), factor)
    attn = torch.matmul(q, k)
    if mask is not None:
        attn = aten.add_(attn, mask) if not saves else aten.add(attn, mask)
    attn = aten._safe_softmax(attn, -1) if mask is not None else torch.softmax(attn, -1)
    attn = torch.dropout(attn, dropout_p, True) if dropout_p > 0.0 else attn
    return torch.matmul(attn, value)


def multi_head_attention_forward(*args, **kwargs):
    return missing("multi_head_attention_forward", *args)


def channel_shuffle(input, groups):
    b, c, h, w = input.shape
    return input.reshape(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w)


def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False):
    return torch.rrelu(input, lower, upper, training)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return torch.soft_margin_loss(input, target, _code(reduction))


def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    return torch.hinge_embedding_loss(input, target, margin, _code(reduction))


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)
