# ruff: noqa
# mypy: ignore-errors
"""torch.* of matrices that open into others (LinearAlgebra.cpp, Linear.cpp)."""

import torch


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
    """Linear.cpp _trilinear: a product of three for each output, two bmm, summed up."""
    if not known(weight.shape) or not known(input1.shape):
        return aten._trilinear(input1, weight, input2, (1, 3), (0,), (1, 2), (2, 3))
    shape = input1.shape[:-1]
    x = input1.reshape(-1, input1.shape[-1])
    y = input2.reshape(-1, input2.shape[-1])
    out = torch.zeros((x.shape[0], weight.shape[0]), dtype=x.dtype, device=x.device)
    for k in range(weight.shape[0]):
        left = aten.bmm(
            x.unsqueeze(1), aten.expand(weight[k].unsqueeze(0), (x.shape[0], *weight.shape[1:]))
        )
        right = aten.bmm(left, y.unsqueeze(2))
        aten.add_(aten.select(out, 1, k), right.squeeze(-1).squeeze(-1))
    out = out.reshape((*shape, weight.shape[0]))
    return aten.add_(out, bias) if bias is not None else out


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
    """Linear.cpp: both permuted to matrices, one product."""
    if not known(a.shape) or not known(b.shape) or not known(dims):
        return einsum_unknown(a, b)
    if isinstance(dims, int):
        first = list(range(a.dim() - dims, a.dim()))
        second = list(range(dims))
    else:
        first = [dims[0]] if isinstance(dims[0], int) else list(dims[0])
        second = [dims[1]] if isinstance(dims[1], int) else list(dims[1])
    first = [d % a.dim() for d in first]
    second = [d % b.dim() for d in second]
    free_a = [d for d in range(a.dim()) if d not in first]
    free_b = [d for d in range(b.dim()) if d not in second]
    inner = 1
    for d in first:
        inner = inner * a.shape[d]
    left = a.permute(free_a + first).reshape(-1, inner)
    right = b.permute(second + free_b).reshape(inner, -1)
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    return aten.mm(left, right).reshape(tuple(shape))


def einsum(equation, *operands):
    """Linear.cpp: pairs from left to right. Dims are permuted to the order of the output's
    letters, then the summed ones by name."""
    if len(operands) == 1 and not isinstance(operands[0], torch.Tensor):
        operands = operands[0]
    equation = equation.replace(" ", "")
    if not known(equation):
        return einsum_unknown(*operands)
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if "." in equation:
        dots = _dots(terms, operands)
        if not known(dots):
            return einsum_unknown(*operands)
        terms = [
            t.replace("...", dots[len(dots) - (x.dim() - len(t) + 3) :])
            for t, x in zip(terms, operands)
        ]
        out = out.replace("...", dots)
        left = "".join(terms)
        if not arrow:
            out = dots
    if not arrow:
        single = [c for c in sorted(set(left.replace(",", ""))) if left.count(c) == 1]
        out = out + "".join([c for c in single if c not in out])
    order = out + "".join([c for c in sorted(set(left.replace(",", ""))) if c not in out])
    x, sub = _ordered(operands[0], terms[0], order)
    for k in range(1, len(operands)):
        y, other = _ordered(operands[k], terms[k], order)
        later = "".join(terms[k + 1 :]) + out
        x, sub = _pair(x, sub, y, other, later, order)
    gone = [i for i, c in enumerate(sub) if c not in out]
    if gone:
        x = aten.sum(x, gone)
        sub = "".join([c for c in sub if c in out])
    return x.permute([sub.index(c) for c in out])


def _dots(terms, operands):
    """Letters for the dims that an ellipsis stands for."""
    most = 0
    for t, x in zip(terms, operands):
        if "..." in t:
            if not known(x.dim()):
                return unknown()
            extra = x.dim() - len(t) + 3
            most = extra if extra > most else most
    return "0123456789"[:most]


def _ordered(x, letters, order):
    """Repeated letters are a diagonal; the rest is permuted to the common order."""
    for c in letters:
        while letters.count(c) > 1:
            first = letters.index(c)
            second = letters.index(c, first + 1)
            x = aten.diagonal(x, 0, first, second)
            letters = letters[:second] + letters[second + 1 :]
            letters = letters[:first] + letters[first + 1 :] + c
    wanted = "".join([c for c in order if c in letters])
    return x.permute([letters.index(c) for c in wanted]), wanted


def _pair(x, xs, y, ys, later, order):
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
        letters = "".join([c for c in order if c in xs or c in ys])
        a = x
        b = y
        for i, c in enumerate(letters):
            if c not in xs:
                a = a.unsqueeze(i)
            if c not in ys:
                b = b.unsqueeze(i)
        return aten.mul(a, b), letters
    a = x.permute([xs.index(c) for c in batch + left + summed])
    b = y.permute([ys.index(c) for c in batch + summed + right])
    size = {c: n for c, n in zip(xs, x.shape)}
    for c, n in zip(ys, y.shape):
        size[c] = n if size.get(c, 1) == 1 else size[c]
    nb, nl, ns, nr = (
        _product(batch, size),
        _product(left, size),
        _product(summed, size),
        _product(right, size),
    )
    a = a.reshape(nb, nl, ns)
    b = b.reshape(nb, ns, nr)
    out = aten.bmm(a, b)
    letters = "".join(batch + left + right)
    out = aten.view(out, tuple(size[c] for c in letters))
    wanted = "".join([c for c in order if c in letters])
    return out.permute([letters.index(c) for c in wanted]), wanted


def _product(letters, size):
    n = 1
    for c in letters:
        n = n * size[c]
    return n


def einsum_unknown(*operands):
    if len(operands) == 2:
        return aten.bmm(operands[0], operands[1])
    return missing("einsum", *operands)


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


def cov(input, correction=1, fweights=None, aweights=None):
    """Correlation.cpp: the weights' checks run on the device and are read by the host."""
    number = torch.full((), 1.0, device=input.device)
    mean = aten.div(aten.sum(input, (1,), True), number)
    factor = torch.full((), 1.0, device=input.device)
    aten.le(factor, 0)
    torch.ones((), device=input.device)
    bad = aten.eq(factor, factor)
    sync("cov", bad)
    x = aten.sub(input, mean)
    return aten.div(matmul(x, x.mT), factor)


def corrcoef(input):
    c = cov(input)
    deviation = aten.sqrt(aten.diagonal(c))
    c = aten.div(c, deviation.unsqueeze(1))
    return aten.clamp(aten.div(c, deviation.unsqueeze(0)), -1, 1)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    if p == 2.0 and known(x1.shape) and known(x2.shape):
        if compute_mode == "use_mm_for_euclid_dist" or (
            compute_mode == "use_mm_for_euclid_dist_if_necessary"
            and (x1.shape[-2] > 25 or x2.shape[-2] > 25)
        ):
            return taped("_euclidean_dist", {"x1": x1, "x2": x2}, _euclidean(x1, x2))
    return aten._cdist_forward(x1, x2, p, None)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Distance.cpp: norms, clamped in place by a scalar made on the device, then products."""
    a = aten.linalg_vector_norm(x1, 2, dim, True)
    b = aten.linalg_vector_norm(x2, 2, dim, True)
    torch.full((), eps, device=x1.device)
    a = aten.clamp_min_(a, eps)
    b = aten.clamp_min_(b, eps)
    return aten.sum(aten.mul(aten.div(x1, a), aten.div(x2, b)), dim)


def pairwise_distance(x1, x2, p=2, eps=1e-6, keepdim=False):
    return aten.linalg_vector_norm(aten.add(aten.sub(x1, x2), eps), p, (-1,), keepdim)


def linalg_matmul(input, other):
    return matmul(input, other)


def addcmul(input, tensor1, tensor2, value=1):
    return aten.addcmul(input, tensor1, tensor2, value=value)


def _euclidean(x1, x2):
    """Distance.cpp _euclidean_dist: squares beside the products, one matrix product."""
    with torch.no_grad():
        a = aten.sum(aten.pow(x1, 2), -1, True)
        b = aten.sum(aten.pow(x2, 2), -1, True)
        left = aten.cat([aten.mul(x1, -2), a, torch.ones_like(a)], -1)
        right = aten.cat([x2, torch.ones_like(b), b], -1)
        out = matmul(left, right.mT)
        return aten.sqrt_(aten.clamp_min_(out, 0))
