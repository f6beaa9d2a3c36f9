# ruff: noqa
# mypy: ignore-errors
"""Reductions, sorting, unique and comparisons (ReduceOps.cpp, Sorting.cpp, TensorCompare.cpp)."""

import math

import torch


def std(input, dim=None, unbiased=True, correction=None, keepdim=False):
    if isinstance(dim, bool):
        unbiased, dim = dim, None
    c = correction if correction is not None else (1 if unbiased else 0)
    return aten.std(input, dim, correction=c, keepdim=keepdim)


def var(input, dim=None, unbiased=True, correction=None, keepdim=False):
    if isinstance(dim, bool):
        unbiased, dim = dim, None
    c = correction if correction is not None else (1 if unbiased else 0)
    return aten.var(input, dim, correction=c, keepdim=keepdim)


def var_mean(input, dim=None, unbiased=True, correction=None, keepdim=False):
    c = correction if correction is not None else (1 if unbiased else 0)
    return aten.var_mean(input, dim, correction=c, keepdim=keepdim)


def std_mean(input, dim=None, unbiased=True, correction=None, keepdim=False):
    c = correction if correction is not None else (1 if unbiased else 0)
    return aten.std_mean(input, dim, correction=c, keepdim=keepdim)


def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """_tensor.py / functional.py norm: the vector norm for all but "nuc"."""
    if p == "nuc":
        return linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype)
    if p == "fro" or p is None:
        p = 2
    return aten.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype)


def linalg_norm(input, ord=None, dim=None, keepdim=False, dtype=None):
    pair = isinstance(dim, (tuple, list)) and len(dim) == 2
    if ord is not None and (pair or (dim is None and input.dim() == 2)):
        return linalg_matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype)
    if ord is None or not isinstance(ord, str):
        return aten.linalg_vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if ord == "fro":
        return aten.linalg_vector_norm(
            input, 2, (-2, -1) if dim is None else dim, keepdim, dtype=dtype
        )
    return missing("linalg.norm", input)


def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    return aten.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype)


def argwhere(input):
    return aten.nonzero(input)


def sort(input, dim=-1, descending=False, stable=False):
    if stable:
        return aten.sort(input, stable=True, dim=dim, descending=descending)
    return aten.sort(input, dim, descending)


def argsort(input, dim=-1, descending=False, stable=False):
    return aten.sort(input, dim, descending)[1]


def nonzero(input, as_tuple=False):
    out = aten.nonzero(input)
    sync("nonzero", input)
    if as_tuple and known(input.dim()):
        return tuple(out.select(1, i) for i in range(input.dim()))
    return out


def masked_select(input, mask):
    sync("masked_select", input)
    return aten.masked_select(input, mask)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    sync("unique", input)
    if dim is not None:
        values, inverse, counts = aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = aten._unique2(input, sorted, return_inverse, return_counts)
    if return_inverse and return_counts:
        return values, inverse, counts
    if return_inverse:
        return values, inverse
    if return_counts:
        return values, counts
    return values


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    sync("unique_consecutive", input)
    values, inverse, counts = aten.unique_consecutive(input, return_inverse, return_counts, dim)
    if return_inverse and return_counts:
        return values, inverse, counts
    if return_inverse:
        return values, inverse
    return (values, counts) if return_counts else values


def bincount(input, weights=None, minlength=0):
    sync("bincount", input)
    return aten.bincount(input, weights, minlength)


def where(condition, input=None, other=None):
    """TensorCompare.cpp: a number becomes a tensor on the device first."""
    if input is None and other is None:
        return nonzero(condition, True)
    return aten.where(condition, _tensor(input, other, condition), _tensor(other, input, condition))


def _tensor(value, beside, condition):
    if not known(value) or not isinstance(value, (int, float)):
        return value
    if isinstance(beside, torch.Tensor):
        whole = isinstance(value, int) or beside.is_floating_point() is True
        dtype = beside.dtype if whole else torch.float32
    else:
        dtype = torch.float32 if isinstance(value, float) else torch.int64
    return torch.full((), value, dtype=dtype, device=condition.device)


def equal(input, other):
    """Equal.cpp: compared on the device, and the host reads the answer."""
    if known(input.shape) and known(other.shape) and input.shape != other.shape:
        return False
    aten.all(aten.eq(input, other))
    sync("equal", input)
    return unknown()


def allclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    close = isclose(input, other, rtol, atol)
    return aten.all(close).item()


def isclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    close = aten.eq(input, other)
    allowed = aten.add(aten.abs(aten.mul(other, rtol)), atol)
    actual = aten.abs(aten.sub(input, other))
    return aten.bitwise_or_(close, aten.bitwise_and(isfinite(actual), aten.le(actual, allowed)))


def isnan(input):
    return aten.ne(input, input)


def isfinite(input):
    return aten.mul(aten.eq(input, input), aten.ne(aten.abs(input), math.inf))


def isinf(input):
    return aten.isinf(input)


def diff(input, n=1, dim=-1, prepend=None, append=None):
    if known(input.dim()):
        size = input.shape[dim]
        return aten.sub(
            aten.slice(input, dim, 1, size),
            aten.slice(input, dim, 0, size - 1 if known(size) else None),
        )
    return aten.sub(input, input)


def cumulative_trapezoid(y, x=None, dx=1, dim=-1):
    """Integration.cpp: sums of neighbours, times half the step."""
    n = y.shape[dim]
    both = aten.add(aten.slice(y, dim, 1, n), aten.slice(y, dim, 0, n - 1))
    if x is not None:
        return aten.cumsum(aten.mul(both, aten.div(diff(x, 1, dim), 2.0)), dim)
    return aten.cumsum(aten.mul(both, dx / 2), dim)


def trapezoid(y, x=None, dx=1, dim=-1):
    if x is not None:
        n = y.shape[dim]
        both = aten.add(aten.slice(y, dim, 1, n), aten.slice(y, dim, 0, n - 1))
        return aten.div(aten.sum(aten.mul(both, diff(x)), (dim,)), 2.0)
    ends = aten.mul(aten.add(y.select(dim, 0), y.select(dim, -1)), 0.5)
    return aten.mul(aten.sub(aten.sum(y, (dim,)), ends), dx)


def trapz(y, x=None, dx=1, dim=-1):
    return trapezoid(y, x, dx, dim)


def msort(input):
    return aten.sort(input, 0, False)[0]


def nanmean(input, dim=None, keepdim=False, dtype=None):
    present = aten.logical_not_(isnan(input))
    number = aten.sum(present, () if dim is None else dim, keepdim)
    return aten.div(aten.nansum(input, dim, keepdim), number)


def isreal(input):
    return torch.ones_like(input, dtype=torch.bool)


def quantile(input, q, dim=None, keepdim=False, interpolation="linear"):
    """Sorting.cpp quantile_compute: sort, ranks, NaN mask, two gathers and a lerp."""
    if dim is None:
        input = input.flatten()
    n = input.shape[-1 if dim is None else dim]
    if (
        known(input.dim())
        and known(dim)
        and dim is not None
        and dim % input.dim() == input.dim() - 1
    ):
        input = input.contiguous()
    values = aten.sort(input, -1 if dim is None else dim, False)[0]
    if not isinstance(q, torch.Tensor):
        q = torch.full((), q, dtype=input.dtype, device=input.device)
    double = release() >= (2, 14)  # ranks in double precision from then on
    if double:
        q = aten._to_copy(q, dtype=torch.float64)
    ranks = aten.mul(q, n)
    missing_ = aten.any(aten.ne(values, values), -1, True)
    wide = (*missing_.shape[:-1], ranks.numel())
    ranks = aten.clone(aten.expand(ranks, wide), memory_format=torch.contiguous_format)
    ranks = aten.masked_fill_(ranks, missing_, 1.0)
    below = ranks.to(torch.int64)
    low = aten.gather(values, -1, below)
    weights = aten.sub(ranks, below)
    if double:
        weights = aten._to_copy(weights, dtype=input.dtype)
    above = aten.ceil_(ranks).to(torch.int64)
    out = aten.lerp_(low, aten.gather(values, -1, above), weights)
    return out if keepdim else out.squeeze(-1)


def nanquantile(input, q, dim=None, keepdim=False, interpolation="linear"):
    return missing("nanquantile", input)


def max(input, dim=None, keepdim=False, other=None):
    other = dim if isinstance(dim, torch.Tensor) else other
    if other is not None:
        return aten.maximum(input, other)
    if dim is None:
        return aten.max(input)
    return aten.max(input, dim, keepdim)


def min(input, dim=None, keepdim=False, other=None):
    other = dim if isinstance(dim, torch.Tensor) else other
    if other is not None:
        return aten.minimum(input, other)
    if dim is None:
        return aten.min(input)
    return aten.min(input, dim, keepdim)


def logsumexp(input, dim, keepdim=False):
    return aten.logsumexp(input, dim, keepdim)


def special_logsumexp(input, dim, keepdim=False):
    return aten.logsumexp(input, dim, keepdim)


def max_of(a, b):
    if not known(a) or not known(b):
        return unknown()
    return a if a > b else b
