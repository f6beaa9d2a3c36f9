"""Losses against classes: nll_loss and the margin losses.

Read: aten/src/ATen/native/cuda/Loss.cu, NLLLoss2d.cu, MultiMarginLoss.cu and
MultiLabelMarginCriterion.cu of release 2.6.0; checked against what 2.13.0 and 2.14.1 launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log2

from kpredict.eager.copying import compact, fill, zero
from kpredict.eager.launches import Array, called, kernel, workspace
from kpredict.eager.registry import rule
from kpredict.eager.rules.losses import NONE, SUM
from kpredict.eager.summing import sum_to
from kpredict.model import Access, Dim3, Launch, Op, Target, Tensor

_THREADS = 1024


@rule("aten.nll_loss_forward", source="native/cuda/Loss.cu nll_loss_forward_out; 2.6.0, 2.13.0")
def nll_loss(op: Op, target: Target) -> Iterable[Launch]:
    """Input, target and weight are made contiguous. A reduced loss of rows is one block (its size
    grows with the batch), of one row one thread; an unreduced one is a fill of the total weight and
    a thread per row."""
    arrays, copies = _compacted(op["self"], op["target"], op["weight"])
    yield from copies
    x, labels = arrays[:2]
    out, total = op.outputs
    rows = x.shape[0] if x.ndim == 2 else 1
    reads = _picked(arrays, labels)
    if op["reduction"] == NONE and x.ndim == 2:
        yield from zero(total)
        if rows:
            yield _per_row("nll_loss_forward_no_reduce_cuda_kernel", reads, [out], rows)
    elif labels.numel == 0:
        yield from fill(out)
        yield from zero(total)
    elif x.ndim == 1:
        yield kernel("nll_loss_forward_reduce_cuda_kernel_1d", reads, [out, total],
                     grid=(1, 1, 1), block=(1, 1, 1))  # fmt: skip
    else:
        yield kernel(
            "nll_loss_forward_reduce_cuda_kernel_2d", reads, [out, total], grid=(1, 1, 1),
            block=_one_block(rows), because="one block sums all rows",
        )  # fmt: skip


@rule("aten.nll_loss_backward", source="native/cuda/Loss.cu nll_loss_backward_out; 2.6.0, 2.13.0")
def nll_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A fill with 0, then one kernel that writes an element per row, of the same variant as the
    forward's."""
    grad_in = op.out
    yield from zero(grad_in)
    x: Tensor = op["self"]
    arrays, copies = _compacted(op["target"], x, op["grad_output"], op["weight"])
    yield from copies
    del arrays[1]  # made contiguous, though the kernels do not read it
    rows = x.shape[0] if x.ndim == 2 else 1
    writes = _picked([grad_in], arrays[0])
    if op["reduction"] == NONE and x.ndim == 2:
        if rows:
            yield _per_row("nll_loss_backward_no_reduce_cuda_kernel", arrays, writes, rows)
        return
    reads = [*arrays, op["total_weight"]]
    if x.ndim == 1:
        yield kernel("nll_loss_backward_reduce_cuda_kernel_1d", reads, writes,
                     grid=(1, 1, 1), block=(1, 1, 1))  # fmt: skip
    else:
        yield kernel("nll_loss_backward_reduce_cuda_kernel_2d", reads, writes,
                     grid=(1, 1, 1), block=_one_block(rows))  # fmt: skip


@rule("aten.nll_loss2d_forward", source="native/cuda/NLLLoss2d.cu; 2.6.0, 2.13.0")
def nll_loss2d(op: Op, target: Target) -> Iterable[Launch]:
    """Unreduced: a fill of the total weight and one thread per pixel on any strides. Reduced: two
    fills with 0, one kernel that adds up, and for a mean one thread that divides."""
    x, labels, weight = op["self"], op["target"], op["weight"]
    out, total = op.outputs
    pixels = labels.numel
    if op["reduction"] == NONE:
        yield from zero(total)
        if pixels:
            arrays, copies = _compacted(weight)
            yield from copies
            reads = _picked([x, labels, *arrays], labels)
            yield _per_row("nll_loss2d_forward_no_reduce_kernel", reads, [out], pixels)
        return
    if pixels == 0:
        yield from fill(out)
        yield from zero(total)
        return
    arrays, copies = _compacted(x, weight, labels)
    yield from copies
    yield from zero(out)
    yield from zero(total)
    yield kernel(
        "nll_loss2d_forward_kernel", [*_picked(arrays, labels), out, total], [out, total],
        grid=_per_sample(labels), block=(_THREADS, 1, 1), because="adds up all pixels",
    )  # fmt: skip
    if op["reduction"] != SUM:
        yield kernel("nll_loss2d_forward_size_average_kernel", [out, total], [out],
                     grid=(1, 1, 1), block=(1, 1, 1))  # fmt: skip


@rule("aten.nll_loss2d_backward", source="native/cuda/NLLLoss2d.cu; 2.6.0")
def nll_loss2d_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A fill with 0, then one kernel that writes an element per pixel."""
    grad_in, labels, grad = op.out, op["target"], op["grad_output"]
    yield from zero(grad_in)
    if labels.numel == 0:
        return
    writes = _picked([grad_in], labels)
    if op["reduction"] == NONE:
        arrays, copies = _compacted(op["weight"])
        yield from copies
        reads = _picked([labels, grad, *arrays], labels)
        yield _per_row("nll_loss2d_backward_no_reduce_kernel", reads, writes, labels.numel)
        return
    arrays, copies = _compacted(labels, op["weight"])
    yield from copies
    yield kernel(
        "nll_loss2d_backward_kernel", [*arrays, grad, op["total_weight"]], writes,
        grid=_per_sample(labels), block=(_THREADS, 1, 1),
    )  # fmt: skip


@rule("aten.multi_margin_loss", source="native/cuda/MultiMarginLoss.cu; 2.6.0")
def multi_margin_loss(op: Op, target: Target) -> Iterable[Launch]:
    """All inputs are made contiguous; a block per row; reduced losses of rows are summed up."""
    arrays, copies = _compacted(op["self"], op["target"], op["weight"])
    yield from copies
    yield from _margin("MultiMarginLoss_forward_kernel", op, arrays, [op.out], target)


@rule("aten.multilabel_margin_loss_forward",
      source="native/cuda/MultiLabelMarginCriterion.cu; 2.6.0")  # fmt: skip
def multilabel_margin_loss(op: Op, target: Target) -> Iterable[Launch]:
    """Inputs are made contiguous; a block per row; reduced losses of rows are summed up."""
    arrays, copies = _compacted(op["self"], op["target"])
    yield from copies
    yield from _margin(
        "multilabel_margin_loss_forward_kernel", op, arrays, list(op.outputs), target
    )


def _margin(
    name: str, op: Op, arrays: Sequence[Tensor], outs: list[Tensor], target: Target
) -> Iterator[Launch]:
    x = arrays[0]
    if x.numel == 0:
        return
    if x.ndim <= 1 or op["reduction"] == NONE:
        yield _by_rows(name, arrays, outs, x)
        return
    rows = workspace(x.shape[0], x.dtype)
    yield _by_rows(name, arrays, [rows, *outs[1:]], x)
    yield from called("aten.sum.default", sum_to(outs[0], rows, None, target))


@rule("aten.multi_margin_loss_backward", source="native/cuda/MultiMarginLoss.cu; 2.6.0")
def multi_margin_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """All inputs are made contiguous, then one kernel, a block per row."""
    arrays, copies = _compacted(op["self"], op["grad_output"], op["target"], op["weight"])
    yield from copies
    if op.out.numel:
        yield _by_rows("MultiMarginLoss_backward_kernel", arrays, [op.out], op["self"])


@rule("aten.multilabel_margin_loss_backward",
      source="native/cuda/MultiLabelMarginCriterion.cu; 2.6.0")  # fmt: skip
def multilabel_margin_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Inputs are made contiguous, then one kernel, a block per row; before 2.14 after a fill."""
    if target.release < (2, 14):
        yield from zero(op.out)
    arrays, copies = _compacted(op["self"], op["target"], op["is_target"], op["grad_output"])
    yield from copies
    if op.out.numel:
        yield _by_rows("multilabel_margin_loss_backward_kernel", arrays, [op.out], op["self"])


def _compacted(*arrays: Tensor | None) -> tuple[list[Tensor], list[Launch]]:
    """Each array that is there, contiguous; and the copies that took."""
    found: list[Tensor] = []
    copies: list[Launch] = []
    for t in arrays:
        if t is not None:
            dense, launches = compact(t)
            found.append(dense)
            copies += launches
    return found, copies


def _picked(arrays: Sequence[Tensor], labels: Tensor) -> list[Access]:
    """Of each array at most one element per label is touched."""
    return [Access(t, min(t.nbytes, labels.numel * t.itemsize)) for t in arrays]


def _per_row(name: str, reads: Sequence[Array], writes: Sequence[Array], rows: int) -> Launch:
    grid, block = (-(-rows // _THREADS), 1, 1), (_THREADS, 1, 1)
    return kernel(name, reads, writes, because="a thread each", grid=grid, block=block)


def _by_rows(name: str, reads: Sequence[Tensor], writes: list[Tensor], x: Tensor) -> Launch:
    grid = (x.shape[0] if x.ndim > 1 else 1, 1, 1)
    return kernel(name, reads, writes, because="a block per row", grid=grid, block=(128, 1, 1))


def _one_block(rows: int) -> Dim3:
    """Threads: the power of two nearest to a sixteenth of the rows, 32 to 1024."""
    share = rows // 16
    nearest = 1 << round(log2(share)) if share else 1
    return (min(max(nearest, 32), 1024), 1, 1)


def _per_sample(labels: Tensor) -> Dim3:
    batch = labels.shape[0]
    blocks = -(-(labels.numel // batch) // _THREADS) // 128
    return (max(blocks, 1) * batch, 1, 1)
