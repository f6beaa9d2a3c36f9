"""Which attention CUDA runs: cuDNN, flash, memory-efficient or plain math. A pure choice.

PyTorch tries the back ends in the context's order and takes the first whose gates are open. Source:
aten/src/ATen/native/transformers/sdp_utils_cpp.h (header of release 2.13), cuda/sdp_utils.cpp (2.6,
and main between 2.12 and 2.14).
"""

from __future__ import annotations

from dataclasses import dataclass

from kpredict.model import Target, Tensor

CUDNN, FLASH, EFFICIENT, MATH = "cudnn", "flash", "efficient", "math"
ALL = frozenset((CUDNN, FLASH, EFFICIENT, MATH))


@dataclass(frozen=True, slots=True)
class Attention:
    """One call: its tensors and what the gates ask of the caller's state."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    dropout: float = 0.0
    causal: bool = False
    grouped: bool = False
    needs_grad: bool = False
    mask_needs_grad: bool = False
    deterministic: bool = False

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.query, self.key, self.value

    @property
    def lengths(self) -> tuple[int, int]:
        return self.query.shape[-2], self.key.shape[-2]

    @property
    def is_batch_of_heads(self) -> bool:
        return all(t.ndim == 4 for t in self.tensors) and 0 not in self.lengths

    def has_dtype(self, *allowed: str) -> bool:
        return self.query.dtype in allowed and len({t.dtype for t in self.tensors}) == 1

    def heads_match(self, *, grouped: bool, same_kv: bool = True) -> bool:
        """Batch sizes equal; heads equal, or dividing the query's when grouped-query is allowed."""
        q, k, v = self.tensors
        if not q.shape[0] == k.shape[0] == v.shape[0]:
            return False
        heads = [t.shape[1] for t in self.tensors]
        if not (self.grouped and grouped):
            return heads[0] == heads[1] == heads[2]
        if same_kv and heads[1] != heads[2]:
            return False
        return heads[0] % heads[1] == 0 and (same_kv or heads[0] % heads[2] == 0)

    def last_dim_is_dense(self, *, ignore_singleton: bool) -> bool:
        dense = all(t.stride[-1] == 1 for t in self.tensors)
        if ignore_singleton:
            dense = dense or self.query.shape[-1] == 1
        return dense and (self.mask is None or self.mask.stride[-1] == 1)

    def mask_broadcasts(self) -> bool:
        """A mask of 2 or 4 dims, each that of the scores or 1, that wants no gradient."""
        if self.mask is None:
            return True
        if self.mask_needs_grad or self.mask.ndim not in (2, 4):
            return False
        scores = (*self.query.shape[:2], *self.lengths)
        pairs = zip(self.mask.shape, scores[-self.mask.ndim :], strict=True)
        return all(size in (1, full) for size, full in pairs)


def _half_types(target: Target) -> tuple[str, ...]:
    return ("float16", "bfloat16") if target.sm >= 80 else ("float16",)


def can_use_cudnn(call: Attention, target: Target) -> bool:
    """Half types from sm_80 on; head sizes that are multiples of 8, up to 128 (256 on sm_90);
    dropout a multiple of 1/16; more than one key; no deterministic mode."""
    if not (
        call.is_batch_of_heads
        and target.sm >= 80
        and call.has_dtype(*_half_types(target))
        and call.mask_broadcasts()
        and float(call.dropout * 16).is_integer()
        and call.last_dim_is_dense(ignore_singleton=True)
        and call.heads_match(grouped=True, same_kv=False)
        and not call.deterministic
    ):
        return False
    sizes = call.query.shape[-1], call.value.shape[-1]
    limit = 256 if target.sm == 90 else 128
    if target.capability[0] == 10 and sizes == (192, 128):
        limit = 192
    length_q, length_k = call.lengths
    return (
        max(sizes) <= limit
        and all(size % 8 == 0 for size in sizes)
        and length_k != 1
        and not (call.dropout and length_q == 1)
    )


def can_use_flash(call: Attention, target: Target) -> bool:
    """Half types from sm_80 on; one head size up to 256; no mask; causal only when square."""
    size = call.query.shape[-1]
    if not (
        call.is_batch_of_heads
        and call.mask is None
        and all(t.shape[-1] == size for t in call.tensors)
        and size <= 256
        and target.sm >= 80
        and call.has_dtype(*_half_types(target))
        and call.heads_match(grouped=True)
        and call.last_dim_is_dense(ignore_singleton=True)
    ):
        return False
    # these SMs have too little shared memory for the backward of the largest heads
    small_sm = target.sm in range(86, 90) or target.sm >= 120
    trainable = size <= 192 or (call.dropout == 0 and size > 224)
    if call.needs_grad and small_sm and not trainable:
        return False
    return not (call.causal and call.lengths[0] != call.lengths[1])


def can_use_efficient(call: Attention, target: Target) -> bool:
    """Any SM; float32 and half types (bfloat16 from sm_80); head sizes aligned to 16 bytes where
    tensor cores are used, to 4 elements on other GPUs from sm_80."""
    half = call.query.itemsize == 2
    tensor_cores = target.sm >= 80 or half
    alignment = max(4 if target.sm >= 80 else 1, (8 if half else 4) if tensor_cores else 1)
    d_q, d_k, d_v = (t.shape[-1] for t in call.tensors)
    return (
        call.is_batch_of_heads
        and d_q == d_k
        and all(d > 0 and d % alignment == 0 for d in (d_q, d_v))
        and call.last_dim_is_dense(ignore_singleton=False)
        and call.heads_match(grouped=False)
        and call.has_dtype("float32", *_half_types(target))
    )


_GATES = {CUDNN: can_use_cudnn, FLASH: can_use_flash, EFFICIENT: can_use_efficient}


def default_order(target: Target) -> tuple[str, ...]:
    """cuDNN goes first on sm_9x and sm_10x, and last elsewhere (check_prefer_cudnn_attention)."""
    major, minor = target.capability
    if major in (9, 10) and (target.cuda >= 13 or minor in (0, 3)):
        return (CUDNN, FLASH, EFFICIENT, MATH)
    return (FLASH, EFFICIENT, MATH, CUDNN)


def choose(
    call: Attention,
    target: Target,
    order: tuple[str, ...] | None = None,
    enabled: frozenset[str] = ALL,
) -> str | None:
    """The first enabled back end of `order` whose gates are open; None if there is none."""
    for backend in order or default_order(target):
        if backend in enabled and (backend == MATH or _GATES[backend](call, target)):
            return backend
    return None
