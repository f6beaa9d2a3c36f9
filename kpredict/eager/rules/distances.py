"""Distances between all pairs of vectors: cdist and pdist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from kpredict.eager.calling import Host
from kpredict.eager.copying import compact, expand, fill, zero
from kpredict.eager.iterator import output_strides
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.matrices import turned
from kpredict.eager.operands import view
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_DISTANCE = "aten/src/ATen/native/Distance.cpp and cuda/DistanceKernel.cu, 2.6"
_THREADS = 256
_MANY = 25  # rows from which distances by a matrix product are faster


def _gradient(op: Op) -> Tensor:
    """The incoming gradient: `grad` until 2.13, `grad_output` from 2.14 on."""
    found: Tensor = op["grad"] if "grad" in op.args else op["grad_output"]
    return found


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    pairs = zip((1,) * (len(b) - len(a)) + a, (1,) * (len(a) - len(b)) + b, strict=True)
    return tuple(n if m == 1 else m for m, n in pairs)


def _common_batch(x1: Tensor, x2: Tensor) -> tuple[int, ...]:
    return _broadcast(x1.shape[:-2], x2.shape[:-2])


def _one_batch(x: Tensor, batch: tuple[int, ...], found: list[Launch]) -> Tensor:
    """Expanded to the common batch, contiguous, with one batch dim."""
    x, copies = compact(expand(x, (*batch, *x.shape[-2:])))
    found += copies
    rows, columns = x.shape[-2:]
    return view(x, (prod(batch), rows, columns), (rows * columns, columns, 1))


@rule("aten.dist", source="aten/src/ATen/native/ReduceOps.cpp, 2.6")
def dist(op: Op, target: Target) -> Iterable[Launch]:
    """The norm of the difference."""
    host = Host(target)
    x, other = op["self"], op["other"]
    difference = replace(
        contiguous(x, shape=_broadcast(x.shape, other.shape)), stride=output_strides([x, other])
    )
    host.call("aten.sub.Tensor", difference, self=x, other=other, alpha=1)
    host.call("aten.norm.Scalar", op.out, self=difference, p=op["p"])
    return host.launches


@rule("aten._euclidean_dist", source=f"{_DISTANCE} _euclidean_dist")
def euclidean_dist(op: Op, target: Target) -> Iterable[Launch]:
    """|a-b|² = |a|² - 2ab + |b|² by one matrix product: both norms and ones joined to the vectors,
    negative results cut off, the root."""
    host = Host(target)
    x1, x2, out = op["x1"], op["x2"], op.out

    def norms_and_ones(x: Tensor) -> tuple[Tensor, Tensor]:
        squares, norms = contiguous(x), contiguous(x, shape=(*x.shape[:-1], 1))
        host.call("aten.pow.Tensor_Scalar", squares, self=x, exponent=2)
        host.call("aten.sum.dim_IntList", norms, self=squares, dim=[-1], keepdim=True, dtype=None)
        ones = contiguous(norms)
        host.add(fill(ones, because="ones beside the norms"))
        return norms, ones

    norms1, ones1 = norms_and_ones(x1)
    norms2, ones2 = norms_and_ones(x2)
    doubled = contiguous(x1)
    host.call("aten.mul.Scalar", doubled, self=x1, other=-2)
    wide = x1.shape[-1] + 2
    left, right = (contiguous(x, shape=(*x.shape[:-1], wide)) for x in (x1, x2))
    host.call("aten.cat.default", left, tensors=(doubled, norms1, ones1), dim=-1)
    host.call("aten.cat.default", right, tensors=(x2, ones2, norms2), dim=-1)
    product = "aten.bmm.default" if x1.ndim == 3 else "aten.mm.default"
    host.call(product, out, self=left, mat2=turned(right))
    host.call("aten.clamp_min_.default", out, self=out, min=0)
    host.call("aten.sqrt_.default", out, self=out)
    return host.launches


@rule("aten._cdist_forward", source=f"{_DISTANCE} cdist_impl")
def cdist(op: Op, target: Target) -> Iterable[Launch]:
    """One block per pair. For p = 2 and more than 25 rows on a side, or where asked for, a matrix
    product instead. Inputs that are not contiguous are copied."""
    x1, x2, out = op["x1"], op["x2"], op.out
    found: list[Launch] = []
    batch = _common_batch(x1, x2)
    one, two = _one_batch(x1, batch, found), _one_batch(x2, batch, found)
    if out.numel == 0:
        return found
    if x1.shape[-1] == 0:
        return [*found, *zero(out)]
    mode = op["compute_mode"] or 0
    many = max(x1.shape[-2], x2.shape[-2]) > _MANY
    if op["p"] == 2 and (mode == 1 or (mode == 0 and many)):
        pair = (x1, x2) if prod(batch) == 1 else (one, two)
        shape = (*pair[0].shape[:-1], pair[1].shape[-2])
        host = Host(target)
        host.call("aten._euclidean_dist.default", contiguous(out, shape=shape), x1=pair[0],
                  x2=pair[1])  # fmt: skip
        return [*found, *host.launches]
    pairs = kernel(
        "cdist_kernel_cuda_impl", [one, two], [out], grid=(out.numel, 1, 1),
        block=(_THREADS, 1, 1), because="one block per pair of vectors",
    )  # fmt: skip
    return [*found, pairs]


@rule("aten._cdist_backward", source=f"{_DISTANCE} cdist_backward_kernel_impl")
def cdist_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A gradient per pair into a buffer, summed over the other side's vectors; 0 for p = 0."""
    x1, x2, out = op["x1"], op["x2"], op.out
    batch = _common_batch(x1, x2)
    if 0 in (*batch, *x1.shape, *x2.shape):
        return zero(out)
    found: list[Launch] = []
    one, two = _one_batch(x1, batch, found), _one_batch(x2, batch, found)
    dist, copies = compact(op["cdist"])
    grad, more = compact(_gradient(op))
    found += [*copies, *more]
    matrices, rows, columns = one.shape
    gradient = contiguous(one)
    if op["p"] == 0:
        return [*found, *fill(gradient, because="every distance is 0")]
    buffer = contiguous(one, shape=(matrices, two.shape[1], rows, columns))
    tiles = -(-dist.numel // 16)
    deep = (tiles - 1) // 65535 + 1
    step = kernel(
        "cdist_backward_kernel_cuda_impl", [grad, one, two, dist], [buffer],
        grid=(-(-columns // 512), deep, (tiles - 1) // deep + 1), block=(64, 16, 1),
        because="a gradient for every pair",
    )  # fmt: skip
    return [*found, step, *reduce([gradient], buffer, [1], target)]


@rule("aten._pdist_forward", source=f"{_DISTANCE} pdist_forward_kernel_impl")
def pdist(op: Op, target: Target) -> Iterable[Launch]:
    """One block per pair of rows."""
    x, out = op["self"], op.out
    if out.numel == 0:
        return []
    if x.shape[1] == 0:
        return zero(out)
    step = kernel(
        "pdist_kernel_cuda_impl", [x], [out], grid=(out.numel, 1, 1), block=(_THREADS, 1, 1),
        because="one block per pair of rows",
    )  # fmt: skip
    return [step]


@rule("aten._pdist_backward", source=f"{_DISTANCE} pdist_backward_kernel_impl")
def pdist_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A gradient per pair into a buffer, summed; 0 for p = 0."""
    grad, x, dist, out = _gradient(op), op["self"], op["pdist"], op.out
    if op["p"] == 0 or grad.numel == 0 or x.numel == 0:
        return fill(out, because="no distance to follow")
    rows, columns = x.shape
    buffer = contiguous(x, shape=(rows - 1, rows, columns))
    step = kernel(
        "pdist_backward_kernel_cuda_impl", [grad, x, dist], [buffer],
        grid=(-(-dist.numel // 16), -(-columns // 512), 1), block=(16, 64, 1),
        because="a gradient for every pair",
    )  # fmt: skip
    return [step, *reduce([out], buffer, [0], target)]
