# ruff: noqa
# mypy: ignore-errors
"""torch.nn: linear layers and embeddings."""

import torch
import torch.nn.functional as F


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        self.in_features = in_features
        self.out_features = out_features
        self.weight = _made((out_features, in_features), device, dtype)
        self.bias = _made((out_features,), device, dtype) if bias else None

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)


class LazyLinear(Module):
    def __init__(self, out_features, bias=True, device=None, dtype=None):
        self.weight = _made(unknown(), device, dtype)
        self.bias = _made((out_features,), device, dtype) if bias else None

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)


class Bilinear(Module):
    def __init__(
        self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None
    ):
        self.weight = _made((out_features, in1_features, in2_features), device, dtype)
        self.bias = _made((out_features,), device, dtype) if bias else None

    def forward(self, input1, input2):
        return torch.bilinear(input1, input2, self.weight, self.bias)


class Embedding(Module):
    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = _made((num_embeddings, embedding_dim), device, dtype)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(Module):
    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        self.mode = mode
        self.weight = _made((num_embeddings, embedding_dim), device, dtype)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights
        )
