# ruff: noqa
# mypy: ignore-errors
"""torch.nn: transformer layers."""

import math

import torch
import torch.nn.functional as F


class TransformerEncoderLayer(Module):
    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)
        self.name = activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        a = self.self_attn
        fast = (
            not self.training
            and a.batch_first
            and src.dim() == 3
            and a.num_heads % 2 == 0
            and a.in_proj_bias is not None
            and not torch.is_autocast_enabled()
            and self.name in ("relu", "gelu", F.relu, F.gelu)
            and not (grad_enabled() and self.linear1.weight.requires_grad)
        )
        if fast:
            mask, kind = a._merged(src_mask, src_key_padding_mask, src)
            return aten._transformer_encoder_layer_fwd(
                src,
                a.embed_dim,
                a.num_heads,
                a.in_proj_weight,
                a.in_proj_bias,
                a.out_proj.weight,
                a.out_proj.bias,
                self.name == "gelu",
                self.norm_first,
                self.norm1.eps,
                self.norm1.weight,
                self.norm1.bias,
                self.norm2.weight,
                self.norm2.bias,
                self.linear1.weight,
                self.linear1.bias,
                self.linear2.weight,
                self.linear2.bias,
                mask,
                kind,
            )
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            x = x + self._feed(self.norm2(x))
        else:
            x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask, is_causal))
            x = self.norm2(x + self._feed(x))
        return x

    def _attend(self, x, mask, padding, is_causal):
        return self.dropout1(
            self.self_attn(
                x,
                x,
                x,
                attn_mask=mask,
                key_padding_mask=padding,
                need_weights=False,
                is_causal=is_causal,
            )[0]
        )

    def _feed(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _activation(a):
    return F.relu if a == "relu" else F.gelu if a == "gelu" else a


class TransformerDecoderLayer(Module):
    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias=bias, batch_first=batch_first
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.norm3 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        x = tgt
        if self.norm_first:
            x = x + self._self(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._cross(
                self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )
            x = x + self._feed(self.norm3(x))
        else:
            x = self.norm1(x + self._self(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
            x = self.norm2(
                x + self._cross(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            )
            x = self.norm3(x + self._feed(x))
        return x

    def _self(self, x, mask, padding, causal):
        return self.dropout1(
            self.self_attn(
                x,
                x,
                x,
                attn_mask=mask,
                key_padding_mask=padding,
                is_causal=causal,
                need_weights=False,
            )[0]
        )

    def _cross(self, x, mem, mask, padding, causal):
        return self.dropout2(
            self.multihead_attn(
                x,
                mem,
                mem,
                attn_mask=mask,
                key_padding_mask=padding,
                is_causal=causal,
                need_weights=False,
            )[0]
        )

    def _feed(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class _Stack(Module):
    def __init__(self, layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.norm = norm
        self.nested = enable_nested_tensor

    def _is_causal(self, mask, is_causal):
        """_detect_is_causal_mask: compared on the device, and the host reads the answer."""
        if is_causal is not None or mask is None:
            return bool(is_causal)
        n = mask.shape[-2]
        other = torch.full((n, n), -math.inf, dtype=mask.dtype, device=mask.device)
        other = aten.triu(other, 1)
        if known(mask.shape) and mask.shape != other.shape:
            return False
        return bool(aten.all(aten.eq(mask, other)))


class TransformerEncoder(_Stack):
    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        if self.nested and src_key_padding_mask is not None and not self.training:
            first = self.layers[0]
            if first.self_attn.batch_first and not first.norm_first and not grad_enabled():
                return missing("TransformerEncoder with nested tensors", src)
        if self._is_causal(mask, is_causal):
            return self._run(src, mask, src_key_padding_mask, True)
        return self._run(src, mask, src_key_padding_mask, False)

    def _run(self, src, mask, padding, is_causal):
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(_Stack):
    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        if self._is_causal(tgt_mask, tgt_is_causal):
            return self._run(tgt, memory, masks, True, memory_is_causal)
        return self._run(tgt, memory, masks, False, memory_is_causal)

    def _run(self, tgt, memory, masks, causal, memory_causal):
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=masks[0],
                memory_mask=masks[1],
                tgt_key_padding_mask=masks[2],
                memory_key_padding_mask=masks[3],
                tgt_is_causal=causal,
                memory_is_causal=memory_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        return torch.triu(torch.full((sz, sz), -math.inf, dtype=dtype, device=device), diagonal=1)
