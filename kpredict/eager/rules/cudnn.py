"""Batch norm and RNNs in cuDNN, and the fused cells of PyTorch's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from kpredict.eager.convolving import CHANNELS_LAST, CONTIGUOUS, in_layout, looks_channels_last
from kpredict.eager.copying import compact, copy, like, zero
from kpredict.eager.launches import contiguous, kernel, library, workspace
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_BATCH_NORM = "aten/src/ATen/native/cudnn/BatchNorm.cpp, 2.6"
_RNN = "aten/src/ATen/native/cudnn/RNN.cpp, 2.6"
_CELLS = "aten/src/ATen/native/cuda/RNN.cu, 2.6"
_LSTM, _GRU = 2, 3


def _given(*tensors: object) -> list[Tensor]:
    return [t for t in tensors if isinstance(t, Tensor)]


def _layout_of(t: Tensor) -> str:
    return CHANNELS_LAST if looks_channels_last(t) else CONTIGUOUS


@rule("aten.cudnn_batch_norm", source=_BATCH_NORM)
def cudnn_batch_norm(op: Op, target: Target) -> Iterable[Launch]:
    """One cuDNN call; training also updates the running statistics in it."""
    x, copies = in_layout(op["input"], _layout_of(op["input"]))
    yield from copies
    stats = _given(op["running_mean"], op["running_var"])
    reads = [x, *_given(op["weight"], op["bias"]), *stats]
    out, *saved = _given(*op.outputs)
    if op["training"]:
        yield library(
            "cudnnBatchNormalizationForwardTrainingEx", reads, [out, *saved, *stats], lo=1, hi=2,
            because="one kernel; two when the statistics do not fit one pass",
        )  # fmt: skip
    else:
        yield library("cudnnBatchNormalizationForwardInference", reads, [out])


@rule("aten.cudnn_batch_norm_backward", source=_BATCH_NORM)
def cudnn_batch_norm_backward(op: Op, target: Target) -> Iterable[Launch]:
    """grad_output is copied into the input's layout where it has another, then one cuDNN call."""
    x = op["input"]
    grad, copies = in_layout(op["grad_output"], _layout_of(x))
    yield from copies
    reads = [x, grad, *_given(op["weight"], op["save_mean"], op["save_var"], op["reserveSpace"])]
    yield library(
        "cudnnBatchNormalizationBackwardEx", reads, _given(*op.outputs), lo=1, hi=2,
        because="one kernel; two when the sums do not fit one pass",
    )  # fmt: skip


def _turned(op: Op, t: Tensor) -> Tensor:
    """Time before batch, as cuDNN wants it."""
    if not op["batch_first"] or op["batch_sizes"]:
        return t
    (b, s, n), (sb, ss, sn) = t.shape, t.stride
    return replace(t, shape=(s, b, n), stride=(ss, sb, sn))


def _steps(op: Op, t: Tensor) -> tuple[int, int]:
    """Time steps and batch of a padded or packed input."""
    if op["batch_sizes"]:
        return len(op["batch_sizes"]), op["batch_sizes"][0]
    return t.shape[0], t.shape[1]


def _flops(op: Op, x: Tensor) -> int:
    """2 per weight and row of the input: every matrix is used once per step and sample."""
    rows = prod(x.shape[:-1])
    weights: tuple[Tensor, ...] = op["weight"]
    return 2 * rows * sum(w.numel for w in weights if w.ndim > 1)


def _rnn_kernels(op: Op, x: Tensor) -> tuple[int, int, int, str]:
    """lo, hi, expected: cuDNN launches a few kernels per layer when it keeps the weights on chip,
    else several per layer, direction and step."""
    steps, _ = _steps(op, x)
    layers = op["num_layers"] * (2 if op["bidirectional"] else 1)
    why = "cuDNN: a GEMM for all inputs of a layer and a persistent kernel, or kernels per step"
    return layers, layers * (4 * steps + 6), layers * 4, why


@rule("aten._cudnn_rnn", source=_RNN)
def cudnn_rnn(op: Op, target: Target) -> Iterable[Launch]:
    """One cuDNN call for all layers and steps. A batch-first input is copied to time-first; weights
    that do not lie in one buffer are copied into a zeroed one."""
    x, copies = compact(_turned(op, op["input"]))
    yield from copies
    buffer = op["weight_buf"]
    if buffer is None:
        buffer = next(iter(_given(*op.outputs[4:5])), None) or workspace(
            sum(w.numel for w in op["weight"]), x.dtype
        )
        yield from zero(buffer, because="a buffer for all weights")
        for w in op["weight"]:
            yield from copy(like(w, buffer.dtype), w, because="weights are not in one buffer")
    lo, hi, expected, why = _rnn_kernels(op, x)
    reads = [x, buffer, *_given(op["hx"], op["cx"], op["dropout_state"])]
    yield library(
        "cudnnRNNForward", reads, _given(*op.outputs[:4]), lo=lo, hi=hi, expected=expected,
        because=why, flops=_flops(op, x),
    )  # fmt: skip


def _gradient(op: Op, name: str, like_: Tensor) -> Iterator[Launch]:
    if op[name] is None:
        yield from zero(contiguous(like_), because="nothing flows into this state")


@rule("aten._cudnn_rnn_backward", source=_RNN)
def cudnn_rnn_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Gradients that are absent are filled with 0; input and grad_output are copied to time-first;
    one cuDNN call for the data, one for the weights into a zeroed buffer."""
    outputs = [op["grad_output"], op["grad_hy"], op["grad_cy"]]
    if all(t is None for t in outputs):
        return
    output, hx, cx = op["output"], op["hx"], op["cx"]
    if op["grad_output"] is None:
        yield from zero(contiguous(output))
    yield from _gradient(op, "grad_hy", hx)
    if cx is not None:
        yield from _gradient(op, "grad_cy", cx)
    x, copies = compact(_turned(op, op["input"]))
    dy, more = compact(_turned(op, op["grad_output"] or output))
    yield from (*copies, *more)
    for t in _given(op["grad_hy"], op["grad_cy"]):
        yield from compact(t)[1]
    lo, hi, expected, why = _rnn_kernels(op, x)
    buffer, reserve = op["weight_buf"], op["reserve"]
    reads = [dy, output, buffer, *_given(hx, cx, reserve)]
    yield library(
        "cudnnRNNBackwardData_v8", reads, _given(*op.outputs[:3]), lo=lo, hi=hi, expected=expected,
        because=why, flops=_flops(op, x),
    )  # fmt: skip
    if not op["output_mask"][3]:
        return
    yield from compact(_turned(op, op["input"]))[1]
    gradients = _given(*op.outputs[3:])
    sums = contiguous(buffer)
    yield from zero(sums, because="the weights' gradients are added to 0")
    layers = op["num_layers"] * (2 if op["bidirectional"] else 1)
    yield library(
        "cudnnRNNBackwardWeights_v8", [x, output, reserve, *_given(hx)], [sums], lo=layers,
        hi=6 * layers, expected=3 * layers, because="a GEMM per matrix and sums for the biases",
        flops=_flops(op, x),
    )  # fmt: skip
    lacks_bias = all(w.ndim > 1 for w in op["weight"])
    if lacks_bias:  # cuDNN's buffer has biases, the module does not: the matrices are copied out
        for g in gradients:
            yield from copy(contiguous(g), g, because="cuDNN's buffer has biases too")


@rule("aten._thnn_fused_lstm_cell", source=_CELLS)
def lstm_cell(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for all gates."""
    return [kernel("lstm_cell_forward", op.inputs, _given(*op.outputs))]


@rule("aten._thnn_fused_lstm_cell_backward_impl", source=_CELLS)
def lstm_cell_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for all gates, and a sum for the bias."""
    gates, dcx, *rest = _given(*op.outputs)
    yield kernel("lstm_cell_backward", op.inputs, [gates, dcx])
    for bias in rest:
        yield from reduce([bias], gates, 0, target, because="the bias' gradient")


@rule("aten._thnn_fused_gru_cell", source=_CELLS)
def gru_cell(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for all gates."""
    return [kernel("gru_cell_forward", op.inputs, _given(*op.outputs))]


@rule("aten._thnn_fused_gru_cell_backward", source=_CELLS)
def gru_cell_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for all gates, and a sum per bias."""
    of_input, of_hidden, dhx, *biases = _given(*op.outputs)
    yield kernel("gru_cell_backward", op.inputs, [of_input, of_hidden, dhx])
    for bias, gates in zip(biases, (of_input, of_hidden), strict=False):
        yield from reduce([bias], gates, 0, target, because="the bias' gradient")
