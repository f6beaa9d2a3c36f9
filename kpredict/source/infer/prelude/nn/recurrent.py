# ruff: noqa
# mypy: ignore-errors
"""torch.nn: recurrent layers and cells."""

import torch
import torch.nn.functional as F


class _RNN(Module):
    """rnn.py, and cudnn/RNN.cpp: one cuDNN call for all layers; zero states are made first."""

    gates = 1
    mode = 1

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        ways = 2 if bidirectional else 1
        self.ways = ways
        weights = []
        for layer in range(num_layers):
            for _ in range(ways):
                width = input_size if layer == 0 else hidden_size * ways
                weights.append(_made((self.gates * hidden_size, width), device, dtype))
                weights.append(_made((self.gates * hidden_size, hidden_size), device, dtype))
                if bias:
                    weights.append(_made((self.gates * hidden_size,), device, dtype))
                    weights.append(_made((self.gates * hidden_size,), device, dtype))
        self.flat = weights
        self.per_layer = 4 if bias else 2

    def flatten_parameters(self):
        pass

    def forward(self, input, hx=None):
        unbatched = input.dim() == 2
        if unbatched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        batch = input.shape[0] if self.batch_first else input.shape[1]
        zeros = (self.num_layers * self.ways, batch, self.hidden_size)
        c = None
        if self.mode == 2:
            if hx is None:
                h = torch.zeros(zeros, dtype=input.dtype, device=input.device)
                c = torch.zeros(zeros, dtype=input.dtype, device=input.device)
            else:
                h, c = hx
        else:
            h = torch.zeros(zeros, dtype=input.dtype, device=input.device) if hx is None else hx
        out = aten._cudnn_rnn(
            input,
            self.flat,
            self.per_layer,
            packed_buffer(self.flat),
            h,
            c,
            self.mode,
            self.hidden_size,
            0,
            self.num_layers,
            self.batch_first,
            self.dropout,
            self.training,
            self.bidirectional,
            (),
            None,
        )
        y = out[0]
        if unbatched:
            y = y.squeeze(0 if self.batch_first else 1)
        if self.mode == 2:
            return y, (out[1], out[2])
        return y, out[1]


class RNN(_RNN):
    pass


class LSTM(_RNN):
    gates = 4
    mode = 2


class GRU(_RNN):
    gates = 3
    mode = 3


class _Cell(Module):
    gates = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        self.hidden_size = hidden_size
        self.weight_ih = _made((self.gates * hidden_size, input_size), device, dtype)
        self.weight_hh = _made((self.gates * hidden_size, hidden_size), device, dtype)
        self.bias_ih = _made((self.gates * hidden_size,), device, dtype) if bias else None
        self.bias_hh = _made((self.gates * hidden_size,), device, dtype) if bias else None


class GRUCell(_Cell):
    gates = 3

    def forward(self, input, hx=None):
        if hx is None:
            hx = torch.zeros(
                (input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device
            )
        i = torch.matmul(input, self.weight_ih.t())
        h = torch.matmul(hx, self.weight_hh.t())
        return aten._thnn_fused_gru_cell(i, h, hx, self.bias_ih, self.bias_hh)[0]


class LSTMCell(_Cell):
    gates = 4

    def forward(self, input, hx=None):
        if hx is None:
            z = torch.zeros(
                (input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device
            )
            hx = (z, z)
        i = torch.matmul(input, self.weight_ih.t())
        h = torch.matmul(hx[0], self.weight_hh.t())
        out = aten._thnn_fused_lstm_cell(i, h, hx[1], self.bias_ih, self.bias_hh)
        return out[0], out[1]


class RNNCell(_Cell):
    def forward(self, input, hx=None):
        if hx is None:
            hx = torch.zeros(
                (input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device
            )
        return torch.tanh(
            F.linear(input, self.weight_ih, self.bias_ih)
            + F.linear(hx, self.weight_hh, self.bias_hh)
        )
