"""Losses between two tensors of one shape: an elementwise pass and a reduction.

Read: aten/src/ATen/native/Loss.cpp and cuda/Loss.cu of release 2.6.0. Losses that are composites
for autograd too (l1, kl_div, hinge, cosine, triplet …) never arrive here whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kpredict.eager.copying import copy, expand, fill, like, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import called, contiguous
from kpredict.eager.reducing import reduce, widest
from kpredict.eager.registry import rule
from kpredict.eager.summing import sum_to
from kpredict.model import Launch, Op, Target, Tensor

NONE, MEAN, SUM = 0, 1, 2
"""The `reduction` argument, as at::Reduction numbers it."""


@rule(
    "aten.mse_loss", "aten.smooth_l1_loss", "aten.huber_loss",
    source="native/Loss.cpp mse_loss_out, smooth_l1_loss_out, huber_loss; 2.6.0",
)  # fmt: skip
def pairwise(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise pass over input and target, then a mean or sum unless `reduction` is none,
    which huber_loss copies into an output that is given."""
    ins = [op["self"], op["target"]]
    if op["reduction"] == NONE:
        return elementwise([op.out], ins, because="loss per element")
    losses = _result_of(ins)
    copied = op.name == "aten.huber_loss.out"
    number = contiguous(op.out) if copied else op.out
    return [
        *elementwise([losses], ins, because="loss per element"),
        *reduced(number, losses, op["reduction"], target),
        *(copy(op.out, number) if copied else ()),
    ]


@rule(
    "aten.mse_loss_backward", "aten.smooth_l1_loss_backward", "aten.huber_loss_backward",
    source="native/Loss.cpp mse_loss_backward; 2.6.0",
)  # fmt: skip
def pairwise_backward(op: Op, target: Target) -> Iterable[Launch]:
    """The gradient is zeroed, then written by one pass over input, target and the gradient of the
    loss, which broadcasts."""
    grad_in = op.out
    ins = [op["self"], op["target"], op["grad_output"]]
    start = [] if op.overload in ("grad_input", "out") else zero(grad_in)
    return [*start, *elementwise([grad_in], ins, because="gradient per element")]


@rule("aten.binary_cross_entropy", source="native/cuda/Loss.cu binary_cross_entropy_out; 2.6.0")
def binary_cross_entropy(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise pass, one more for a weight, then a mean or sum and a copy of that number
    into the output."""
    losses = like(op["self"])
    if op["reduction"] == NONE:
        losses = replace(op.out, stride=losses.stride)
    yield from elementwise([losses], [op["self"], op["target"]], because="loss per element")
    yield from _weighted(losses, op["weight"])
    if op["reduction"] != NONE:
        number = contiguous(op.out)
        yield from reduced(number, losses, op["reduction"], target)
        yield from copy(op.out, number)


@rule("aten.binary_cross_entropy_backward", source="native/cuda/Loss.cu; 2.6.0")
def binary_cross_entropy_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise pass, one more for a weight, one more for the mean."""
    x: Tensor = op["self"]
    grad = expand(op["grad_output"], x.shape)
    out = replace(op.out, stride=like(x).stride)
    yield from elementwise([out], [grad, x, op["target"]], because="gradient per element")
    yield from _weighted(out, op["weight"])
    if op["reduction"] == MEAN:
        yield from _step("div_.Scalar", out, out, because="divides by the number of elements")


def _weighted(losses: Tensor, weight: Tensor | None) -> list[Launch]:
    return [] if weight is None else _step("mul_.Tensor", losses, losses, weight, because="weights")


def _step(op: str, out: Tensor, *ins: Tensor, because: str) -> list[Launch]:
    """One op that the host code of a loss calls."""
    return elementwise([out], ins, because=because, op=f"aten.{op}")


@rule("aten.binary_cross_entropy_with_logits", source="native/Loss.cpp; 2.6.0")
def binary_cross_entropy_with_logits(op: Op, target: Target) -> Iterable[Launch]:
    """A composite in host code: log-sigmoid; with pos_weight a subtract, multiply, add and a
    multiply; `1 - target` as fill and subtract; multiply, subtract; a multiply for a weight; then
    the mean or sum."""
    x, t = op["self"], op["target"]
    logs = like(x)
    yield from _step("log_sigmoid_forward.default", logs, x, because="log-sigmoid")
    if op["pos_weight"] is not None:
        weight: Tensor = op["pos_weight"]
        less, scaled = like(weight), _result_of([weight, t])
        yield from _step("sub.Tensor", less, weight, because="pos_weight - 1")
        yield from _step("mul.Tensor", scaled, less, t, because="times target")
        yield from _step("add_.Scalar", scaled, scaled, because="plus 1")
        yield from _step("mul_.Tensor", logs, logs, scaled, because="times pos_weight")
    losses = op.out if op["reduction"] == NONE else like(t)
    yield from fill(losses, because="1")
    yield from _step("sub_.Tensor", losses, losses, t, because="1 - target")
    yield from _step("mul_.Tensor", losses, losses, x, because="times input")
    yield from _step("sub_.Tensor", losses, losses, logs, because="minus log-sigmoid")
    yield from _weighted(losses, op["weight"])
    if op["reduction"] != NONE:
        yield from reduced(op.out, losses, op["reduction"], target)


@rule("aten.soft_margin_loss", source="native/Loss.cpp soft_margin_loss_out; 2.6.0")
def soft_margin_loss(op: Op, target: Target) -> Iterable[Launch]:
    """Negate, multiply, exp, log1p; then the mean or sum and a copy of that number."""
    x = op["self"]
    losses = op.out if op["reduction"] == NONE else like(x)
    yield from _step("neg.out", losses, x, because="-input")
    yield from _step("mul_.Tensor", losses, losses, op["target"], because="times target")
    yield from _step("exp_.default", losses, losses, because="exp")
    yield from _step("log1p_.default", losses, losses, because="log1p")
    if op["reduction"] != NONE:
        number = contiguous(op.out)
        yield from reduced(number, losses, op["reduction"], target)
        yield from copy(op.out, number)


@rule("aten.soft_margin_loss_backward", source="native/Loss.cpp; 2.6.0")
def soft_margin_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Eight elementwise passes: z = exp(-target * input); -norm * target * z / (1 + z) * grad."""
    x, t, out = op["self"], op["target"], op.out
    z = like(t)
    yield from _step("neg.default", z, t, because="-target")
    product = _result_of([z, x])
    yield from _step("mul.Tensor", product, z, x, because="times input")
    power = like(product)
    yield from _step("exp.default", power, product, because="exp")
    yield from _step("mul.out", out, t, because="-norm * target")
    yield from _step("mul.out", out, out, power, because="times z")
    yield from _step("add_.Scalar", power, power, because="1 + z")
    yield from _step("div_.Tensor", out, out, power, because="divided by 1 + z")
    yield from _step("mul_.Tensor", out, out, op["grad_output"], because="times grad")


def reduced(out: Tensor, losses: Tensor, reduction: int, target: Target) -> Iterator[Launch]:
    """`losses.mean()` or `losses.sum()` into `out`."""
    if reduction == SUM:
        yield from called("aten.sum.default", sum_to(out, losses, None, target))
        return
    wide, acc = 8 if losses.itemsize == 2 else 4, widest(losses.dtype)
    yield from called(
        "aten.mean.default",
        reduce([out], losses, None, target, vector=wide, accumulator=acc, because="mean"),
    )


def _result_of(ins: list[Tensor]) -> Tensor:
    """What an elementwise op of these allocates: laid out like its first dense operand."""
    full = max(ins, key=lambda t: t.numel)
    return like(full)
