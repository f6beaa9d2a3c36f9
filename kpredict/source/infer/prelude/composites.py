# ruff: noqa
# mypy: ignore-errors
"""torch.* and Tensor.* that open into other ops (aten/src/ATen/native, CompositeImplicit)."""

import math

import torch


# -- LinearAlgebra.cpp: matmul; Linear.cpp: linear, bilinear, einsum ------------------------------
def _folds(a, b, larger):
    t1, t2 = (a, b) if larger else (b.mT, a)
    if b.requires_grad if larger else a.requires_grad:
        return True
    if a.dim() == 2:
        return False
    s, st = t1.shape, t1.stride()
    if not known(st):
        return True
    for i in range(t1.dim() - 2):
        if st[i] != st[i + 1] * s[i + 1]:
            return False
    return True


def matmul(input, other):
    if not known(input.dim()) or not known(other.dim()):
        if known(other.dim()) and other.dim() == 2:
            return aten.mm(input, other)
        return aten.bmm(input, other)
    n, m = input.dim(), other.dim()
    if n == 1 and m == 1:
        return aten.dot(input, other)
    if n == 2 and m == 1:
        return aten.mv(input, other)
    if n == 1 and m == 2:
        return aten.mm(aten.unsqueeze(input, 0), other).squeeze(0)
    if n == 2 and m == 2:
        return aten.mm(input, other)
    larger = n >= m
    if (n >= 3 or m >= 3) and (n <= 2 or m <= 2) and _folds(input, other, larger):
        t1, t2 = (input, other) if larger else (other.mT, input)
        if not larger and t2.dim() == 2:
            t2 = t2.t()
        shape = t1.shape[:-1]
        folded = t1.reshape(-1, t1.shape[-1])
        if t2.dim() == 1:
            return aten._unsafe_view(aten.mv(folded, t2), shape)
        out = aten._unsafe_view(aten.mm(folded, t2), (*shape, t2.shape[-1]))
        return out if larger else out.mT.contiguous()
    if n == 1:
        input = aten.unsqueeze(input, 0)
    if m == 1:
        other = aten.unsqueeze(other, 1)
    batch = _broadcast(input.shape[:-2], other.shape[:-2])
    a = input.expand((*batch, *input.shape[-2:])).reshape(-1, input.shape[-2], input.shape[-1])
    b = other.expand((*batch, *other.shape[-2:])).reshape(-1, other.shape[-2], other.shape[-1])
    out = aten._unsafe_view(aten.bmm(a, b), (*batch, input.shape[-2], other.shape[-1]))
    if n == 1:
        out = out.squeeze(-2)
    if m == 1:
        out = out.squeeze(-1)
    return out


def _broadcast(a, b):
    if len(a) < len(b):
        a, b = b, a
    b = (1,) * (len(a) - len(b)) + b
    return tuple(y if x == 1 else x for x, y in zip(a, b))


def linear(input, weight, bias=None):
    if not known(input.dim()):
        if bias is None:
            return aten.mm(input, weight.t())
        return aten.addmm(bias, input, weight.t())
    if input.dim() == 2 and bias is not None:
        return aten.addmm(bias, input, weight.t())
    if bias is not None:
        contiguous = input.is_contiguous()
        if contiguous is True or not known(contiguous):
            flat = (
                input.reshape(-1, input.shape[-1])
                if contiguous is True
                else aten.view(input, (-1, input.shape[-1]))
            )
            out = aten.addmm(bias, flat, weight.t())
            return aten.view(out, (*input.shape[:-1], weight.shape[0]))
    out = matmul(input, weight.t())
    if bias is not None:
        out.add_(bias)
    return out


def bilinear(input1, input2, weight, bias=None):
    return aten._trilinear(input1, weight, input2, (1, 3), (0,), (1, 2), (2, 3))


def mm(input, mat2):
    return aten.mm(input, mat2)


def outer(input, vec2):
    return aten.mul(input.unsqueeze(1), vec2)


ger = outer


def inner(input, other):
    return matmul(input, other.mT)


def chain_matmul(*matrices):
    out = matrices[0]
    for m in matrices[1:]:
        out = out @ m
    return out


def tensordot(a, b, dims=2):
    return einsum_unknown(a, b)


def einsum(equation, *operands):
    if len(operands) == 1 and not isinstance(operands[0], torch.Tensor):
        operands = operands[0]
    equation = equation.replace(" ", "")
    if "." in equation or not known(equation):
        return einsum_unknown(*operands)
    if "->" in equation:
        left, out = equation.split("->")
    else:
        left = equation
        out = "".join([c for c in sorted(set(left.replace(",", ""))) if left.count(c) == 1])
    terms = left.split(",")
    x, sub = operands[0], terms[0]
    for k in range(1, len(operands)):
        later = "".join(terms[k + 1 :]) + out
        x, sub = _pair(x, sub, operands[k], terms[k], later)
    gone = [i for i, c in enumerate(sub) if c not in out]
    if gone:
        x = aten.sum(x, gone)
        sub = "".join([c for c in sub if c in out])
    order = [sub.index(c) for c in out]
    return x.permute(order)


def _pair(x, xs, y, ys, later):
    """Linear.cpp sumproduct_pair: batch, left-only, right-only and summed letters, then bmm."""
    for i in reversed(range(len(xs))):
        if xs[i] not in ys and xs[i] not in later:
            x = aten.sum(x, [i])
            xs = xs[:i] + xs[i + 1 :]
    for i in reversed(range(len(ys))):
        if ys[i] not in xs and ys[i] not in later:
            y = aten.sum(y, [i])
            ys = ys[:i] + ys[i + 1 :]
    batch = [c for c in xs if c in ys and c in later]
    summed = [c for c in xs if c in ys and c not in later]
    left = [c for c in xs if c not in ys]
    right = [c for c in ys if c not in xs]
    if not summed:
        letters = xs + "".join(right)
        a = x
        for c in right:
            a = a.unsqueeze(-1)
        b = y.permute([ys.index(c) for c in letters if c in ys])
        for i, c in enumerate(letters):
            if c not in ys:
                b = b.unsqueeze(i)
        return aten.mul(a, b), letters
    a = x.permute([xs.index(c) for c in batch + left + summed])
    b = y.permute([ys.index(c) for c in batch + summed + right])
    size = {c: n for c, n in zip(xs, x.shape)}
    for c, n in zip(ys, y.shape):
        size[c] = n
    nb, nl, ns, nr = (
        _product(batch, size),
        _product(left, size),
        _product(summed, size),
        _product(right, size),
    )
    a = a.reshape(nb, nl, ns)
    b = b.reshape(nb, ns, nr)
    out = aten.bmm(a, b)
    out = aten.view(out, tuple(size[c] for c in batch + left + right))
    return out, "".join(batch + left + right)


def _product(letters, size):
    n = 1
    for c in letters:
        n = n * size[c]
    return n


def einsum_unknown(*operands):
    if len(operands) == 2:
        return aten.bmm(operands[0], operands[1])
    return missing("einsum", *operands)


# -- softmax, dropout, norms ------------------------------------------------------------------------
def softmax(input, dim, dtype=None):
    half = dtype is torch.float32 and input.dtype is torch.float16
    if dtype is None or half:
        return aten._softmax(input, dim, half)
    return aten._softmax(input.to(dtype), dim, False)


def log_softmax(input, dim, dtype=None):
    half = dtype is torch.float32 and input.dtype is torch.float16
    if dtype is None or half:
        return aten._log_softmax(input, dim, half)
    return aten._log_softmax(input.to(dtype), dim, False)


def dropout(input, p=0.5, train=True):
    if p == 0 or not train:
        return input
    if p == 1:
        return input * 0
    return aten.native_dropout(input, p, train)[0]


def feature_dropout(input, p, train):
    if p == 0 or not train:
        return input
    noise = (
        input.new_empty((*input.shape[:2], *(1,) * (input.dim() - 2)))
        if known(input.dim())
        else input.new_empty((1,))
    )
    noise = aten.bernoulli_(noise, 1 - p)
    noise = aten.div_(noise, 1 - p)
    return aten.mul(input, noise)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return aten.native_layer_norm(input.contiguous(), normalized_shape, weight, bias, eps)[0]


def rms_norm(input, normalized_shape, weight=None, eps=None):
    return aten._fused_rms_norm(input, normalized_shape, weight, eps)[0]


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    if known(input.shape):
        n, c = input.shape[0], input.shape[1]
        hw = input.numel() // (n * c)
    else:
        n = c = hw = unknown()
    return aten.native_group_norm(input.contiguous(), weight, bias, n, c, hw, num_groups, eps)[0]


def batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    """Normalization.cpp _select_batch_norm_backend: cuDNN where it can."""
    dims = input.dim()
    cudnn = weight is not None and bias is not None and input.is_cuda and eps >= 1e-5
    cudnn = cudnn and (running_mean is not None or training)
    if known(input.shape):
        cudnn = cudnn and dims >= 3 and dims <= 5
        cudnn = cudnn and input.shape[0] <= (880801 if training else 65535)
    if cudnn and input.dtype is torch.bfloat16:
        cudnn = False
    if cudnn:
        return aten.cudnn_batch_norm(
            input.contiguous() if input.dim() != 4 else input,
            weight,
            bias,
            running_mean,
            running_var,
            training,
            momentum,
            eps,
        )[0]
    return aten.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


def instance_norm(
    input,
    running_mean,
    running_var,
    weight,
    bias,
    use_input_stats,
    momentum,
    eps,
    cudnn_enabled=True,
):
    b, c = input.shape[0], input.shape[1]
    shape = (1, b * c, *input.shape[2:])
    w = None if weight is None else weight.repeat(b)
    bb = None if bias is None else bias.repeat(b)
    rm = None if running_mean is None else running_mean.repeat(b)
    rv = None if running_var is None else running_var.repeat(b)
    out = batch_norm(input.contiguous().view(shape), rm, rv, w, bb, use_input_stats, momentum, eps)
    return out.view(input.shape)


# -- reductions -------------------------------------------------------------------------------------
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
        return missing("norm", input)
    if p == "fro" or p is None:
        p = 2
    return aten.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype)


def linalg_norm(input, ord=None, dim=None, keepdim=False, dtype=None):
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


def where(condition, *rest, **named):
    if not rest and not named:
        return nonzero(condition, True)
    return aten.where(condition, *rest, **named)


def equal(input, other):
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


def square(input):
    return aten.pow(input, 2)


def square_(input):
    return aten.pow_(input, 2)


def diff(input, n=1, dim=-1, prepend=None, append=None):
    if known(input.dim()):
        size = input.shape[dim]
        return aten.sub(
            aten.slice(input, dim, 1, size),
            aten.slice(input, dim, 0, size - 1 if known(size) else None),
        )
    return aten.sub(input, input)


def cumulative_trapezoid(y, x=None, dim=-1):
    return missing("cumulative_trapezoid", y)


def trapezoid(y, x=None, dx=1, dim=-1):
    return missing("trapezoid", y)


# -- shapes -----------------------------------------------------------------------------------------
def chunk(input, chunks, dim=0):
    if not known(input.dim()) or not known(input.shape[dim]):
        return several_of(chunks, aten.slice(input, dim, 0, unknown()))
    return aten.split(input, -(-input.shape[dim] // chunks), dim)


def tensor_split(input, indices_or_sections, dim=0):
    return several_of(indices_or_sections, aten.slice(input, dim, 0, unknown()))


def split(input, split_size_or_sections, dim=0):
    if isinstance(split_size_or_sections, int):
        return aten.split(input, split_size_or_sections, dim)
    return aten.split_with_sizes(input, split_size_or_sections, dim)


def narrow(input, dim, start, length):
    if not isinstance(start, int) and isinstance(start, torch.Tensor):
        start = start.item()
    return aten.slice(input, dim, start, start + length)


def movedim(input, source, destination):
    n = input.dim()
    if not known(n):
        return aten.permute(input, unknown())
    src = [source] if isinstance(source, int) else list(source)
    dst = [destination] if isinstance(destination, int) else list(destination)
    src = [s % n for s in src]
    dst = [d % n for d in dst]
    rest = [d for d in range(n) if d not in src]
    order = []
    k = 0
    for i in range(n):
        if i in dst:
            order.append(src[dst.index(i)])
        else:
            order.append(rest[k])
            k = k + 1
    return aten.permute(input, order)


moveaxis = movedim


def swapaxes(input, axis0, axis1):
    return aten.transpose(input, axis0, axis1)


swapdims = swapaxes


def adjoint(input):
    return aten.transpose(input, -2, -1)


def numpy_T(input):
    return input.T


def ravel(input):
    return input.contiguous().view(-1)


def unflatten(input, dim, sizes):
    if not known(input.dim()):
        return aten.view(input, unknown())
    d = dim % input.dim()
    return aten.view(input, (*input.shape[:d], *sizes, *input.shape[d + 1 :]))


def broadcast_to(input, size):
    return aten.expand(input, size)


def broadcast_tensors(*tensors):
    shape = tensors[0].shape
    for t in tensors[1:]:
        shape = _broadcast(shape, t.shape)
    return [aten.expand(t, shape) for t in tensors]


def atleast_1d(input):
    return input.reshape(1) if input.dim() == 0 else input


def atleast_2d(input):
    return (
        input.reshape(1, 1)
        if input.dim() == 0
        else input.unsqueeze(0)
        if input.dim() == 1
        else input
    )


def hstack(tensors):
    return aten.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def vstack(tensors):
    return aten.cat([atleast_2d(t) for t in tensors], 0)


def column_stack(tensors):
    return aten.cat([t.unsqueeze(1) if t.dim() == 1 else t for t in tensors], 1)


def concat(tensors, dim=0):
    return aten.cat(tensors, dim)


concatenate = concat


def meshgrid(*tensors, indexing="ij"):
    if len(tensors) == 1 and not isinstance(tensors[0], torch.Tensor):
        tensors = tensors[0]
    shape = [t.numel() for t in tensors]
    n = len(tensors)
    out = []
    for i, t in enumerate(tensors):
        view = [1] * n
        view[i] = -1
        out.append(aten.expand(aten.view(t, tuple(view)), tuple(shape)))
    if indexing == "xy":
        out = [t.transpose(0, 1) for t in out]
    return out


def repeat_interleave(input, repeats=None, dim=None, output_size=None):
    if isinstance(repeats, int):
        if dim is None:
            input = input.flatten()
            dim = 0
        x = aten.clone(
            aten.expand(
                aten.unsqueeze(input, dim + 1 if dim >= 0 else dim),
                _with(input.shape, dim, repeats),
            ),
            memory_format=torch.contiguous_format,
        )
        return x.flatten(dim, dim + 1) if dim >= 0 else x.flatten(dim - 1, dim)
    sync("repeat_interleave", input)
    if repeats is None:
        return aten.repeat_interleave(input, output_size=output_size)
    indices = aten.repeat_interleave(repeats, output_size=output_size)
    if dim is None:
        return aten.index_select(input.flatten(), 0, indices)
    return aten.index_select(input, dim, indices)


def _with(shape, dim, n):
    d = dim % len(shape)
    return (*shape[: d + 1], n, *shape[d + 1 :])


def tile(input, *dims):
    reps = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return aten.repeat(input, (1,) * (input.dim() - len(reps)) + tuple(reps))


def fliplr(input):
    return aten.flip(input, (1,))


def flipud(input):
    return aten.flip(input, (0,))


def diag(input, diagonal=0):
    if input.dim() == 1:
        return aten.diag_embed(input, diagonal)
    return aten.clone(aten.diagonal(input, diagonal))


def index_copy(input, dim, index, source):
    return aten.index_copy(input, dim, index, source)


def index_put_(input, indices, values, accumulate=False):
    return aten.index_put_(input, indices, values, accumulate)


def type_as(input, other):
    return input.to(other.dtype)


def one_hot(input, num_classes=-1):
    if known(num_classes) and num_classes == -1:
        num_classes = int(aten.max(input).item()) + 1
    out = torch.zeros((*input.shape, num_classes), dtype=torch.int64, device=input.device)
    return aten.scatter_(out, -1, input.unsqueeze(-1), 1)


def vander(x, N=None, increasing=False):
    return missing("vander", x)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    if p == 2.0 and known(x1.shape) and known(x2.shape):
        if compute_mode == "use_mm_for_euclid_dist" or (
            compute_mode == "use_mm_for_euclid_dist_if_necessary"
            and (x1.shape[-2] > 25 or x2.shape[-2] > 25)
        ):
            a = aten.sum(aten.pow(x1, 2), -1, True)
            b = aten.sum(aten.pow(x2, 2), -1, True)
            left = aten.cat([aten.mul(x1, -2), a, torch.ones_like(a)], -1)
            right = aten.cat([x2, torch.ones_like(b), b], -1)
            out = matmul(left, right.mT)
            return aten.sqrt_(aten.clamp_min_(out, 0))
    return aten._cdist_forward(x1, x2, p, None)


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


def special_softmax(input, dim, dtype=None):
    return softmax(input, dim, dtype)


def special_logsumexp(input, dim, keepdim=False):
    return aten.logsumexp(input, dim, keepdim)


def selu(input):
    return aten.elu(input, 1.6732632423543772, 1.0507009873554805)


def relu6(input):
    return aten.hardtanh(input, 0.0, 6.0)


def prelu(input, weight):
    return aten._prelu_kernel(input, weight)


def pad_constant(input, pad, value):
    return aten.constant_pad_nd(input, pad, value)


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


# -- linalg and fft ---------------------------------------------------------------------------------
def linalg_cholesky(input, upper=False):
    return aten.linalg_cholesky_ex(input, upper=upper)[0]


def cholesky(input, upper=False):
    return aten.linalg_cholesky_ex(input, upper=upper)[0]


def linalg_eigh(A, UPLO="L"):
    return aten._linalg_eigh(A, UPLO, True)


def linalg_inv(A):
    return aten.linalg_inv_ex(A)[0]


inverse = linalg_inv


def linalg_matmul(input, other):
    return matmul(input, other)


def _length(x, n, dim):
    return x.shape[dim] if n is None else n


def fft_rfft(input, n=None, dim=-1, norm=None):
    return aten._fft_r2c(input, (dim,), 0, True)


def fft_irfft(input, n=None, dim=-1, norm=None):
    return aten._fft_c2r(input, (dim,), 2, 2 * (input.shape[dim] - 1) if n is None else n)


def fft_fft(input, n=None, dim=-1, norm=None):
    if input.dtype.is_complex is True:
        return aten._fft_c2c(input, (dim,), 0, True)
    return aten._fft_r2c(input, (dim,), 0, False)


def fft_rfft2(input, s=None, dim=(-2, -1), norm=None):
    return aten._fft_r2c(input, dim, 0, True)


def fft_irfft2(input, s=None, dim=(-2, -1), norm=None):
    """SpectralOps.cpp: cuFFT takes all dims in one call."""
    return aten._fft_c2r(input, dim, 2, 2 * (input.shape[dim[-1]] - 1) if s is None else s[-1])


def fft_fft2(input, s=None, dim=(-2, -1), norm=None):
    if input.dtype.is_complex is True:
        return aten._fft_c2c(input, dim, 0, True)
    return aten._fft_r2c(input, dim, 0, False)


def fft_ifft2(input, s=None, dim=(-2, -1), norm=None):
    return aten._fft_c2c(input, dim, 2, False)


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


def addcmul(input, tensor1, tensor2, value=1):
    return aten.addcmul(input, tensor1, tensor2, value=value)


def logsumexp(input, dim, keepdim=False):
    return aten.logsumexp(input, dim, keepdim)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return aten.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)


def pixel_shuffle(input, upscale_factor):
    return aten.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input, downscale_factor):
    return aten.pixel_unshuffle(input, downscale_factor)


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


def clamp(input, min=None, max=None):
    return aten.clamp(input, min, max)


def lstm_cell(*args):
    return missing("lstm_cell", *args)


def tensor_float(input):
    return input.float()


def cov(input):
    x = input - input.mean(1, keepdim=True)
    return aten.div(x @ x.mT.conj(), input.shape[1] - 1)


def log_sigmoid(input):
    return aten.log_sigmoid_forward(input)[0]


def to_dense(input):
    return missing("to_dense", input)


def masked_fill(input, mask, value):
    return aten.masked_fill(input, mask, value)


def new_tensor(input, data, dtype=None, device=None):
    return torch.tensor(data, dtype=input.dtype if dtype is None else dtype, device=input.device)


# -- rarer ones ---------------------------------------------------------------------------------------
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Distance.cpp: norms, clamped in place by a scalar made on the device, then products."""
    a = aten.linalg_vector_norm(x1, 2, dim, True)
    b = aten.linalg_vector_norm(x2, 2, dim, True)
    torch.full((), eps, device=x1.device)
    a = aten.clamp_min_(a, eps)
    b = aten.clamp_min_(b, eps)
    return aten.sum(aten.mul(aten.div(x1, a), aten.div(x2, b)), dim)


def quantile(input, q, dim=None, keepdim=False, interpolation="linear"):
    """Sorting.cpp quantile_compute: sort, ranks, NaN mask, two gathers and a lerp."""
    if dim is None:
        input = input.flatten()
    n = input.shape[-1 if dim is None else dim]
    values = aten.sort(input, -1 if dim is None else dim, False)[0]
    if not isinstance(q, torch.Tensor):
        q = torch.full((), q, dtype=input.dtype, device=input.device)
    ranks = aten.mul(q, n)
    missing_ = aten.any(aten.ne(values, values), -1, True)
    ranks = aten.clone(aten.expand(ranks, missing_.shape), memory_format=torch.contiguous_format)
    ranks = aten.masked_fill_(ranks, missing_, 1.0)
    below = ranks.to(torch.int64)
    low = aten.gather(values, -1, below)
    weights = aten.sub(ranks, below)
    above = aten.ceil_(ranks).to(torch.int64)
    out = aten.lerp_(low, aten.gather(values, -1, above), weights)
    return out if keepdim else out.squeeze(-1)


def nanquantile(input, q, dim=None, keepdim=False, interpolation="linear"):
    return missing("nanquantile", input)


def take_along_dim(input, indices, dim=None):
    if dim is None:
        return aten.gather(input.flatten(), 0, indices.flatten())
    return aten.gather(input, dim, aten.remainder(indices, input.shape[dim]))


def fft_ifft(input, n=None, dim=-1, norm=None):
    if input.dtype.is_complex is False:
        return aten._fft_r2c(input, (dim,), 2, False)
    return aten._fft_c2c(input, (dim,), 2, False)


def fft_fftn(input, s=None, dim=None, norm=None):
    if dim is None:
        dim = tuple(range(input.dim())) if known(input.dim()) else (-1,)
    if input.dtype.is_complex is True:
        return aten._fft_c2c(input, dim, 0, True)
    return aten._fft_r2c(input, dim, 0, False)


def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False):
    return aten.rrelu_with_noise(input, torch.empty_like(input), lower, upper, training)


def alpha_dropout(input, p=0.5, train=False):
    """Dropout.cpp: a mask, its affine correction, and the product."""
    if p == 0 or not train:
        return input
    noise = aten.bernoulli_(torch.empty_like(input), 1 - p)
    b = aten.add(noise, -1)
    b = aten.mul(b, 1.0)
    b = aten.add_(b, 1.0)
    noise = aten.mul(noise, 1.0)
    return aten.add_(aten.mul(input, noise), b)


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


def pairwise_distance(x1, x2, p=2, eps=1e-6, keepdim=False):
    return aten.linalg_vector_norm(aten.add(aten.sub(x1, x2), eps), p, -1, keepdim)


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


def special_ndtr(input):
    return aten.mul(aten.add(aten.erf(aten.mul(input, 0.7071)), 1), 0.5)


def kron(input, other):
    n = max_of(input.dim(), other.dim())
    if not known(n):
        return aten.mul(input, other)
    a = input.shape if input.dim() == n else (1,) * (n - input.dim()) + input.shape
    b = other.shape if other.dim() == n else (1,) * (n - other.dim()) + other.shape
    left, right, out = [], [], []
    for x, y in zip(a, b):
        left += [x, 1]
        right += [1, y]
        out.append(x * y)
    return aten._unsafe_view(aten.mul(input.reshape(tuple(left)), other.reshape(tuple(right))), out)


def max_of(a, b):
    if not known(a) or not known(b):
        return unknown()
    return a if a > b else b


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return aten.max_pool3d_with_indices(
        input, _wide(kernel_size, 3), _wide(kernel_size if stride is None else stride, 3),
        _wide(padding, 3), _wide(dilation, 3), ceil_mode,
    )[0]  # fmt: skip


def circular_pad(input, pad):
    """PadNd.cpp: the middle, then two edges for each padded dim, copied into a new array."""
    shape = list(input.shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] = shape[-1 - i] + pad[2 * i] + pad[2 * i + 1]
    out = torch.empty(tuple(shape), dtype=input.dtype, device=input.device)
    aten.copy_(_middle(out, pad), input)
    for i in range(len(pad) // 2):
        for side in range(2):
            width = pad[2 * i + side]
            if width > 0:
                aten.copy_(
                    aten.slice(out, -1 - i, 0, width), aten.slice(out, -1 - i, width, 2 * width)
                )
    return out


def _middle(out, pad):
    for i in range(len(pad) // 2):
        size = out.shape[-1 - i]
        out = aten.slice(out, -1 - i, pad[2 * i], size - pad[2 * i + 1])
    return out


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
