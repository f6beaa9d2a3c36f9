# ruff: noqa
# mypy: ignore-errors
"""Other names of pointwise ops, and short formulas (BinaryOps.cpp, UnaryOps.cpp)."""


def square(input):
    return aten.pow(input, 2)


def square_(input):
    return aten.pow_(input, 2)


def true_divide(input, other):
    return aten.div(input, other)


divide = true_divide


def multiply(input, other):
    return aten.mul(input, other)


def subtract(input, other, alpha=1):
    return aten.sub(input, other, alpha=alpha)


def negative(input):
    return aten.neg(input)


def absolute(input):
    return aten.abs(input)


def clip(input, min=None, max=None):
    return aten.clamp(input, min, max)


def clip_(input, min=None, max=None):
    return aten.clamp_(input, min, max)


def greater(input, other):
    return aten.gt(input, other)


def greater_equal(input, other):
    return aten.ge(input, other)


def less(input, other):
    return aten.lt(input, other)


def less_equal(input, other):
    return aten.le(input, other)


def not_equal(input, other):
    return aten.ne(input, other)


def arccos(input):
    return aten.acos(input)


def arcsin(input):
    return aten.asin(input)


def arctan(input):
    return aten.atan(input)


def arctan2(input, other):
    return aten.atan2(input, other)


def fix(input):
    return aten.trunc(input)


def logaddexp(input, other):
    return aten.logaddexp(input, other)


def special_expit(input):
    return aten.sigmoid(input)


def special_ndtr(input):
    return aten.mul(aten.add(aten.erf(aten.mul(input, 0.7071)), 1), 0.5)


def clamp(input, min=None, max=None):
    return aten.clamp(input, min, max)


def arcsinh(input):
    return aten.asinh(input)


def arccosh(input):
    return aten.acosh(input)


def arctanh(input):
    return aten.atanh(input)


def float_power(input, exponent):
    wide = torch.complex128 if input.is_complex() is True else torch.float64
    exponent = exponent.to(wide) if isinstance(exponent, torch.Tensor) else exponent
    return aten.pow(input.to(wide), exponent)


def positive(input):
    return input


def conj(input):
    """A view that the next op resolves by a kernel."""
    return aten.conj_physical(input) if input.is_complex() is True else input


def resolve_conj(input):
    return input


def resolve_neg(input):
    return input


def special_i0(input):
    return aten.i0(input)


def special_digamma(input):
    return aten.digamma(input)


special_psi = special_digamma


def special_erf(input):
    return aten.erf(input)


def special_erfc(input):
    return aten.erfc(input)


def special_erfinv(input):
    return aten.erfinv(input)


def special_exp2(input):
    return aten.exp2(input)


def special_expm1(input):
    return aten.expm1(input)


def special_gammaln(input):
    return aten.lgamma(input)


def special_gammainc(input, other):
    return aten.igamma(input, other)


def special_gammaincc(input, other):
    return aten.igammac(input, other)


def special_log1p(input):
    return aten.log1p(input)


def special_logit(input, eps=None):
    return aten.logit(input, eps)


def special_round(input, decimals=0):
    return aten.round(input) if decimals == 0 else aten.round(input, decimals=decimals)


def special_sinc(input):
    return aten.sinc(input)


def special_xlogy(input, other):
    return aten.xlogy(input, other)


def special_polygamma(n, input):
    return aten.polygamma(n, input)


def special_log_softmax(input, dim, dtype=None):
    return log_softmax(input, dim, dtype)
