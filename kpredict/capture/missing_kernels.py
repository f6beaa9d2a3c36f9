"""Shape functions that PyTorch lacks for CUDA-only ops: op → what its outputs look like.

A CPU build can run an op on fake tensors only through its Meta kernel. Each row here follows the
allocations of the op's CUDA host code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import DynamicOutputShapeException, FakeTensorMode

Tensor = torch.Tensor


def _row_major(like: Tensor) -> Tensor:
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def lstm_cell(
    input_gates: Tensor, hidden_gates: Tensor, cx: Tensor, input_bias: Any = None,
    hidden_bias: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """cuda/RNN.cu: both states, and the gates for the backward. PyTorch's own shape function
    refuses a cell without biases."""
    return _row_major(cx), _row_major(cx), _row_major(hidden_gates)


def gru_cell(
    input_gates: Tensor, hidden_gates: Tensor, hx: Tensor, input_bias: Any = None,
    hidden_bias: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """cuda/RNN.cu: the state, and five values per unit for the backward."""
    return _row_major(hx), hx.new_empty(hx.shape[0], hx.shape[1] * 5)


def gru_cell_backward(grad_hy: Tensor, workspace: Tensor, has_bias: bool) -> tuple[Any, ...]:
    """cuda/RNN.cu: gradients of both gates, of the state, and of both biases."""
    batch, hidden = workspace.shape[0], workspace.shape[1] // 5
    gates = [workspace.new_empty(batch, hidden * 3) for _ in range(2)]
    biases = [workspace.new_empty(hidden * 3) if has_bias else None for _ in range(2)]
    return (*gates, _row_major(grad_hy), *biases)


def cudnn_rnn(
    input: Tensor, weight: Sequence[Tensor], weight_stride0: int, weight_buf: Tensor | None,
    hx: Tensor, cx: Tensor | None, mode: int, hidden_size: int, proj_size: int, num_layers: int,
    batch_first: bool, dropout: float, train: bool, bidirectional: bool,
    batch_sizes: Sequence[int], dropout_state: Tensor | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """cudnn/RNN.cpp: output in time-major memory, states, reserve space, the weight buffer.

    The reserve's true size is cuDNN's secret; here it is the gates of every step and layer.
    """
    from kpredict.capture.recurrent import _GATES, _buffer_size

    directions = 2 if bidirectional else 1
    out = (proj_size or hidden_size) * directions
    if batch_sizes:
        steps, batch = len(batch_sizes), int(batch_sizes[0])
        output = input.new_empty(input.shape[0], out)
    else:
        steps, batch = (input.shape[1], input.shape[0]) if batch_first else input.shape[:2]
        output = input.new_empty(steps, batch, out)
        if batch_first:
            output = output.transpose(0, 1)
    states = num_layers * directions
    hy = hx.new_empty(states, batch, proj_size or hidden_size)
    cy = hx.new_empty(0) if cx is None else cx.new_empty(states, batch, hidden_size)
    saved = steps * batch * states * hidden_size * (_GATES[mode] + 1) * input.element_size()
    reserve = input.new_empty(saved if train else 0, dtype=torch.uint8)
    if weight_buf is None:
        size = _buffer_size(weight, mode, hidden_size, weight_stride0)
        weight_buf = input.new_empty(size)
    return output, hy, cy, reserve, weight_buf


def cudnn_rnn_backward(
    input: Tensor, weight: Sequence[Tensor], weight_stride0: int, weight_buf: Tensor, hx: Tensor,
    cx: Tensor | None, output: Tensor, grad_output: Any, grad_hy: Any, grad_cy: Any, mode: int,
    hidden_size: int, proj_size: int, num_layers: int, batch_first: bool, dropout: float,
    train: bool, bidirectional: bool, batch_sizes: Sequence[int], dropout_state: Any,
    reserve: Tensor, output_mask: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    """cudnn/RNN.cpp: dx in time-major memory; the weights' gradients, views of one buffer."""
    if grad_output is None and grad_hy is None and grad_cy is None:
        return None, None, None, [None] * len(weight)
    turned = batch_first and not batch_sizes
    x = input.transpose(0, 1) if turned else input
    dx = x.new_empty(x.shape)
    if turned:
        dx = dx.transpose(0, 1)
    dcx = None if cx is None else _row_major(cx)
    grads: list[Tensor] = []
    if output_mask[3]:
        buffer = weight_buf.new_empty(weight_buf.shape)
        at = 0
        for w in weight:
            grads.append(buffer.narrow(0, at, w.numel()).view(w.shape))
            at += w.numel()
    return dx, _row_major(hx), dcx, grads


def cudnn_batch_norm(
    input: Tensor, weight: Tensor, bias: Any, running_mean: Any, running_var: Any, training: bool,
    exponential_average_factor: float, epsilon: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """cudnn/BatchNorm.cpp: the result in the input's layout, and what the backward reads again.

    The reserve's true size is cuDNN's secret.
    """
    stats = weight.shape if training else (0,)
    reserve = input.new_empty(1024 if training else 0, dtype=torch.uint8)
    layout = torch._prims_common.suggest_memory_format(input)
    out = torch.empty_like(input, memory_format=layout)
    return out, weight.new_empty(stats), weight.new_empty(stats), reserve


def cudnn_convolution(
    self: Tensor, weight: Tensor, padding: Sequence[int], stride: Sequence[int],
    dilation: Sequence[int], groups: int, *rest: Any,
) -> Tensor:  # fmt: skip
    """cudnn/ConvShared.cpp: as `aten.convolution` without a bias."""
    still = [0] * len(padding)
    made: Tensor = torch.ops.aten.convolution(
        self, weight, None, stride, padding, dilation, False, still, groups
    )
    return made


def cudnn_convolution_transpose(
    self: Tensor, weight: Tensor, padding: Sequence[int], output_padding: Sequence[int],
    stride: Sequence[int], dilation: Sequence[int], groups: int, *rest: Any,
) -> Tensor:  # fmt: skip
    """As `cudnn_convolution`."""
    made: Tensor = torch.ops.aten.convolution(
        self, weight, None, stride, padding, dilation, True, output_padding, groups
    )
    return made


def cudnn_convolution_relu(
    self: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """As `cudnn_convolution`."""
    return cudnn_convolution(self, weight, padding, stride, dilation, groups)


def cudnn_convolution_add_relu(
    self: Tensor, weight: Tensor, z: Tensor, alpha: Any, bias: Tensor | None,
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """As `cudnn_convolution`."""
    return cudnn_convolution(self, weight, padding, stride, dilation, groups)


def ctc_loss_backward(grad: Tensor, log_probs: Tensor, *rest: Any) -> Tensor:
    """cuda/LossCTC.cu: a gradient for every log-probability."""
    return _row_major(log_probs)


def lstsq(
    mode: FakeTensorMode, func: OpOverload, self: Tensor, b: Tensor, rcond: float | None = None,
    *, driver: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """BatchLinearAlgebra.cpp: fake tensors take lstsq for data-dependent, since the CPU's rank is;
    of CUDA's only driver, gels, the sizes are known. The solution is stored by columns."""
    if self.device.type != "cuda":
        raise DynamicOutputShapeException(func)
    rows, columns = self.shape[-2:]
    right = b.unsqueeze(-1) if b.dim() < self.dim() else b
    batch = right.shape[:-2]
    solved = right.new_empty(*batch, right.shape[-1], max(rows, columns)).mT[..., :columns, :]
    real = self.dtype.to_real()
    rest = (*batch, right.shape[-1]) if rows > columns else (0,)
    return (
        solved.squeeze(-1) if b.dim() < self.dim() else solved,
        self.new_empty(rest, dtype=real),
        self.new_empty(0, dtype=torch.int64),
        self.new_empty(0, dtype=real),
    )


FAKE: dict[OpOverload, Callable[..., Any]] = {torch.ops.aten.linalg_lstsq.default: lstsq}
"""Ops that fake tensors refuse although their sizes are known on CUDA."""

META: dict[str, Callable[..., Any]] = {
    "_ctc_loss_backward": ctc_loss_backward,
    "_cudnn_rnn": cudnn_rnn,
    "_cudnn_rnn_backward": cudnn_rnn_backward,
    "cudnn_batch_norm": cudnn_batch_norm,
    "cudnn_convolution": cudnn_convolution,
    "cudnn_convolution_add_relu": cudnn_convolution_add_relu,
    "cudnn_convolution_relu": cudnn_convolution_relu,
    "cudnn_convolution_transpose": cudnn_convolution_transpose,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
    "_thnn_fused_lstm_cell": lstm_cell,
}
