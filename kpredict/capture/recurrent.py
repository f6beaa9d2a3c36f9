"""RNN, LSTM and GRU as CUDA takes them: one `_cudnn_rnn` for all layers and time steps.

Source: aten/src/ATen/native/RNN.cpp and cudnn/RNN.cpp (2.6; bfloat16 since then). cuDNN wants all
weights in one buffer: `nn.RNNBase.flatten_parameters` lays them there, and a call whose weights are
not there copies them first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from kpredict.model import Target

aten = torch.ops.aten
Tensors = Sequence[torch.Tensor]

RELU, TANH, LSTM, GRU = range(4)  # cudnnRNNMode_t
_MODES = {"RNN_RELU": RELU, "RNN_TANH": TANH, "LSTM": LSTM, "GRU": GRU}
_GATES = {RELU: 1, TANH: 1, LSTM: 4, GRU: 3}
_DTYPES = (torch.float64, torch.float32, torch.float16)


def cudnn_takes(target: Target, x: torch.Tensor) -> bool:
    """at::native::cudnn_is_acceptable: enabled, a float type (bf16 from sm_80), not empty."""
    dtypes = (*_DTYPES, torch.bfloat16) if target.sm >= 80 else _DTYPES
    return bool(torch._C._get_cudnn_enabled()) and x.dtype in dtypes and x.numel() != 0


def _buffer_order(weights: Tensors, per_layer: int) -> list[int]:
    """cuDNN's order in the buffer: the matrices of all layers, then the biases of all layers."""
    matrices = [i for i in range(len(weights)) if weights[i].dim() > 1]
    return matrices + [i for i in range(len(weights)) if weights[i].dim() == 1]


def _buffer_size(weights: Tensors, mode: int, hidden: int, per_layer: int) -> int:
    """Elements of the buffer; it has room for two biases even where the module has none."""
    size = sum(w.numel() for w in weights)
    if all(w.dim() > 1 for w in weights):
        size += 2 * _GATES[mode] * hidden * (len(weights) // per_layer)
    return size


def _shared_buffer(weights: Tensors, per_layer: int, size: int) -> torch.Tensor | None:
    """The one buffer all weights already lie in, in cuDNN's order; None where they do not."""
    first = weights[0].untyped_storage()
    if first.size() < size * weights[0].element_size():
        return None
    at = 0
    for i in _buffer_order(weights, per_layer):
        w = weights[i]
        if w.untyped_storage()._cdata != first._cdata or w.storage_offset() != at:
            return None
        at += w.numel()
    with torch.no_grad():
        return aten.set_.source_Storage_storage_offset(  # type: ignore[no-any-return]
            weights[0].new_empty(0), first, 0, [size], [1]
        )


def flatten_weight(
    target: Target, weights: Tensors, stride0: int, input_size: int, mode: int, hidden: int,
    proj: int, layers: int, batch_first: bool, bidirectional: bool,
) -> torch.Tensor:  # fmt: skip
    """`_cudnn_rnn_flatten_weight`: one buffer of zeros, each weight copied in and made a view."""
    buffer = weights[0].new_zeros(_buffer_size(weights, mode, hidden, stride0))
    at = 0
    for i in _buffer_order(weights, stride0):
        w = weights[i]
        view = buffer.narrow(0, at, w.numel()).view(w.shape)
        view.copy_(w)
        w.set_(view)  # type: ignore[call-overload]
        at += w.numel()
    return buffer


def _cudnn(
    mode: int, x: torch.Tensor, hx: torch.Tensor, cx: torch.Tensor | None, weights: Tensors,
    has_biases: bool, layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool, batch_sizes: list[int],
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    hidden, proj = hx.shape[2], 0
    if cx is not None and cx.shape[2] != hx.shape[2]:
        hidden, proj = cx.shape[2], hx.shape[2]
    per_layer = (4 if has_biases else 2) + (1 if proj else 0)
    size = _buffer_size(weights, mode, hidden, per_layer)
    state = x.new_empty(0, dtype=torch.uint8) if train and dropout > 0 else None
    found: tuple[torch.Tensor, ...] = aten._cudnn_rnn(
        x, list(weights), per_layer, _shared_buffer(weights, per_layer, size), hx, cx, mode, hidden,
        proj, layers, batch_first, dropout, train, bidirectional, batch_sizes, state,
    )  # fmt: skip
    return found[:3] if mode == LSTM else found[:2]


def _batch_sizes(x: torch.Tensor, sizes: torch.Tensor) -> list[int]:
    """What is known of a packed sequence: its total and its longest length; spread evenly."""
    steps = sizes.shape[0]
    each = math.ceil(x.shape[0] / steps)
    return [each] * (steps - 1) + [x.shape[0] - each * (steps - 1)]


def padded(mode: int, name: str) -> Callable[..., Any]:
    """The route of `name`, the overload that takes a padded batch."""

    def run(
        target: Target, input: torch.Tensor, hx: Any, params: Tensors, has_biases: bool,
        num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        if not cudnn_takes(target, input):
            return _natively(name)(
                input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                batch_first,
            )  # fmt: skip
        h, c = hx if mode == LSTM else (hx, None)
        return _cudnn(
            mode, input, h, c, params, has_biases, num_layers, dropout, train, bidirectional,
            batch_first, [],
        )  # fmt: skip

    return run


def packed(mode: int, name: str) -> Callable[..., Any]:
    """The route of `name`, the overload that takes a packed sequence."""

    def run(
        target: Target, data: torch.Tensor, batch_sizes: torch.Tensor, hx: Any, params: Tensors,
        has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    ) -> Any:  # fmt: skip
        if not cudnn_takes(target, data):
            return _natively(name)(
                data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
                bidirectional,
            )  # fmt: skip
        h, c = hx if mode == LSTM else (hx, None)
        return _cudnn(
            mode, data, h, c, params, has_biases, num_layers, dropout, train, bidirectional, False,
            _batch_sizes(data, batch_sizes),
        )  # fmt: skip

    return run


def _natively(name: str) -> Callable[..., Any]:
    packet, overload = name.split(".")
    op = getattr(getattr(aten, packet), overload)
    return lambda *args: op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args)


ROUTES: dict[str, Callable[..., Any]] = {"_cudnn_rnn_flatten_weight": flatten_weight}
for _op, _mode in (("lstm", LSTM), ("gru", GRU), ("rnn_tanh", TANH), ("rnn_relu", RELU)):
    ROUTES[f"{_op}.input"] = padded(_mode, f"{_op}.input")
    ROUTES[f"{_op}.data"] = packed(_mode, f"{_op}.data")


def _flatten_parameters(self: torch.nn.RNNBase) -> None:
    """`nn.RNNBase.flatten_parameters` without its look at data pointers, which fakes lack."""
    weights: list[torch.Tensor] = self._flat_weights  # type: ignore[assignment]
    fit = (
        len(weights) == len(self._flat_weights_names)
        and all(isinstance(w, torch.Tensor) for w in weights)
        and all(
            w.dtype == weights[0].dtype and w.is_cuda and torch.backends.cudnn.is_acceptable(w)
            for w in weights
        )
    )
    if not fit:
        return
    stride0 = (4 if self.bias else 2) + (1 if self.proj_size > 0 else 0)
    with torch.no_grad():
        torch._cudnn_rnn_flatten_weight(
            weights, stride0, self.input_size, _MODES[self.mode], self.hidden_size,
            self.proj_size, self.num_layers, self.batch_first, bool(self.bidirectional),
        )  # fmt: skip


def _limit(*_: int) -> int:
    """cuDNN's benchmark limit, read or set: nothing is benchmarked here."""
    return 10


def _reserve_size(input: torch.Tensor, training: bool) -> int:
    """Bytes cuDNN's batch norm keeps for its backward."""
    return 1024 if training else 0


@contextmanager
def cudnn_present() -> Iterator[None]:
    """Python's side finds cuDNN: `torch.backends.cudnn` answers, RNN modules flatten weights."""
    cudnn = torch.backends.cudnn.m  # type: ignore[attr-defined]
    with (
        mock.patch.object(cudnn, "is_available", return_value=True),
        mock.patch.object(cudnn, "_init", return_value=True),
        mock.patch.object(cudnn, "version", return_value=91900),
        mock.patch.object(torch._C, "_cuda_get_cudnn_benchmark_limit", _limit, create=True),
        mock.patch.object(torch._C, "_cuda_set_cudnn_benchmark_limit", _limit, create=True),
        mock.patch.object(
            torch._C, "_get_cudnn_batch_norm_reserve_space_size", _reserve_size, create=True
        ),
        mock.patch.object(torch.nn.RNNBase, "flatten_parameters", _flatten_parameters),
    ):
        yield
