"""Fused attention, forward and backward: cuDNN, flash and memory-efficient kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import wraps

from kpredict.eager.copying import compact, copy, like, zero
from kpredict.eager.cutlass_attention import (
    backward_kernel,
    forward_name,
    key_splits,
    workspace_bytes,
)
from kpredict.eager.elementwise import elementwise
from kpredict.eager.gemm import release
from kpredict.eager.launches import contiguous, kernel, library, workspace
from kpredict.eager.reducing import reduce
from kpredict.eager.registry import RuleFunction, rule
from kpredict.model import Launch, Op, Target, Tensor

_DIR = "aten/src/ATen/native/transformers/cuda"
_ATTENTION = f"{_DIR}/attention.cu, 2.6"
_BACKWARD = f"{_DIR}/attention_backward.cu, 2.6"


def swapped(t: Tensor) -> Tensor:
    """`t.transpose(1, 2)`: heads before length to length before heads, and back."""
    (b, h, n, d), (sb, sh, sn, sd) = t.shape, t.stride
    return replace(t, shape=(b, n, h, d), stride=(sb, sn, sh, sd))


def _flops(q: Tensor, k: Tensor, v: Tensor, products: tuple[int, int]) -> int:
    """`products` multiplications over the head size of the keys, and over that of the values."""
    batch, length, heads, size = q.shape
    return 2 * batch * heads * length * k.shape[1] * (products[0] * size + products[1] * v.shape[3])


def _forward_flops(q: Tensor, k: Tensor, v: Tensor) -> int:
    return _flops(q, k, v, (1, 1))


def _backward_flops(q: Tensor, k: Tensor, v: Tensor) -> int:
    return _flops(q, k, v, (3, 2))


def _masked(function: RuleFunction) -> RuleFunction:
    """A rule whose FLOPs leave out what a causal mask does: the kernels skip it block by block. Of
    unequal lengths only what is needed wherever the diagonal lies is kept."""

    @wraps(function)
    def masked(op: Op, target: Target) -> Iterator[Launch]:
        is_causal = op.get("is_causal", False) or op.get("custom_mask_type", 0) != 0
        q, k = op["query"], op["key"]
        dim = 1 if op.packet.startswith(("aten._flash", "aten._efficient")) else 2
        for launch in function(op, target):
            if launch.flops and is_causal and q.ndim == 4:
                length, keys = q.shape[dim], k.shape[dim]
                n = min(length, keys)
                launch = replace(launch, flops=launch.flops * n * (n + 1) // (2 * length * keys))
            yield launch

    return masked


def _given(*tensors: object) -> list[Tensor]:
    return [t for t in tensors if isinstance(t, Tensor)]


# ---- flash


def splits_of_keys(
    batch: int, heads: int, length_q: int, length_k: int, size: int, target: Target
) -> int:
    """How many blocks share one block of queries (num_splits_heuristic): one if the queries fill
    80% of the SMs (two blocks each); else the fewest whose last wave is 85% as full as the best."""
    slots = 2 * target.sms
    blocks = batch * heads * -(-length_q // 64)
    if blocks >= 0.8 * slots:
        return 1
    width = 256 if size <= 64 else 128 if size <= 128 else 64
    key_blocks = -(-length_k // width)
    eligible = {
        n: blocks * n / slots
        for n in range(1, min(128, slots, key_blocks) + 1)
        if n == 1 or -(-key_blocks // n) != -(-key_blocks // (n - 1))
    }
    full = {n: waves / -(-waves // 1) for n, waves in eligible.items()}
    best = max(full.values(), default=0.0)
    return next((n for n, share in full.items() if share >= 0.85 * best), 1)


def flash_forward(
    q: Tensor, k: Tensor, v: Tensor, written: list[Tensor], dropout: float, target: Target,
    *, windowed: bool = False, varlen: bool = False,
) -> Iterator[Launch]:  # fmt: skip
    """Tensors are (batch, length, heads, size)."""
    if 0 in k.shape[:2]:
        yield from zero(written[0])
        return
    batch, length, heads, size = q.shape
    if length == 1 and heads > k.shape[2] and not windowed and dropout == 0:
        length, heads = heads // k.shape[2], k.shape[2]  # groups of heads become query rows
    splits = 1
    if dropout == 0 and not varlen:
        splits = splits_of_keys(batch, heads, length, k.shape[1], size, target)
    flops = _forward_flops(q, k, v)
    if splits == 1:
        yield replace(kernel("flash_fwd_kernel", [q, k, v], written), flops=flops)
        return
    rows = splits * batch * heads * length
    parts = [workspace(rows * -(-size // 32) * 32, "float32"), workspace(rows, "float32")]
    why = f"few queries: {splits} blocks share them, each with a part of the keys"
    yield replace(kernel("flash_fwd_splitkv_kernel", [q, k, v], parts, because=why), flops=flops)
    yield kernel("flash_fwd_splitkv_combine_kernel", parts, written, because="adds up the parts")


def flash_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
    grads: list[Tensor], target: Target,
) -> Iterator[Launch]:  # fmt: skip
    dout, copies = compact(grad)
    o, more = compact(out)
    yield from (*copies, *more)
    batch, length, heads, size = q.shape
    padded = -(-length // 128) * 128
    delta = workspace(batch * heads * padded, "float32")
    dq_sum = workspace(batch * heads * padded * -(-size // 32) * 32, "float32")
    dq, dk, dv = grads
    grouped = k.shape[2] != heads
    if grouped:
        dk, dv = (contiguous(t, shape=(batch, k.shape[1], heads, size)) for t in (k, v))
    yield kernel("flash_bwd_dot_do_o_kernel", [dout, o], [delta, dq_sum])
    yield replace(
        kernel(
            "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
            [q, k, v, dout, lse, delta, dq_sum], [dq_sum, dk, dv],
        ),
        flops=_backward_flops(q, k, v),
    )  # fmt: skip
    yield kernel("flash_bwd_convert_dq_kernel", [dq_sum], [dq])
    if grouped:
        groups = (batch, k.shape[1], k.shape[2], heads // k.shape[2], size)
        for wide, narrow in ((dk, grads[1]), (dv, grads[2])):
            by_group = replace(contiguous(wide, shape=groups), storage=wide.storage)
            yield from reduce([narrow], by_group, 3, target, because="adds up a group of heads")


@rule("aten._scaled_dot_product_flash_attention", source=f"{_ATTENTION}; flash_attn/flash_api.cpp")
@_masked
def sdpa_flash(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; two when the queries fill less than 80% of the SMs, so that several blocks share
    them and a second kernel combines (never with dropout)."""
    q, k, v = (swapped(op[name]) for name in ("query", "key", "value"))
    return flash_forward(q, k, v, _given(*op.outputs[:2]), op["dropout_p"], target)


@rule("aten._flash_attention_forward", source=f"{_ATTENTION}; flash_attn/flash_api.cpp")
@_masked
def flash(op: Op, target: Target) -> Iterable[Launch]:
    """As the SDPA op; sequences of different lengths (cumulative lengths given) are never split."""
    varlen = op.get("cum_seq_q") is not None
    q, k, v = op["query"], op["key"], op["value"]
    if varlen:
        return [kernel("flash_fwd_kernel", [q, k, v], _given(*op.outputs[:2]))]
    windowed = any(
        w is not None and w >= 0 for w in (op["window_size_left"], op["window_size_right"])
    )
    written = _given(*op.outputs[:2])
    return flash_forward(q, k, v, written, op["dropout_p"], target, windowed=windowed)


@rule("aten._scaled_dot_product_flash_attention_backward", source=_BACKWARD)
@_masked
def sdpa_flash_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Copies of grad_out and out where they are not contiguous with the length before the heads;
    then three kernels: row sums of grad*out, the gradients, the query gradient's cast. Grouped
    heads add two sums."""
    names = ("grad_out", "query", "key", "value", "out")
    grad, q, k, v, out = (swapped(op[name]) for name in names)
    grads = [swapped(t) for t in _given(*op.outputs)]
    return flash_backward(grad, q, k, v, out, op["logsumexp"], grads, target)


@rule("aten._flash_attention_backward", source=_BACKWARD)
@_masked
def flash_grad(op: Op, target: Target) -> Iterable[Launch]:
    """As the SDPA op's backward."""
    grad, q, k, v, out = (op[n] for n in ("grad_out", "query", "key", "value", "out"))
    if q.ndim == 3:  # sequences of different lengths, one after the other
        one = [replace(t, shape=(1, *t.shape), stride=(0, *t.stride)) for t in (q, k, v)]
        q, k, v = one
    return flash_backward(grad, q, k, v, out, op["logsumexp"], _given(*op.outputs), target)


# ---- memory-efficient


def _precision(q: Tensor, target: Target) -> str:
    """From sm_80 on CUTLASS makes a float32 product of three TF32 ones (OpMultiplyAddFastF32)."""
    return "3xtf32" if q.dtype == "float32" and target.sm >= 80 else ""


def efficient_forward(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, written: list[Tensor], dropout: float,
    target: Target,
) -> Iterator[Launch]:  # fmt: skip
    if not dropout and release(target) >= (2, 14):
        for name in ("seed", "offset"):
            yield from zero(contiguous(q, shape=(), dtype="int64"), because=f"no dropout: {name} 0")
    found = kernel(forward_name(q, k, v, target), _given(q, k, v, bias), written)
    yield replace(found, flops=_forward_flops(q, k, v), precision=_precision(q, target))


def efficient_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, out: Tensor, lse: Tensor,
    grads: list[Tensor], dropout: float, target: Target,
) -> Iterator[Launch]:  # fmt: skip
    dout, copies = compact(grad)
    yield from copies
    taken = backward_kernel(q, k, v, dropout != 0, target)
    batch, length, heads, _ = q.shape
    delta = workspace(batch * heads * length, "float32")
    if not taken.computes_delta:
        product, sums = like(dout, "float32"), contiguous(delta, shape=(batch, length, heads))
        why = "row sums of grad*out, which this kernel does not compute itself"
        for t in (dout, out):
            if t.dtype != "float32":
                yield from copy(like(t, "float32"), t)
        yield from elementwise([product], [dout, out], because=why)
        yield from reduce([sums], product, 3, target, because=why)
        delta = contiguous(delta, shape=(batch, heads, length))
        (sb, sl, sh) = sums.stride
        turned = replace(sums, shape=(batch, heads, length), stride=(sb, sh, sl))
        yield from copy(delta, turned, because="heads before rows")
    splits = key_splits(taken, q, k, deterministic=False)
    buffer = workspace(workspace_bytes(taken, q, v, splits), "uint8")
    if splits > 1:
        yield from zero(buffer, because=f"locks of the {splits} blocks that share a gradient")
    reads = _given(dout, q, k, v, bias, out, lse, delta)
    found = kernel(taken.name, reads, [*grads, buffer])
    yield replace(found, flops=_backward_flops(q, k, v), precision=_precision(q, target))


@rule("aten._scaled_dot_product_efficient_attention", source=_ATTENTION)
@_masked
def sdpa_efficient(op: Op, target: Target) -> Iterable[Launch]:
    """One CUTLASS kernel; its name tells dtype, tile and generation. From 2.14 two fills before it
    when there is no dropout."""
    q, k, v = (swapped(op[name]) for name in ("query", "key", "value"))
    written = _given(*op.outputs[:2])
    return efficient_forward(q, k, v, op["attn_bias"], written, op["dropout_p"], target)


@rule("aten._efficient_attention_forward", source=_ATTENTION)
@_masked
def efficient(op: Op, target: Target) -> Iterable[Launch]:
    """As the SDPA op, on tensors with the length before the heads."""
    q, k, v = op["query"], op["key"], op["value"]
    written = _given(*op.outputs[:2])
    return efficient_forward(q, k, v, op["bias"], written, op["dropout_p"], target)


@rule("aten._scaled_dot_product_efficient_attention_backward", source=_BACKWARD)
@_masked
def sdpa_efficient_backward(op: Op, target: Target) -> Iterable[Launch]:
    """A copy of grad_out where it is not contiguous with the length before the heads; for float32
    three kernels for the row sums of grad*out; a fill of the workspace when several blocks share
    the keys; then one CUTLASS kernel."""
    grad, q, k, v, out = (swapped(op[n]) for n in ("grad_out_", "query", "key", "value", "out"))
    return efficient_backward(
        grad, q, k, v, op["attn_bias"], out, op["logsumexp"], _given(*op.outputs), op["dropout_p"],
        target,
    )  # fmt: skip


@rule("aten._efficient_attention_backward", source=_BACKWARD)
@_masked
def efficient_grad(op: Op, target: Target) -> Iterable[Launch]:
    """As the SDPA op's backward."""
    grad, q, k, v, out = (op[n] for n in ("grad_out_", "query", "key", "value", "out"))
    return efficient_backward(
        grad, q, k, v, op["bias"], out, op["logsumexp"], _given(*op.outputs), op["dropout_p"],
        target,
    )  # fmt: skip


# ---- cuDNN


@rule("aten._scaled_dot_product_cudnn_attention", "aten._cudnn_attention_forward",
      source=f"{_ATTENTION}; cudnn/MHA.cpp")  # fmt: skip
@_masked
def sdpa_cudnn(op: Op, target: Target) -> Iterable[Launch]:
    """One cuDNN graph; with dropout a small kernel before it writes seed and offset."""
    q, k, v = (swapped(op[name]) for name in ("query", "key", "value"))
    if op["dropout_p"] != 0:
        seed = [workspace(1, "int64"), workspace(1, "int64")]
        yield kernel("unpack_cudnn", [], seed, because="seed and offset of the dropout")
    if 0 in (q.numel, k.numel, v.numel):
        return
    reads = _given(q, k, v, op["attn_bias"])
    written = _given(op.outputs[0]) + (_given(op.outputs[1]) if op["compute_log_sumexp"] else [])
    yield library(
        "cudnnBackendExecute", reads, written, because="cuDNN runs attention as one fused kernel",
        flops=_forward_flops(q, k, v),
    )  # fmt: skip


@rule("aten._scaled_dot_product_cudnn_attention_backward", "aten._cudnn_attention_backward",
      source=f"{_BACKWARD}; cudnn/MHA.cpp")  # fmt: skip
@_masked
def sdpa_cudnn_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One cuDNN graph; a grad_out whose last stride is not 1 is copied into out's layout before."""
    grad, q, k, v, out = (op[n] for n in ("grad_out", "query", "key", "value", "out"))
    if grad.stride[-1] != 1 and grad.numel:
        fresh = like(out)
        yield from copy(fresh, grad, because="cuDNN wants the last stride to be 1")
        grad = fresh
    reads = _given(grad, q, k, v, out, op["logsumexp"], op["attn_bias"])
    yield library(
        "cudnnBackendExecute", reads, _given(*op.outputs), lo=1, hi=3, expected=3,
        because="row sums, the gradients and the query gradient's cast, one fused kernel in some "
        "releases", flops=_backward_flops(swapped(q), swapped(k), swapped(v)),
    )  # fmt: skip
