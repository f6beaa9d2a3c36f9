# ruff: noqa
# mypy: ignore-errors
"""Losses of torch.nn.functional."""

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
    if input.dim() == 3:
        input, target = input.unsqueeze(-1), target.unsqueeze(-1)
        out = aten.nll_loss2d_forward(input, target, weight, _code(reduction), ignore_index)[0]
        return out.squeeze(-1) if reduction == "none" else out
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
    if full:
        loss = aten.add_(loss, 0.9)
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
    product = target * (input if log_input else aten.log(input + eps))
    loss = aten.sub(aten.exp(input), product) if log_input else aten.sub(input, product)
    if full:
        stirling = target * aten.log(target) - target + 0.5 * aten.log(2 * math.pi * target)
        loss = aten.add_(loss, aten.masked_fill(stirling, aten.le(target, 1), 0))
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


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return torch.soft_margin_loss(input, target, _code(reduction))


def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    return torch.hinge_embedding_loss(input, target, margin, _code(reduction))


def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    right = aten.mul(target, torch.log_sigmoid(input))
    wrong = aten.mul(aten.rsub(target, 1), torch.log_sigmoid(aten.neg(input)))
    loss = aten.neg(aten.add(right, wrong))
    if weight is not None:
        loss = loss * weight
    return _reduced(aten.div(aten.sum(loss, (-1,)), input.shape[-1]), reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    return aten.multilabel_margin_loss_forward(input, target, _code(reduction))[0]


def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    return aten.multi_margin_loss(input, target, p, margin, weight, _code(reduction))


def triplet_margin_with_distance_loss(
    anchor, positive, negative, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    distance = torch.pairwise_distance if distance_function is None else distance_function
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = torch.minimum(far, distance(positive, negative))
    return _reduced(aten.clamp_min(margin + near - far, 0), reduction)
