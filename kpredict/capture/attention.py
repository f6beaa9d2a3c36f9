"""`scaled_dot_product_attention` as CUDA takes it: the chosen back end and the host code around it.

Source: aten/src/ATen/native/transformers/attention.cpp (2.6 and main of 2026). The choice itself is
`kpredict.eager.attending`; here are the caller's settings it depends on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend

from kpredict.capture.convert import dtype_name
from kpredict.eager import attending
from kpredict.eager.attending import CUDNN, EFFICIENT, FLASH, MATH
from kpredict.model import Target, Tensor

aten = torch.ops.aten

_BACKENDS = {
    SDPBackend.CUDNN_ATTENTION.value: CUDNN,
    SDPBackend.FLASH_ATTENTION.value: FLASH,
    SDPBackend.EFFICIENT_ATTENTION.value: EFFICIENT,
    SDPBackend.MATH.value: MATH,
}
_NUMBERS = {name: number for number, name in _BACKENDS.items()}
_LOWEST_CUDNN = -65504.0  # cuDNN makes NaN of rows that are masked whole by -inf


def _metadata(t: torch.Tensor) -> Tensor:
    return Tensor(tuple(map(int, t.shape)), tuple(map(int, t.stride())), dtype_name(t.dtype))


def _needs_grad(*tensors: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _choose(
    target: Target, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    mask: torch.Tensor | None, dropout: float, causal: bool, grouped: bool,
) -> str:  # fmt: skip
    call = attending.Attention(
        _metadata(query), _metadata(key), _metadata(value),
        None if mask is None else _metadata(mask), dropout, causal, grouped,
        needs_grad=_needs_grad(query, key, value),
        mask_needs_grad=mask is not None and mask.requires_grad,
        deterministic=torch.are_deterministic_algorithms_enabled()
        and not torch.is_deterministic_algorithms_warn_only_enabled(),
    )  # fmt: skip
    order = tuple(_BACKENDS[n] for n in torch._C._get_sdp_priority_order() if n in _BACKENDS)
    switches = {
        CUDNN: torch._C._get_cudnn_sdp_enabled,
        FLASH: torch._C._get_flash_sdp_enabled,
        EFFICIENT: torch._C._get_mem_efficient_sdp_enabled,
        MATH: torch._C._get_math_sdp_enabled,
    }
    enabled = frozenset(name for name, is_on in switches.items() if is_on())
    backend = attending.choose(call, target, order, enabled)
    if backend is None:
        raise RuntimeError("No available kernel. Aborting execution.")
    return backend


@contextmanager
def cuda_priority(target: Target) -> Iterator[None]:
    """The context's order of back ends as CUDA first sets it for the target."""
    before = torch._C._get_sdp_priority_order()
    order = [_NUMBERS[name] for name in attending.default_order(target)]
    torch._C._set_sdp_priority_order(order + [n for n in before if n not in order])
    try:
        yield
    finally:
        torch._C._set_sdp_priority_order(before)


def _additive(mask: torch.Tensor | None, like: torch.Tensor, low: float) -> torch.Tensor | None:
    """A boolean mask as numbers to add to the scores."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.where(mask, 0.0, torch.scalar_tensor(low, dtype=like.dtype, device=mask.device))


def _aligned_mask(mask: torch.Tensor, shape: Iterable[int]) -> torch.Tensor:
    """Rows of the memory-efficient kernel's bias start at multiples of 8 elements."""
    if mask.stride(-1) != 1 or any(s % 8 for s in mask.stride()[:-1]):
        length = mask.shape[-1]
        mask = torch.nn.functional.pad(mask, (0, 8 - length % 8)).narrow(-1, 0, length)
    return mask.expand(*shape)


def _padded_head(t: torch.Tensor) -> torch.Tensor:
    missing = -t.shape[-1] % 8
    return torch.nn.functional.pad(t, (0, missing)) if missing else t


def scaled_dot_product_attention(
    target: Target, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    *, scale: float | None = None, enable_gqa: bool = False,
) -> torch.Tensor:  # fmt: skip
    """What the composite does once it knows the back end: masks, padding, then the fused op."""
    backend = _choose(target, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    mask = _additive(attn_mask, query, _LOWEST_CUDNN if backend == CUDNN else -math.inf)
    saves = _needs_grad(query, key, value)
    out: torch.Tensor
    if backend == CUDNN:
        out = aten._scaled_dot_product_cudnn_attention(
            query, key, value, mask, saves, dropout_p, is_causal, False, scale=scale
        )[0]
    elif backend == FLASH:
        head = query.shape[-1]
        scale = 1 / math.sqrt(head) if scale is None else scale
        out = aten._scaled_dot_product_flash_attention(
            *map(_padded_head, (query, key, value)), dropout_p, is_causal, False, scale=scale
        )[0]
        out = out if out.shape[-1] == head else out.narrow(-1, 0, head)
    elif backend == EFFICIENT:
        if mask is not None:
            mask = _aligned_mask(mask, (*query.shape[:3], key.shape[2]))
        out = aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, saves, dropout_p, is_causal, scale=scale
        )[0]
    else:
        out = aten._scaled_dot_product_attention_math(
            query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
    return out


def fused_choice(
    target: Target, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    *, scale: float | None = None, enable_gqa: bool = False,
) -> int:  # fmt: skip
    """`aten._fused_sdp_choice`: the back end's number."""
    chosen = _choose(target, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    return _NUMBERS[chosen]
