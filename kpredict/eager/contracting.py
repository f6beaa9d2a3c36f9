"""Sums of products over shared dims, by one batched matrix product (sumproduct_pair).

In: two tensors of equally many dims and the dims to sum. Out: the result, every summed dim of size
1, and the launches. Follows aten/src/ATen/native/Linear.cpp (2.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kpredict.eager.calling import Host
from kpredict.eager.launches import contiguous
from kpredict.eager.shaping import permute, reshape
from kpredict.model import Tensor


def contract(host: Host, left: Tensor, right: Tensor, summed: Sequence[int]) -> Tensor:
    """The sum over `summed` of left times right; a plain product where nothing is summed."""
    ndim = left.ndim
    if not summed:
        shape = tuple(max(a, b) for a, b in zip(left.shape, right.shape, strict=True))
        return host.call("aten.mul.Tensor", contiguous(left, shape=shape), self=left, other=right)
    for d in summed:
        if left.shape[d] != 1 and right.shape[d] == 1:
            left = _summed(host, left, d)
        elif right.shape[d] != 1 and left.shape[d] == 1:
            right = _summed(host, right, d)
    kept = [d for d in range(ndim) if d not in summed]
    both = [d for d in kept if left.shape[d] != 1 and right.shape[d] != 1]
    of_left = [d for d in kept if left.shape[d] != 1 and d not in both]
    of_right = [d for d in kept if d not in both and d not in of_left]
    batch, rows = (prod(left.shape[d] for d in dims) for dims in (both, of_left))
    columns = prod(right.shape[d] for d in of_right)
    length = prod(left.shape[d] for d in summed)
    a, before = reshape(permute(left, [*both, *of_left, *summed, *of_right]), (batch, rows, length))
    host.add(before)
    b, before = reshape(
        permute(right, [*both, *summed, *of_right, *of_left]), (batch, length, columns)
    )
    host.add(before)
    out = contiguous(left, shape=(batch, rows, columns))
    host.call("aten.bmm.default", out, self=a, mat2=b)
    order = [*both, *of_left, *summed, *of_right]
    sizes = [1 if d in summed else (right if d in of_right else left).shape[d] for d in order]
    return permute(reshape(out, sizes)[0], [order.index(d) for d in range(ndim)])


def _summed(host: Host, t: Tensor, dim: int) -> Tensor:
    out = contiguous(t, shape=tuple(1 if d == dim else s for d, s in enumerate(t.shape)))
    return host.call("aten.sum.dim_IntList", out, self=t, dim=[dim], keepdim=True, dtype=None)
