# ruff: noqa
# mypy: ignore-errors
"""torch.nn: multi-head attention."""

import math

import torch
import torch.nn.functional as F


class MultiheadAttention(Module):
    """activation.py and functional.py multi_head_attention_forward; the fused path in eval mode."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self._same = (kdim is None or kdim == embed_dim) and (vdim is None or vdim == embed_dim)
        self.in_proj_weight = _made((3 * embed_dim, embed_dim), device, dtype)
        self.in_proj_bias = _made((3 * embed_dim,), device, dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if not self._same:
            return missing("MultiheadAttention", query), None
        fast = (
            not self.training
            and self.batch_first
            and query is key
            and key is value
            and query.dim() == 3
            and self.num_heads % 2 == 0
            and not (grad_enabled() and self.in_proj_weight.requires_grad)
            and not torch.is_autocast_enabled()
            and self.in_proj_bias is not None
            and (attn_mask is None or attn_mask.dtype is torch.bool)
            and (key_padding_mask is None or key_padding_mask.dtype is torch.bool)
        )
        if fast:
            mask, kind = self._merged(attn_mask, key_padding_mask, query)
            out = aten._native_multi_head_attention(
                query,
                key,
                value,
                self.embed_dim,
                self.num_heads,
                self.in_proj_weight,
                self.in_proj_bias,
                self.out_proj.weight,
                self.out_proj.bias,
                mask,
                need_weights,
                average_attn_weights,
                kind,
            )
            return out[0], out[1]
        if self.batch_first and query.dim() == 3:
            one, two = query is key, key is value
            query = query.transpose(1, 0)
            key = query if one and two else key.transpose(1, 0)
            value = key if two else value.transpose(1, 0)
        t, b, e = query.shape
        s = key.shape[0]
        h, d = self.num_heads, self.head_dim
        if is_causal and attn_mask is not None and not need_weights and key_padding_mask is None:
            attn_mask = None
        else:
            is_causal = False
        q, k, v = self._project(query, key, value)
        if attn_mask is not None and attn_mask.dtype is torch.bool:
            attn_mask = aten.masked_fill_(
                torch.zeros_like(attn_mask, dtype=query.dtype), attn_mask, -math.inf
            )
        if attn_mask is not None and attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)
        q = q.view(t, b * h, d).transpose(0, 1)
        k = k.view(s, b * h, d).transpose(0, 1)
        v = v.view(s, b * h, d).transpose(0, 1)
        if key_padding_mask is not None:
            if key_padding_mask.dtype is torch.bool:
                key_padding_mask = aten.masked_fill_(
                    torch.zeros_like(key_padding_mask, dtype=query.dtype),
                    key_padding_mask,
                    -math.inf,
                )
            key_padding_mask = (
                key_padding_mask.view(b, 1, 1, s).expand(-1, h, -1, -1).reshape(b * h, 1, s)
            )
            attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
        p = self.dropout if self.training else 0.0
        if need_weights:
            q = q * math.sqrt(1.0 / float(d))
            if attn_mask is not None:
                weights = aten.baddbmm(attn_mask, q, k.transpose(-2, -1))
            else:
                weights = aten.bmm(q, k.transpose(-2, -1))
            weights = F.softmax(weights, dim=-1)
            if p > 0.0:
                weights = F.dropout(weights, p)
            out = aten.bmm(weights, v)
            out = out.transpose(0, 1).contiguous().view(t * b, e)
            out = F.linear(out, self.out_proj.weight, self.out_proj.bias).view(t, b, e)
            weights = weights.view(b, h, t, s)
            if average_attn_weights:
                weights = weights.mean(dim=1)
        else:
            if attn_mask is not None:
                if attn_mask.dim() == 3 and attn_mask.shape[0] == 1:
                    attn_mask = attn_mask.unsqueeze(0)
                else:
                    attn_mask = attn_mask.view(b, h, -1, s)
            q = q.view(b, h, t, d)
            k = k.view(b, h, s, d)
            v = v.view(b, h, s, d)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask, p, is_causal)
            out = out.permute(2, 0, 1, 3).contiguous().view(b * t, e)
            out = F.linear(out, self.out_proj.weight, self.out_proj.bias).view(t, b, e)
            weights = None
        if self.batch_first:
            out = out.transpose(1, 0)
        return out, weights

    def _merged(self, attn_mask, key_padding_mask, query):
        """merge_masks, after masks of booleans became numbers."""
        attn_mask = _numbers(attn_mask, query)
        key_padding_mask = _numbers(key_padding_mask, query)
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        if key_padding_mask is None:
            return attn_mask, 0
        b, t = query.shape[0], query.shape[1]
        wide = attn_mask.view(b, -1, t, t) if attn_mask.dim() == 3 else attn_mask.view(1, 1, t, t)
        wide = wide.expand(b, self.num_heads, -1, -1)
        return wide + key_padding_mask.view(b, 1, 1, t).expand(-1, self.num_heads, -1, -1), 2

    def _project(self, q, k, v):
        e = self.embed_dim
        w, bias = self.in_proj_weight, self.in_proj_bias
        if k is v:
            if q is k:
                proj = F.linear(q, w, bias)
                proj = (
                    proj.unflatten(-1, (3, e))
                    .unsqueeze(0)
                    .transpose(0, -2)
                    .squeeze(-2)
                    .contiguous()
                )
                return proj[0], proj[1], proj[2]
            w_q, w_kv = aten.split_with_sizes(w, (e, e * 2), 0)
            b_q, b_kv = (None, None) if bias is None else aten.split_with_sizes(bias, (e, e * 2), 0)
            q = F.linear(q, w_q, b_q)
            kv = F.linear(k, w_kv, b_kv)
            kv = kv.unflatten(-1, (2, e)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return q, kv[0], kv[1]
        w_q, w_k, w_v = aten.split(w, e, 0)
        b_q, b_k, b_v = (None, None, None) if bias is None else aten.split(bias, e, 0)
        return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def _numbers(mask, query):
    """F._canonical_mask."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return aten.masked_fill_(torch.zeros_like(mask, dtype=query.dtype), mask, -math.inf)
