# ruff: noqa
# mypy: ignore-errors
"""Gradients of pointwise ops (derivatives.yaml, FunctionsManual.cpp).

A function has the name of its op and takes the op's arguments by name, `grad` and `result` beside
them; `needs` names the arguments whose gradients are wanted. It returns them by name. Sums over
broadcast dims and casts are the engine's.
"""

import math

import torch


def add(grad, needs, alpha=1, **_):
    out = {"self": grad}
    if "other" in needs:
        out["other"] = grad if alpha == 1 else aten.mul(grad, alpha)
    return out


def sub(grad, needs, alpha=1, **_):
    out = {"self": grad}
    if "other" in needs:
        other = aten.neg(grad)
        out["other"] = other if alpha == 1 else aten.mul(other, alpha)
    return out


def rsub(grad, needs, alpha=1, **_):
    out = {"other": grad}
    if "self" in needs:
        out["self"] = aten.neg(grad)
    return out


def mul(grad, needs, self, other, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.mul(grad, other)
    if "other" in needs:
        out["other"] = aten.mul(grad, self)
    return out


def div(grad, needs, self, other, rounding_mode=None, **_):
    if rounding_mode is not None:
        return {n: torch.zeros_like(grad) for n in needs}
    out = {}
    if "self" in needs:
        out["self"] = aten.div(grad, other)
    if "other" in needs:
        out["other"] = aten.mul(aten.neg(grad), aten.div(aten.div(self, other), other))
    return out


def neg(grad, **_):
    return {"self": aten.neg(grad)}


def pow(grad, needs, self, exponent, result, **_):
    out = {}
    number = not isinstance(exponent, torch.Tensor)
    if "self" in needs:
        if number and exponent == 0:
            out["self"] = torch.zeros_like(grad)
        elif number:
            out["self"] = aten.mul(grad, aten.mul(aten.pow(self, exponent - 1), exponent))
        else:
            inner = aten.mul(exponent, aten.pow(self, aten.sub(exponent, 1)))
            zero = torch.zeros((), device=grad.device)
            out["self"] = aten.where(aten.eq(exponent, 0.0), zero, aten.mul(grad, inner))
    if "exponent" in needs:
        out["exponent"] = missing("backward of pow", exponent)
    return out


def exp(grad, result, **_):
    return {"self": aten.mul(grad, result)}


def exp2(grad, result, **_):
    return {"self": aten.mul(aten.mul(grad, result), math.log(2))}


def expm1(grad, result, **_):
    return {"self": aten.mul(grad, aten.add(result, 1))}


def log(grad, self, **_):
    return {"self": aten.div(grad, self)}


def log2(grad, self, **_):
    return {"self": aten.div(grad, aten.mul(self, 0.69))}


log10 = log2


def log1p(grad, self, **_):
    return {"self": aten.div(grad, aten.add(self, 1))}


def sqrt(grad, result, **_):
    return {"self": aten.div(grad, aten.mul(result, 2))}


def rsqrt(grad, result, **_):
    return {"self": aten.mul(aten.mul(grad, -0.5), aten.pow(result, 3))}


def reciprocal(grad, result, **_):
    return {"self": aten.mul(aten.neg(grad), aten.mul(result, result))}


def sin(grad, self, **_):
    return {"self": aten.mul(grad, aten.cos(self))}


def cos(grad, self, **_):
    return {"self": aten.mul(grad, aten.neg(aten.sin(self)))}


def tan(grad, result, **_):
    return {"self": aten.mul(grad, aten.add(aten.pow(result, 2), 1))}


def tanh(grad, result, **_):
    return {"self": aten.tanh_backward(grad, result)}


def sigmoid(grad, result, **_):
    return {"self": aten.sigmoid_backward(grad, result)}


def abs(grad, self, **_):
    return {"self": aten.mul(grad, aten.sgn(self))}


def erf(grad, self, **_):
    return {"self": aten.mul(aten.mul(aten.exp(aten.neg(aten.pow(self, 2))), 1.128), grad)}


def relu(grad, result, **_):
    return {"self": aten.threshold_backward(grad, result, 0)}


def threshold(grad, self, threshold, **_):
    return {"self": aten.threshold_backward(grad, self, threshold)}


def leaky_relu(grad, self, negative_slope=0.01, **_):
    return {"self": aten.leaky_relu_backward(grad, self, negative_slope, False)}


def gelu(grad, self, approximate="none", **_):
    return {"self": aten.gelu_backward(grad, self, approximate=approximate)}


def silu(grad, self, **_):
    return {"self": aten.silu_backward(grad, self)}


def mish(grad, self, **_):
    return {"self": aten.mish_backward(grad, self)}


def hardswish(grad, self, **_):
    return {"self": aten.hardswish_backward(grad, self)}


def hardsigmoid(grad, self, **_):
    return {"self": aten.hardsigmoid_backward(grad, self)}


def hardtanh(grad, self, min_val=-1, max_val=1, **_):
    return {"self": aten.hardtanh_backward(grad, self, min_val, max_val)}


def softplus(grad, self, beta=1, threshold=20, **_):
    return {"self": aten.softplus_backward(grad, self, beta, threshold)}


def elu(grad, self, alpha=1, scale=1, input_scale=1, **_):
    return {"self": aten.elu_backward(grad, alpha, scale, input_scale, False, self)}


def log_sigmoid_forward(grad, self, result, **_):
    return {"self": aten.log_sigmoid_backward(grad, self, result[1])}


def _prelu_kernel(grad, needs, self, weight, **_):
    a, b = aten._prelu_kernel_backward(grad, self, weight)
    return {"self": a, "weight": b}


def _zero(grad):
    return torch.zeros((), dtype=grad.dtype, device=grad.device)


def clamp(grad, self, min=None, max=None, **_):
    zero = _zero(grad)
    if min is not None and max is not None:
        inside = aten.logical_and_(aten.ge(self, min), aten.le(self, max))
    else:
        inside = aten.ge(self, min) if max is None else aten.le(self, max)
    return {"self": aten.where(inside, grad, zero)}


def clamp_min(grad, self, min, **_):
    zero = _zero(grad)
    return {"self": aten.where(aten.ge(self, min), grad, zero)}


def clamp_max(grad, self, max, **_):
    zero = _zero(grad)
    return {"self": aten.where(aten.le(self, max), grad, zero)}


def _larger(grad, same, less):
    return aten.masked_fill_(aten.where(same, aten.div(grad, 2), grad), less, 0)


def maximum(grad, needs, self, other, **_):
    out = {}
    if "self" in needs:
        out["self"] = _larger(grad, aten.eq(self, other), aten.lt(self, other))
    if "other" in needs:
        out["other"] = _larger(grad, aten.eq(self, other), aten.gt(self, other))
    return out


minimum = maximum


def where(grad, needs, condition, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.where(condition, grad, _zero(grad))
    if "other" in needs:
        out["other"] = aten.where(condition, _zero(grad), grad)
    return out


def masked_fill(grad, needs, mask, **_):
    return {"self": aten.masked_fill(grad, mask, 0)}


def _to_copy(grad, self, **_):
    return {"self": grad.to(self)}


def clone(grad, **_):
    return {"self": grad}


def lerp(grad, needs, weight, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.mul(grad, 1 - weight)
    if "end" in needs:
        out["end"] = aten.mul(grad, weight)
    return out


def addcmul(grad, needs, tensor1, tensor2, value=1, **_):
    out = {"self": grad}
    if "tensor1" in needs:
        out["tensor1"] = aten.mul(grad, aten.mul(tensor2, value))
    if "tensor2" in needs:
        out["tensor2"] = aten.mul(grad, aten.mul(tensor1, value))
    return out


def remainder(grad, needs, **_):
    return {"self": grad}


fmod = remainder


def round(grad, needs, **_):
    return {"self": torch.zeros_like(grad)}


floor = round
ceil = round
sign = round
sgn = round
trunc = round


def glu(grad, self, dim=-1, **_):
    return {"self": aten.glu_backward(grad, self, dim)}


def atan(grad, self, **_):
    return {"self": aten.div(grad, aten.add(aten.mul(self, self), 1))}
