"""`scaled_dot_product_attention` as CUDA takes it: which back end, and the host code around it.

CUDA tries cuDNN, flash, memory-efficient and math attention in the context's priority order and takes
the first whose gates are open. Source: aten/src/ATen/native/transformers/attention.cpp,
sdp_utils_cpp.h (header of release 2.13) and cuda/sdp_utils.cpp (2.6 and main between 2.12 and 2.14).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend

from kpredict.model import Target

aten = torch.ops.aten

_HALF = (torch.float16, torch.bfloat16)
_NEG_INF_CUDNN = -65504.0  # cuDNN's own -inf gives NaN for rows that are masked whole


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments the gates look at."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    dropout: float
    causal: bool
    gqa: bool

    @property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.query, self.key, self.value

    @property
    def needs_grad(self) -> bool:
        return torch.is_grad_enabled() and any(t.requires_grad for t in self.tensors)

    @property
    def head_dims(self) -> tuple[int, int, int]:
        return self.query.shape[-1], self.key.shape[-1], self.value.shape[-1]

    @property
    def lengths(self) -> tuple[int, int]:
        return self.query.shape[-2], self.key.shape[-2]


def _dtypes(call: Call, allowed: tuple[torch.dtype, ...]) -> bool:
    return call.query.dtype in allowed and len({t.dtype for t in call.tensors}) == 1


def _low_precision(target: Target) -> tuple[torch.dtype, ...]:
    return _HALF if target.sm >= 80 else (torch.float16,)


def _heads_match(call: Call, gqa: bool, same_kv_heads: bool = True) -> bool:
    """Batch sizes equal; heads equal, or dividing the query's when grouped-query is allowed."""
    q, k, v = call.tensors
    if not q.shape[0] == k.shape[0] == v.shape[0]:
        return False
    heads = [t.shape[-3] for t in call.tensors]
    if not (call.gqa and gqa):
        return heads[0] == heads[1] == heads[2]
    if same_kv_heads and heads[1] != heads[2]:
        return False
    return heads[0] % heads[1] == 0 and (same_kv_heads or heads[0] % heads[2] == 0)


def _last_dim_dense(call: Call, ignore_singleton: bool) -> bool:
    dense = all(t.stride(-1) == 1 for t in call.tensors)
    if ignore_singleton:
        dense = dense or call.query.shape[-1] == 1
    return dense and (call.mask is None or call.mask.stride(-1) == 1)


def _mask_shape_fits(call: Call) -> bool:
    """2-D or 4-D, each dim equal or 1, and no gradient wanted (check_attn_mask_shape)."""
    mask = call.mask
    if mask is None:
        return True
    full = (call.query.shape[0], call.query.shape[1], *call.lengths)
    if mask.requires_grad or mask.dim() not in (2, 4):
        return False
    return all(m in (1, n) for m, n in zip(mask.shape, full[-mask.dim() :], strict=True))


def _is_batch_of_heads(call: Call) -> bool:
    return all(t.dim() == 4 for t in call.tensors)


def can_use_cudnn(call: Call, target: Target) -> bool:
    """Half types on sm_80 and newer, head size a multiple of 8 up to 128 (256 on sm_90), dropout a
    multiple of 1/16, no sequence of one key, no deterministic mode."""
    if not (
        torch.backends.cuda.cudnn_sdp_enabled()
        and _is_batch_of_heads(call)
        and target.sm >= 80
        and _dtypes(call, _low_precision(target))
        and _mask_shape_fits(call)
        and float(call.dropout * 16).is_integer()
        and 0 not in call.lengths
        and _last_dim_dense(call, True)
        and _heads_match(call, gqa=True, same_kv_heads=False)
    ):
        return False
    if torch.are_deterministic_algorithms_enabled():
        if not torch.is_deterministic_algorithms_warn_only_enabled():
            return False
    d_qk, _, d_v = call.head_dims
    limit = 128
    if target.sm == 90:
        limit = 256
    elif target.capability[0] == 10 and (d_qk, d_v) == (192, 128):
        limit = 192
    length_q, length_k = call.lengths
    return (
        max(d_qk, d_v) <= limit
        and d_qk % 8 == 0
        and d_v % 8 == 0
        and length_k != 1
        and not (call.dropout != 0 and length_q == 1)
    )


def can_use_flash(call: Call, target: Target) -> bool:
    """Half types on sm_80 and newer, one head size up to 256, no mask, causal only when square."""
    d_qk, d_k, d_v = call.head_dims
    if not (
        torch.backends.cuda.flash_sdp_enabled()
        and _is_batch_of_heads(call)
        and call.mask is None
        and d_qk == d_k == d_v
        and d_qk <= 256
        and target.sm >= 80
        and _dtypes(call, _low_precision(target))
        and _heads_match(call, gqa=True)
        and 0 not in call.lengths
        and _last_dim_dense(call, True)
    ):
        return False
    if call.needs_grad and (target.sm in range(86, 90) or target.sm >= 120):
        # these SMs have too little shared memory for the backward of large heads
        if not (d_qk <= 192 or (call.dropout == 0 and d_qk > 224)):
            return False
    return not (call.causal and call.lengths[0] != call.lengths[1])


def can_use_efficient(call: Call, target: Target) -> bool:
    """Any SM; fp32 and half types (bf16 from sm_80); head sizes aligned to the tensor core tile."""
    half = call.query.dtype in _HALF
    tensor_cores = target.sm >= 80 or half
    alignment = max(4 if target.sm >= 80 else 1, (8 if half else 4) if tensor_cores else 1)
    d_qk, d_k, d_v = call.head_dims
    allowed = (torch.float16, torch.float32) + ((torch.bfloat16,) if target.sm >= 80 else ())
    return (
        torch.backends.cuda.mem_efficient_sdp_enabled()
        and _is_batch_of_heads(call)
        and d_qk == d_k
        and d_qk > 0
        and d_v > 0
        and d_qk % alignment == 0
        and d_v % alignment == 0
        and 0 not in call.lengths
        and _last_dim_dense(call, False)
        and _heads_match(call, gqa=False)
        and _dtypes(call, allowed)
    )


_GATES = {
    SDPBackend.CUDNN_ATTENTION: can_use_cudnn,
    SDPBackend.FLASH_ATTENTION: can_use_flash,
    SDPBackend.EFFICIENT_ATTENTION: can_use_efficient,
    SDPBackend.MATH: lambda call, target: torch.backends.cuda.math_sdp_enabled(),
}


def choose(call: Call, target: Target) -> SDPBackend:
    """The first back end of the context's order whose gate is open; RuntimeError if none is."""
    for number in torch._C._get_sdp_priority_order():
        gate = _GATES.get(SDPBackend(number))
        if gate is not None and gate(call, target):
            return SDPBackend(number)
    raise RuntimeError("No available kernel. Aborting execution.")


@contextmanager
def cuda_priority(target: Target) -> Iterator[None]:
    """The order CUDA starts from: cuDNN first on sm_9x and sm_10x (check_prefer_cudnn_attention)."""
    before = torch._C._get_sdp_priority_order()
    if target.capability[0] in (9, 10) and (target.cuda >= 13 or target.capability[1] in (0, 3)):
        cudnn = int(SDPBackend.CUDNN_ATTENTION)
        torch._C._set_sdp_priority_order([cudnn, *(b for b in before if b != cudnn)])
    try:
        yield
    finally:
        torch._C._set_sdp_priority_order(before)


def _additive(mask: torch.Tensor | None, like: torch.Tensor, low: float) -> torch.Tensor | None:
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
    target: Target,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """What the composite does once it knows the back end: masks, padding, then the fused op."""
    call = Call(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    backend = choose(call, target)
    low = _NEG_INF_CUDNN if backend == SDPBackend.CUDNN_ATTENTION else -math.inf
    mask = _additive(attn_mask, query, low)
    if backend == SDPBackend.CUDNN_ATTENTION:
        out = aten._scaled_dot_product_cudnn_attention(
            query, key, value, mask, call.needs_grad, dropout_p, is_causal, False, scale=scale
        )[0]
    elif backend == SDPBackend.FLASH_ATTENTION:
        head = query.shape[-1]
        out = aten._scaled_dot_product_flash_attention(
            *(_padded_head(t) for t in call.tensors), dropout_p, is_causal, False,
            scale=1 / math.sqrt(head) if scale is None else scale,
        )[0]  # fmt: skip
        if out.shape[-1] != head:
            out = out.narrow(-1, 0, head)
    elif backend == SDPBackend.EFFICIENT_ATTENTION:
        if mask is not None:
            mask = _aligned_mask(mask, (*query.shape[:3], key.shape[2]))
        out = aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, call.needs_grad, dropout_p, is_causal, scale=scale
        )[0]
    else:
        out = aten._scaled_dot_product_attention_math(
            query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
    return out


def fused_choice(
    target: Target,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> int:
    """`aten._fused_sdp_choice`: the back end's number."""
    return choose(
        Call(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa), target
    ).value
