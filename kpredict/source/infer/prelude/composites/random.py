# ruff: noqa
# mypy: ignore-errors
"""Random numbers (Distributions.cpp)."""

import math

import torch


def multinomial(input, num_samples, replacement=False):
    """Distributions.cpp: one sample, or several without replacement, by the exponential trick;
    the checks of the weights run on the device."""
    if replacement and num_samples != 1:
        return aten.multinomial(input, num_samples, replacement)
    low, high = aten.aminmax(input)
    aten._assert_async(aten.bitwise_and(aten.lt(high, math.inf), aten.ge(low, 0)))
    if input.dim() == 1:
        zero = aten.eq(aten.sum(input), 0)
    else:
        zero = aten.any(aten.eq(aten.sum(input, 1), 0))
    aten._assert_async(aten.bitwise_not(zero))
    q = aten.exponential_(torch.empty_like(input), 1)
    q = aten.div(input, q, out=q)
    if num_samples == 1:
        return aten.argmax(q, -1, True)
    return aten.topk(q, num_samples)[1]
