# ruff: noqa
# mypy: ignore-errors
"""Losses that are formulas of other ops (Loss.cpp), and gradient clipping."""

import torch


def kl_div(input, target, reduction=1, log_target=False):
    """Loss.cpp kl_div: two pointwise formulas."""
    if log_target:
        out = aten.mul(aten.exp(target), aten.sub(target, input))
    else:
        out = aten.sub(aten.xlogy(target, target), aten.mul(target, input))
    return _reduce(out, reduction)


def _reduce(x, reduction):
    if reduction == 1 or reduction == "mean":
        return aten.mean(x)
    if reduction == 2 or reduction == "sum":
        return aten.sum(x)
    return x


def soft_margin_loss(input, target, reduction=1):
    x = aten.log1p_(aten.exp_(aten.mul_(aten.neg(input), target)))
    return _reduce(x, reduction)


def hinge_embedding_loss(input, target, margin=1.0, reduction=1):
    zeros = torch.zeros_like(input)
    diff = aten.sub_(torch.full_like(input, margin), input)
    diff = aten.clamp_min_(diff, 0)
    a = aten.where(aten.ne(target, 1), diff, zeros)
    b = aten.where(aten.ne(target, -1), input, zeros)
    return _reduce(aten.add(a, b), reduction)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=1
):
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = aten.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduce(aten.clamp_min(aten.sub(aten.add(near, margin), far), 0), reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    dot = aten.sum(aten.mul(input1, input2), -1)
    a = aten.add(aten.sum(aten.mul(input1, input1), -1), 1e-12)
    b = aten.add(aten.sum(aten.mul(input2, input2), -1), 1e-12)
    cos = aten.div(dot, aten.sqrt_(aten.mul(a, b)))
    zeros = torch.zeros_like(cos)
    pos = aten.sub_(torch.full_like(cos, 1.0), cos)
    neg = aten.clamp_min_(aten.sub(cos, margin), 0)
    out = aten.add(
        aten.where(aten.eq(target, 1), pos, zeros), aten.where(aten.eq(target, -1), neg, zeros)
    )
    return _reduce(out, reduction)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """nn/utils/clip_grad.py over gradients like the parameters, in one group."""
    grads = [parameters] if isinstance(parameters, torch.Tensor) else [p.grad for p in parameters]
    norms = aten._foreach_norm(grads, norm_type)
    if len(grads) == 1:
        total = aten.abs(norms[0])
    else:
        total = aten.linalg_vector_norm(aten.stack(norms), norm_type)
    factor = aten.mul(aten.reciprocal(aten.add(total, 1e-6)), max_norm)
    factor = aten.clamp(factor, max=1.0)
    aten._foreach_mul_(grads, factor)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    grads = [parameters] if isinstance(parameters, torch.Tensor) else [p.grad for p in parameters]
    aten._foreach_clamp_min_(grads, -1.0)
    aten._foreach_clamp_max_(grads, 1.0)
