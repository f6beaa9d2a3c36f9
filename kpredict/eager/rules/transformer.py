"""The transformer fast path: one op whose host code calls a dozen others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from kpredict.eager import attending
from kpredict.eager.attending import CUDNN, EFFICIENT, FLASH
from kpredict.eager.calling import call
from kpredict.eager.copying import compact, to
from kpredict.eager.launches import contiguous, kernel, workspace
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_ENCODER = "aten/src/ATen/native/transformers/transformer.cpp, 2.6"
_ATTENTION = "aten/src/ATen/native/transformers/attention.cpp and cuda/attention.cu, 2.6"


def _flat(t: Tensor) -> Tensor:
    """(batch, length, size) as rows."""
    b, n, d = t.shape
    return replace(t, shape=(b * n, d), stride=(t.stride[1], t.stride[2]))


def _turned(weight: Tensor) -> Tensor:
    return replace(weight, shape=weight.shape[::-1], stride=weight.stride[::-1])


def _linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, target: Target, launches: list[Launch]
) -> Tensor:
    """`at::linear` on rows: addmm with a bias, mm without."""
    rows = _flat(x) if x.ndim == 3 else x
    out = contiguous(x, shape=(*x.shape[:-1], weight.shape[0]))
    flat = _flat(out) if out.ndim == 3 else out
    if bias is None:
        launches += call("aten.mm.default", target, flat, self=rows, mat2=_turned(weight))
    else:
        launches += call(
            "aten.addmm.default", target, flat, self=bias, mat1=rows, mat2=_turned(weight),
            beta=1, alpha=1,
        )  # fmt: skip
    return out


def _heads(x: Tensor, heads: int, part: int = 0, parts: int = 1) -> Tensor:
    """One of `parts` chunks of the last dim, as (batch, heads, length, size)."""
    b, n, d = x.shape
    size = d // parts // heads
    return replace(
        x, shape=(b, heads, n, size), stride=(x.stride[0], size, x.stride[1], 1),
        offset=x.offset + part * (d // parts),
    )  # fmt: skip


def _fused(op: Op, qkv: Tensor, out: Tensor, backend: str, target: Target) -> Iterator[Launch]:
    q, k, v = (_heads(qkv, op["num_head"], part, 3) for part in range(3))
    y = _heads(out, op["num_head"])
    common: dict[str, Any] = {"query": q, "key": k, "value": v, "dropout_p": 0.0}
    if backend != FLASH:
        common |= {"attn_bias": None, "compute_log_sumexp": False}
    yield from call(f"aten._scaled_dot_product_{backend}_attention.default", target, y, **common)


def _unfused(
    op: Op, query: Tensor, target: Target, launches: list[Launch]
) -> tuple[Tensor, Tensor]:
    """GEMM, bias and scale, scores, softmax, product, heads back together; the scores as well."""
    heads, mask = op["num_head"], op["mask"]
    b, n, d = query.shape
    size = d // heads
    qkv = _linear(query, op["qkv_weight"], None, target, launches)
    q, k, v = (contiguous(query, shape=(b * heads, n, size)) for _ in range(3))
    launches.append(kernel("transform_bias_rescale_qkv_kernel", [qkv, op["qkv_bias"]], [q, k, v]))
    scores = contiguous(query, shape=(b * heads, n, n))
    turned = replace(k, shape=(b * heads, size, n), stride=(n * size, 1, size))
    launches += call("aten.bmm.default", target, scores, self=q, mat2=turned)
    if mask is None:
        launches += call(
            "aten._softmax.default", target, scores, self=scores, dim=-1, half_to_float=False
        )
    else:
        mask, casts = to(mask, "bool")
        launches += casts
        launches += call(
            "aten._masked_softmax.default", target, scores, self=scores, mask=mask, dim=-1,
            mask_type=op["mask_type"],
        )  # fmt: skip
    launches += call("aten.bmm.default", target, q, self=scores, mat2=v)
    by_head = replace(q, shape=(b, n, heads, size), stride=(n * d, size, n * size, 1))
    joined, copies = compact(by_head)
    launches += copies
    return replace(contiguous(query), storage=joined.storage), scores


def _averaged(scores: Tensor, heads: int, target: Target, launches: list[Launch]) -> None:
    """The weights over all heads: a sum, then a division in place."""
    bh, n, m = scores.shape
    by_head = replace(scores, shape=(bh // heads, heads, n, m), stride=(heads * n * m, n * m, m, 1))
    mean = contiguous(scores, shape=(bh // heads, n, m))
    launches += call(
        "aten.sum.dim_IntList", target, mean, self=by_head, dim=[1], keepdim=False, dtype=None
    )
    launches += call("aten.div_.Tensor", target, mean, self=mean, other=heads)


def attend(op: Op, query: Tensor, target: Target, launches: list[Launch]) -> Tensor:
    """`_native_multi_head_attention` of one input with itself."""
    heads = op["num_head"]
    size = query.shape[2] // heads
    view = _heads(query, heads)
    backend = None
    if size % 8 == 0 and not op.get("need_weights", False) and op["mask"] is None:
        backend = attending.choose(attending.Attention(view, view, view), target)
    if backend in (CUDNN, FLASH, EFFICIENT):
        qkv = _linear(query, op["qkv_weight"], op["qkv_bias"], target, launches)
        mixed = contiguous(query)
        launches += _fused(op, qkv, mixed, backend, target)
        return _linear(mixed, op["proj_weight"], op["proj_bias"], target, launches)
    mixed, scores = _unfused(op, query, target, launches)
    out = _linear(mixed, op["proj_weight"], op["proj_bias"], target, launches)
    if op.get("need_weights", False) and op.get("average_attn_weights", False):
        _averaged(scores, heads, target, launches)
    return out


@rule("aten._native_multi_head_attention", source=_ATTENTION)
def native_multi_head_attention(op: Op, target: Target) -> Iterable[Launch]:
    """Two linear layers around fused attention when query, key and value are one array, the head
    size is a multiple of 8, no mask is given and a fused back end takes it; else GEMM, a kernel for
    bias and scale, two batched GEMMs around a softmax, and a copy; weights wanted as the mean over
    heads add a sum and a division."""
    launches: list[Launch] = []
    attend(op, op["query"], target, launches)
    return launches


@rule("aten._transform_bias_rescale_qkv", source=_ATTENTION)
def transform_bias_rescale_qkv(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel: adds the bias, scales the queries, sorts by head."""
    written = [t for t in op.outputs if isinstance(t, Tensor)]
    return [kernel("transform_bias_rescale_qkv_kernel", [op["qkv"], op["qkv_bias"]], written)]


def _norm(x: Tensor, op: Op, which: int, target: Target, launches: list[Launch]) -> Tensor:
    out = contiguous(x)
    rows = x.numel // x.shape[-1]
    launches += call(
        "aten.native_layer_norm.default", target, out, workspace(rows, "float32"),
        workspace(rows, "float32"), input=x, normalized_shape=(x.shape[-1],),
        weight=op[f"norm_weight_{which}"], bias=op[f"norm_bias_{which}"], eps=op["eps"],
    )  # fmt: skip
    return out


def _add(x: Tensor, other: Tensor, target: Target, launches: list[Launch]) -> None:
    launches += call("aten.add_.Tensor", target, x, self=x, other=other, alpha=1)


@rule("aten._transformer_encoder_layer_fwd", source=_ENCODER)
def transformer_encoder_layer(op: Op, target: Target) -> Iterable[Launch]:
    """Attention, add, layer norm, linear with activation in its epilogue, linear, add, layer norm;
    the norms go first when the layer says so."""
    launches: list[Launch] = []
    first = op["norm_first"]
    source: Tensor = op["src"]
    inner = Op(op.name, {**op.args, "num_head": op["num_heads"]}, op.outputs)
    x = _norm(source, op, 1, target, launches) if first else source
    x = attend(inner, x, target, launches)
    _add(x, source, target, launches)
    if not first:
        x = _norm(x, op, 1, target, launches)
    kept = x
    if first:
        x = _norm(x, op, 2, target, launches)
    hidden = contiguous(x, shape=(*x.shape[:-1], op["ffn_weight_1"].shape[0]))
    launches += call(
        "aten._addmm_activation.default", target, _flat(hidden), self=op["ffn_bias_1"],
        mat1=_flat(x), mat2=_turned(op["ffn_weight_1"]), beta=1, alpha=1,
        use_gelu=op["use_gelu"],
    )  # fmt: skip
    x = _linear(hidden, op["ffn_weight_2"], op["ffn_bias_2"], target, launches)
    _add(x, kept, target, launches)
    if not first:
        _norm(x, op, 2, target, launches)
    return launches
