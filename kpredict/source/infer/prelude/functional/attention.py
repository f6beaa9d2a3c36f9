# ruff: noqa
# mypy: ignore-errors
"""Scaled dot product attention (attention.cpp)."""

import math

import torch


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """attention.cpp; the choice of a back end is kpredict.eager.attending's."""
    backend = attention_backend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    mask = attn_mask
    if mask is not None and mask.dtype is torch.bool:
        mask = torch.where(
            mask, 0.0, torch.scalar_tensor(-math.inf, dtype=query.dtype, device=query.device)
        )
    saves = grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    if backend == "cudnn":
        return aten._scaled_dot_product_cudnn_attention(
            query, key, value, mask, saves, dropout_p, is_causal, False
        )[0]
    if backend == "flash":
        head = query.shape[-1]
        extra = -head % 8
        if extra:
            query, key, value = pad(query, (0, extra)), pad(key, (0, extra)), pad(value, (0, extra))
        out = aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False
        )[0]
        return out[..., :head] if extra else out
    if backend == "efficient":
        if mask is not None:
            if known(mask.stride()) and (
                mask.stride()[-1] != 1 or any([s % 8 for s in mask.stride()[:-1]])
            ):
                length = mask.shape[-1]
                mask = pad(mask, (0, 8 - length % 8))[..., :length]
            mask = mask.expand((*query.shape[:3], key.shape[2]))
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, saves, dropout_p, is_causal
        )[0]
    if not known(backend):
        return one_call("aten._scaled_dot_product_flash_attention", query, key, value)
    # _scaled_dot_product_attention_math
    if is_causal:
        mask = torch.ones(
            (query.shape[-2], key.shape[-2]), dtype=torch.bool, device=query.device
        ).tril()
        mask = torch.where(
            mask, 0.0, torch.scalar_tensor(-math.inf, dtype=query.dtype, device=query.device)
        )
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    q = aten.mul(query, factor)
    k = aten.mul(key.transpose(-2, -1), factor)
    attn = torch.matmul(q, k)
    if mask is not None:
        attn = aten.add_(attn, mask) if not saves else aten.add(attn, mask)
    attn = aten._safe_softmax(attn, -1) if mask is not None else torch.softmax(attn, -1)
    attn = torch.dropout(attn, dropout_p, True) if dropout_p > 0.0 else attn
    return torch.matmul(attn, value)
