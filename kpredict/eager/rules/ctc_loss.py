"""The CTC loss: alignments of label sequences, by PyTorch's own kernels.

Read: aten/src/ATen/native/LossCTC.cpp, cuda/LossCTC.cu and cudnn/LossCTC.cpp of release 2.6.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpredict.eager.copying import copy, fill, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.eager.summing import log_sum_exp
from kpredict.model import Launch, Op, Target, Tensor


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
