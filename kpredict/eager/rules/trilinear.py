"""`_trilinear`, the sum of products of three tensors that `F.bilinear` and its backward are."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.calling import Host
from kpredict.eager.contracting import contract
from kpredict.eager.copying import zero
from kpredict.eager.launches import contiguous
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.eager.shaping import unsqueeze
from kpredict.model import Launch, Op, Target, Tensor


def _aligned(t: Tensor, new_dims: Iterable[int]) -> Tensor:
    for d in sorted(new_dims):
        t = unsqueeze(t, d)
    return t


@rule("aten._trilinear", source="aten/src/ATen/native/Linear.cpp, 2.6")
def trilinear(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros; then for each index of the unrolled dim the first two are contracted, the result with
    the third, and added up."""
    host = Host(target)
    missing = [tuple(op[f"expand{i}"]) for i in (1, 2, 3)]
    factors = [_aligned(op[f"i{i}"], missing[i - 1]) for i in (1, 2, 3)]
    ndim, unrolled, summed = factors[0].ndim, op["unroll_dim"], tuple(op["sumdim"])
    sizes = [max(t.shape[d] for t in factors) for d in range(ndim)]
    shape = tuple(1 if d in summed else s for d, s in enumerate(sizes))
    total = contiguous(op.out, shape=shape)
    host.add(zero(total, because="the sum starts from 0"))
    if 0 in (t.numel for t in factors):
        return host.launches
    first = [d for d in summed if d in missing[2] and d != unrolled]
    second = [d for d in summed if d not in missing[2] and d != unrolled]
    for k in range(sizes[unrolled]):
        one, two, three = (
            narrow(t, unrolled, 0 if unrolled in gone else k, 1)
            for t, gone in zip(factors, missing, strict=True)
        )
        part = contract(host, contract(host, one, two, sorted(first)), three, sorted(second))
        into = total if unrolled in summed else narrow(total, unrolled, k, 1)
        host.call("aten.add_.Tensor", into, self=into, other=part, alpha=1)
    return host.launches
