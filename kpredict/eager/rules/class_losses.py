"""Losses against classes or label sequences: nll_loss, margin losses, CTC.

Read: aten/src/ATen/native/cuda/Loss.cu, NLLLoss2d.cu, MultiMarginLoss.cu,
MultiLabelMarginCriterion.cu, LossCTC.cu and native/LossCTC.cpp of release 2.6.0; the block of the
reducing nll_loss kernel as 2.13.0 launches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log2

from kpredict.eager.copying import compact, copy, fill, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.eager.rules.losses import NONE, SUM
from kpredict.eager.rules.reductions import log_sum_exp, sum_to
from kpredict.model import Dim3, Launch, Op, Target, Tensor

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
    if op["reduction"] == NONE and x.ndim == 2:
        yield from zero(total)
        if rows:
            yield _per_row("nll_loss_forward_no_reduce_cuda_kernel", arrays, [out], rows)
    elif labels.numel == 0:
        yield from fill(out)
        yield from zero(total)
    elif x.ndim == 1:
        yield kernel("nll_loss_forward_reduce_cuda_kernel_1d", arrays, [out, total],
                     grid=(1, 1, 1), block=(1, 1, 1))  # fmt: skip
    else:
        yield kernel(
            "nll_loss_forward_reduce_cuda_kernel_2d", arrays, [out, total], grid=(1, 1, 1),
            block=_one_block(rows), because="one block sums all rows",
        )  # fmt: skip


@rule("aten.nll_loss_backward", source="native/cuda/Loss.cu nll_loss_backward_out; 2.6.0, 2.13.0")
def nll_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A fill with 0, then one kernel that writes an element per row, of the same variant as the
    forward's."""
    grad_in = op.out
    yield from zero(grad_in)
    arrays, copies = _compacted(op["target"], op["grad_output"], op["weight"])
    yield from copies
    x: Tensor = op["self"]
    rows = x.shape[0] if x.ndim == 2 else 1
    if op["reduction"] == NONE and x.ndim == 2:
        if rows:
            yield _per_row("nll_loss_backward_no_reduce_cuda_kernel", arrays, [grad_in], rows)
        return
    reads = [*arrays, op["total_weight"]]
    if x.ndim == 1:
        yield kernel("nll_loss_backward_reduce_cuda_kernel_1d", reads, [grad_in],
                     grid=(1, 1, 1), block=(1, 1, 1))  # fmt: skip
    else:
        yield kernel("nll_loss_backward_reduce_cuda_kernel_2d", reads, [grad_in],
                     grid=(1, 1, 1), block=_one_block(rows))  # fmt: skip


@rule("aten.nll_loss2d_forward", source="native/cuda/NLLLoss2d.cu; 2.6.0")
def nll_loss2d(op: Op, target: Target) -> Iterable[Launch]:
    """Unreduced: one thread per pixel on any strides. Reduced: two fills with 0, one kernel that
    adds up, and for a mean one thread that divides."""
    x, labels, weight = op["self"], op["target"], op["weight"]
    out, total = op.outputs
    pixels = labels.numel
    if op["reduction"] == NONE:
        if pixels:
            arrays, copies = _compacted(weight)
            yield from copies
            yield _per_row(
                "nll_loss2d_forward_no_reduce_kernel", [x, labels, *arrays], [out], pixels
            )
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
        "nll_loss2d_forward_kernel", [*arrays, out, total], [out, total],
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
    if op["reduction"] == NONE:
        arrays, copies = _compacted(op["weight"])
        yield from copies
        yield _per_row(
            "nll_loss2d_backward_no_reduce_kernel", [labels, grad, *arrays], [grad_in], labels.numel
        )
        return
    arrays, copies = _compacted(labels, op["weight"])
    yield from copies
    yield kernel(
        "nll_loss2d_backward_kernel", [*arrays, grad, op["total_weight"]], [grad_in],
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
        yield kernel(name, arrays, outs, because="one block per row")
        return
    rows = workspace(x.shape[0], x.dtype)
    yield kernel(name, arrays, [rows, *outs[1:]], because="one block per row")
    yield from sum_to(outs[0], rows, None, target)


@rule("aten.multi_margin_loss_backward", source="native/cuda/MultiMarginLoss.cu; 2.6.0")
def multi_margin_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """All inputs are made contiguous, then one kernel, a block per row."""
    arrays, copies = _compacted(op["self"], op["grad_output"], op["target"], op["weight"])
    yield from copies
    if op.out.numel:
        yield kernel("MultiMarginLoss_backward_kernel", arrays, [op.out])


@rule("aten.multilabel_margin_loss_backward",
      source="native/cuda/MultiLabelMarginCriterion.cu; 2.6.0")  # fmt: skip
def multilabel_margin_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A fill with 0, inputs made contiguous, then one kernel, a block per row."""
    yield from zero(op.out)
    arrays, copies = _compacted(op["self"], op["target"], op["is_target"], op["grad_output"])
    yield from copies
    if op.out.numel:
        yield kernel("multilabel_margin_loss_backward_kernel", arrays, [op.out])


@rule("aten._use_cudnn_ctc_loss", "aten._use_miopen_ctc_loss",
      source="native/cudnn/LossCTC.cpp; 2.6.0")  # fmt: skip
def use_cudnn_ctc_loss(op: Op, target: Target) -> Iterable[Launch]:
    """A question about dtypes and lengths: nothing is launched."""
    return ()


@rule("aten._ctc_loss", source="native/LossCTC.cpp, cuda/LossCTC.cu; 2.6.0")
def ctc_loss(op: Op, target: Target) -> Iterable[Launch]:
    """Lengths and offsets are copied to the GPU (three memcpys), then one kernel. Lengths that are
    tensors on the GPU are first read by the host."""
    yield from _lengths_to_host(op)
    sent, copies = _lengths_to_device(op["log_probs"].shape[1])
    yield from copies
    yield kernel(
        "ctc_loss_log_alpha_gpu_kernel", [op["log_probs"], op["targets"], *sent], op.outputs
    )


@rule("aten._ctc_loss_backward", source="native/cuda/LossCTC.cu; 2.6.0")
def ctc_loss_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Three memcpys, two fills, the beta kernel, then for small problems a kernel that collects,
    for large ones exp, a logsumexp over the blanks and eight elementwise passes before the kernel
    for the rest; last a kernel that clears the padding."""
    yield from _lengths_to_host(op)
    probs, alpha, grad = op["log_probs"], op["log_alpha"], op.out
    steps, batch, classes = probs.shape
    sent, copies = _lengths_to_device(batch)
    yield from copies
    beta = contiguous(alpha)
    yield from fill(beta, because="-inf")
    yield from fill(grad, because="-inf")
    yield kernel("ctc_loss_backward_log_beta_gpu_kernel", [probs, op["targets"], *sent], [beta])
    reads = [grad, op["grad"], alpha, beta, probs, op["targets"], op["neg_log_likelihood"], *sent]
    if 2 * steps + 24 * batch // 10 + 2 * classes // 10 > 450:
        yield from _collect_blanks(op, beta, target)
        yield kernel("ctc_loss_backward_collect_nonblank_gpu_kernel", reads, [grad])
    else:
        yield kernel("ctc_loss_backward_collect_gpu_kernel", reads, [grad])
    yield kernel("ctc_loss_zero_padded_gradients", [sent[0]], [grad])


def _collect_blanks(op: Op, beta: Tensor, target: Target) -> Iterator[Launch]:
    """The gradient of the blank class, which every other label is."""
    probs, alpha, grad, dtype = op["log_probs"], op["log_alpha"], op.out, op.out.dtype
    steps, batch, _ = probs.shape
    yield from elementwise([grad], [probs], because="exp")
    labels = alpha.shape[2] // 2 + 1
    shape, stride = (batch, steps, labels), (*alpha.stride[:2], 2 * alpha.stride[2])
    both = contiguous(alpha, shape=shape)
    yield from elementwise([both], [view(t, shape, stride) for t in (alpha, beta)])
    blanks = contiguous(alpha, shape=(batch, steps, 1))
    yield from log_sum_exp(blanks, both, 2, target)
    turned = view(blanks, (steps, batch, 1), (1, steps, 1))
    likelihood: Tensor = op["neg_log_likelihood"]
    likelihood = view(likelihood, (1, batch, 1), (batch, likelihood.stride[0], 1))
    yield from elementwise([turned], [turned, likelihood], because="adds the likelihood")
    yield from elementwise([turned], [turned, narrow(probs, 2, op["blank"], 1)])
    yield from elementwise([turned], [turned], because="exp")
    of_blank = narrow(grad, 2, op["blank"], 1)
    yield from elementwise([of_blank], [of_blank, turned], because="subtracts")
    scale: Tensor = op["grad"]
    scale = view(scale, (1, batch, 1), (batch, scale.stride[0], 1))
    yield from elementwise([grad], [grad, scale], because="times the loss' gradient")
    if op["zero_infinity"]:
        infinite, nothing = contiguous(likelihood, dtype="bool"), contiguous(grad, shape=())
        yield from elementwise([infinite], [likelihood], because="is infinite")
        yield from zero(nothing)
        yield from elementwise(
            [grad], [infinite, nothing, grad], compute=["bool", dtype, dtype], because="where"
        )


def _lengths_to_host(op: Op) -> Iterator[Launch]:
    for name in ("input_lengths", "target_lengths"):
        if isinstance(op[name], Tensor) and op[name].is_cuda:
            host = Tensor(op[name].shape, op[name].stride, op[name].dtype, "cpu")
            yield from copy(host, op[name], because="the host reads the lengths")


def _lengths_to_device(batch: int) -> tuple[list[Tensor], list[Launch]]:
    """Target lengths, input lengths and where each target starts, from pageable memory."""
    host = Tensor((batch,), (1,), "int64", "cpu")
    sent = [workspace(batch, "int64") for _ in range(3)]
    found: list[Launch] = []
    for array in sent:
        found.append(memcpy("HtoD", host, array, because="lengths and offsets"))
        found.append(sync("the copy comes from pageable memory"))
    return sent, found


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


def _per_row(name: str, reads: Sequence[Tensor], writes: list[Tensor], rows: int) -> Launch:
    grid, block = (-(-rows // _THREADS), 1, 1), (_THREADS, 1, 1)
    return kernel(name, reads, writes, because="a thread each", grid=grid, block=block)


def _one_block(rows: int) -> Dim3:
    """Threads: the power of two nearest to a sixteenth of the rows, 32 to 1024."""
    share = rows // 16
    nearest = 1 << round(log2(share)) if share else 1
    return (min(max(nearest, 32), 1024), 1, 1)


def _per_sample(labels: Tensor) -> Dim3:
    batch = labels.shape[0]
    blocks = -(-(labels.numel // batch) // _THREADS) // 128
    return (max(blocks, 1) * batch, 1, 1)
