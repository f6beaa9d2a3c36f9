# ruff: noqa
# mypy: ignore-errors
"""Gradients of views, joins, indexing and reductions."""

import torch


def view(grad, self, **_):
    return {"self": grad.reshape(self.shape)}


_unsafe_view = view
reshape = view


def expand(grad, self, **_):
    return {"self": grad}


def t(grad, **_):
    return {"self": grad.t()}


def transpose(grad, dim0, dim1, **_):
    return {"self": aten.transpose(grad, dim0, dim1)}


def permute(grad, dims, **_):
    n = len(dims)
    back = [0] * n
    for i, d in enumerate(dims):
        back[d % n] = i
    return {"self": aten.permute(grad, back)}


def unsqueeze(grad, self, **_):
    return {"self": grad.view(self.shape) if grad.is_contiguous() else aten.view(grad, self.shape)}


def squeeze(grad, self, dim=None, **_):
    if isinstance(dim, int):
        return {"self": aten.unsqueeze(grad, dim) if self.shape[dim] == 1 else grad}
    return {"self": grad.reshape(self.shape)}


def select(grad, self, dim, index, **_):
    return {"self": aten.select_backward(grad, self.shape, dim, index)}


def slice(grad, self, dim=0, start=None, end=None, step=1, **_):
    start = 0 if start is None else start
    end = self.shape[dim] if end is None else end
    return {"self": aten.slice_backward(grad, self.shape, dim, start, end, step)}


def diagonal(grad, self, offset=0, dim1=0, dim2=1, **_):
    return {"self": aten.diagonal_backward(grad, self.shape, offset, dim1, dim2)}


def index(grad, self, indices, **_):
    zeros = torch.zeros(self.shape, dtype=grad.dtype, device=grad.device)
    return {"self": aten._index_put_impl_(zeros, indices, grad, True, True)}


def gather(grad, self, dim, index, **_):
    zeros = torch.zeros(self.shape, dtype=grad.dtype, device=grad.device)
    return {"self": aten.scatter_add_(zeros, dim, index, grad)}


def index_select(grad, self, dim, index, **_):
    zeros = torch.zeros(self.shape, dtype=grad.dtype, device=grad.device)
    return {"self": aten.index_add_(zeros, dim, index, grad)}


def index_add(grad, needs, dim, index, source, **_):
    out = {"self": grad}
    if "source" in needs:
        out["source"] = aten.index_select(grad, dim, index)
    return out


def flip(grad, dims, **_):
    return {"self": aten.flip(grad, dims)}


def roll(grad, shifts, dims, **_):
    return {"self": aten.roll(grad, tuple(-s for s in shifts), dims)}


def tril(grad, diagonal=0, **_):
    return {"self": aten.tril(grad, diagonal)}


def triu(grad, diagonal=0, **_):
    return {"self": aten.triu(grad, diagonal)}


def constant_pad_nd(grad, pad, **_):
    return {"self": aten.constant_pad_nd(grad, tuple(-p for p in pad))}


def repeat(grad, self, repeats, **_):
    extra = len(repeats) - self.dim()
    shape = []
    for i, r in enumerate(repeats):
        shape += [r] if i < extra else [r, self.shape[i - extra]]
    sums = []
    at = 0
    for i, r in enumerate(repeats):
        if r != 1 or i < extra:
            sums.append(at)
        at = at + (1 if i < extra else 2)
    return {"self": aten.sum(grad.reshape(tuple(shape)), tuple(sums)).reshape(self.shape)}


def cat(grad, needs, tensors, dim=0, **_):
    out, start = [], 0
    for x in tensors:
        n = x.shape[dim]
        out.append(aten.slice(grad, dim, start, start + n))
        start = start + n
    return {"tensors": out}


def stack(grad, needs, tensors, dim=0, **_):
    return {"tensors": [aten.select(grad, dim, i) for i in range(len(tensors))]}


def _whole(grads, parts):
    return [torch.zeros_like(p) if g is None else g for g, p in zip(grads, parts)]


def unbind(grads, self, dim=0, result=None, **_):
    return {"self": aten.stack(_whole(grads, result), dim)}


def split(grads, self, dim=0, result=None, **_):
    return {"self": aten.cat(_whole(grads, result), dim)}


split_with_sizes = split


def _spread(grad, self, dim, keepdim):
    """The gradient of a reduction, where its dims were."""
    if dim is None or dim == () or keepdim:
        return aten.expand(grad, self.shape)
    dims = [dim] if isinstance(dim, int) else list(dim)
    for d in sorted([d % self.dim() for d in dims]):
        grad = aten.unsqueeze(grad, d)
    return aten.expand(grad, self.shape)


def sum(grad, self, dim=None, keepdim=False, **_):
    return {"self": _spread(grad, self, dim, keepdim)}


nansum = sum


def mean(grad, self, result, dim=None, keepdim=False, **_):
    return {"self": aten.div(_spread(grad, self, dim, keepdim), self.numel())}


def var(grad, self, dim=None, keepdim=False, **_):
    centred = aten.sub(self, aten.mean(self, dim if dim else tuple(range(self.dim())), True))
    return {"self": aten.mul(aten.mul(_unreduced(grad, self, dim, keepdim), 2.0), centred)}


def _unreduced(grad, self, dim, keepdim):
    if dim is None or dim == () or keepdim:
        return grad
    for d in sorted([d % self.dim() for d in ([dim] if isinstance(dim, int) else list(dim))]):
        grad = aten.unsqueeze(grad, d)
    return grad


def std(grad, self, result, dim=None, keepdim=False, **_):
    scaled = aten.div(grad, aten.mul(result, 2))
    scaled = aten.masked_fill_(scaled, aten.eq(result, 0), 0)
    return var(scaled, self, dim, keepdim)


def linalg_vector_norm(grad, self, result, ord=2, dim=None, keepdim=False, **_):
    g = _unreduced(grad, self, dim, keepdim)
    if ord == 1:
        return {"self": aten.mul(aten.sgn(self), g)}
    norm = _unreduced(result, self, dim, keepdim)
    if ord == 2:
        return {"self": aten.mul(self, aten.masked_fill_(aten.div(g, norm), aten.eq(norm, 0), 0))}
    return {"self": missing("backward of norm", self)}


def logsumexp(grad, self, dim, keepdim=False, result=None, **_):
    g, r = _unreduced(grad, self, dim, keepdim), _unreduced(result, self, dim, keepdim)
    return {"self": aten.mul(g, aten.exp(aten.sub(self, r)))}


def cumsum(grad, dim, **_):
    return {"self": aten.flip(aten.cumsum(aten.flip(grad, (dim,)), dim), (dim,))}


def max(grad, self, result, dim=None, keepdim=False, **_):
    if dim is None:
        mask = aten.eq(self, result)
        return {"self": aten.mul(mask, aten.div(grad, aten.sum(mask)))}
    value = _unreduced(grad, self, dim, keepdim)
    index = _unreduced(result[1], self, dim, keepdim)
    zeros = torch.zeros(self.shape, dtype=grad.dtype, device=grad.device)
    return {"self": aten.scatter_(zeros, dim, index, value)}


min = max


def amax(grad, self, result, dim=(), keepdim=False, **_):
    mask = aten.eq(self, _unreduced(result, self, dim, keepdim))
    share = aten.mul(_unreduced(grad, self, dim, keepdim), mask)
    return {"self": aten.div(share, aten.sum(mask, dim, True))}


amin = amax


def topk(grad, self, dim=-1, result=None, **_):
    zeros = torch.zeros(self.shape, dtype=grad.dtype, device=grad.device)
    return {"self": aten.scatter_(zeros, dim, result[1], grad)}


def sort(grad, self, dim=-1, result=None, **_):
    zeros = torch.zeros(self.shape, dtype=grad.dtype, device=grad.device)
    return {"self": aten.scatter_(zeros, dim, result[1], grad)}


def _cdist_forward(grad, needs, x1, x2, p, result, **_):
    out = {}
    if "x1" in needs:
        out["x1"] = aten._cdist_backward(grad, x1, x2, p, result)
    if "x2" in needs:
        out["x2"] = aten._cdist_backward(
            grad.transpose(-1, -2).contiguous(), x2, x1, p, result.transpose(-1, -2).contiguous()
        )
    return out


def alias(grad, **_):
    return {"self": grad}


def slice_scatter(grad, needs, **_):
    return {"self": missing("backward of slice_scatter", grad)}


class Context:
    """`ctx` of an autograd.Function."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors):
        pass

    def mark_non_differentiable(self, *tensors):
        pass

    def set_materialize_grads(self, value):
        pass
