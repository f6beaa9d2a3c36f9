"""Shape functions that PyTorch lacks for CUDA-only ops whose results look like their arguments.

Each row follows the allocations of the op's CUDA host code (2.6.0). Ops that need more than
"like this argument" are in `missing_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload

Tensor = torch.Tensor


class Like(NamedTuple):
    """A result with the shape of an argument: row-major, or dense in the argument's own order."""

    argument: str
    format: torch.memory_format = torch.contiguous_format
    dtype: torch.dtype | None = None


_KEPT = torch.preserve_format
_QUANTIZED = (Like("self", _KEPT), Like("self", _KEPT, torch.bool))  # value and mask
LIKE: Mapping[str, tuple[Like, ...]] = MappingProxyType(
    {
        "_dirichlet_grad": (Like("x"),),
        "_fake_quantize_learnable_per_channel_affine": (Like("self", _KEPT),),
        "_fake_quantize_learnable_per_channel_affine_backward": (
            Like("self", _KEPT), Like("scale"), Like("zero_point"),
        ),
        "_fake_quantize_learnable_per_tensor_affine": (Like("self", _KEPT),),
        "_fake_quantize_learnable_per_tensor_affine_backward": (
            Like("self", _KEPT), Like("scale"), Like("zero_point"),
        ),
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": _QUANTIZED,
        "_sample_dirichlet": (Like("self", _KEPT),),
        "_transformer_encoder_layer_fwd": (Like("src"),),
        "_standard_gamma_grad": (Like("self"),),
        "_masked_softmax": (Like("self", _KEPT),),
        "_masked_softmax_backward": (Like("grad_output", _KEPT),),
        "batch_norm_backward_elemt": (Like("input", _KEPT),),
        "batch_norm_elemt": (Like("input", _KEPT),),
        "binomial": (Like("count"),),
        "cudnn_grid_sampler_backward": (Like("self"), Like("grid")),
        "dequantize.self": (Like("self", _KEPT, torch.float32),),
        "fake_quantize_per_channel_affine_cachemask": _QUANTIZED,
        "fake_quantize_per_tensor_affine_cachemask": _QUANTIZED,
        "fractional_max_pool3d_backward": (Like("self"),),
        "int_repr": (Like("self", _KEPT),),
        "multi_margin_loss_backward": (Like("self"),),
        "multilabel_margin_loss_backward": (Like("self"),),
    }
)  # fmt: skip


def _overload(name: str) -> OpOverload:
    packet, _, overload = name.partition(".")
    found: OpOverload = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return found


def _results(op: OpOverload, rows: tuple[Like, ...], *args: Any, **kwargs: Any) -> Any:
    names = (a.name for a in op._schema.arguments)
    bound = {**dict(zip(names, args, strict=False)), **kwargs}
    made = tuple(
        torch.empty_like(bound[r.argument], dtype=r.dtype, memory_format=r.format) for r in rows
    )
    return made if len(made) > 1 else made[0]


_STORED = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}


def _quantized(self: Tensor, dtype: torch.dtype) -> Tensor:
    layout = torch._prims_common.suggest_memory_format(self)
    return torch.empty_like(self, dtype=_STORED.get(dtype, dtype), memory_format=layout)


def quantize(
    self: Tensor, scale: float | Tensor, zero_point: int | Tensor, dtype: torch.dtype
) -> Tensor:
    """quantized/Quantizer.cpp: integers in the suggested layout. There are no quantized tensors
    without data, so the integers stand alone."""
    return _quantized(self, dtype)


def quantize_per_channel(
    self: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: torch.dtype
) -> Tensor:
    """As `quantize`."""
    return _quantized(self, dtype)


def quantize_per_tensor_dynamic(self: Tensor, dtype: torch.dtype, reduce_range: bool) -> Tensor:
    """As `quantize`."""
    return _quantized(self, dtype)


def cudnn_grid_sampler(self: Tensor, grid: Tensor) -> Tensor:
    """cudnn/GridSampler.cpp: channels of the input at the grid's points."""
    return self.new_empty(*self.shape[:2], *grid.shape[1:3])


def _per_channel(input: Tensor, n: int) -> tuple[Tensor, ...]:
    dtype = torch.float32 if input.dtype in (torch.float16, torch.bfloat16) else input.dtype
    return tuple(input.new_empty(input.shape[1], dtype=dtype) for _ in range(n))


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, ...]:
    """cuda/Normalization.cu: mean and inverse deviation, accumulated in float."""
    return _per_channel(input, 2)


def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, ...]:
    """cuda/Normalization.cu: mean and variance, accumulated in float."""
    return _per_channel(input, 2)


def batch_norm_gather_stats(input: Tensor, mean: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    """cuda/Normalization.cuh: one mean and deviation per channel from those of each process."""
    return tuple(mean.new_empty(mean.shape[1]) for _ in range(2))


def batch_norm_backward_reduce(
    grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None,
    input_g: bool, weight_g: bool, bias_g: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """cuda/Normalization.cuh: two sums per channel, and gradients of weight and bias."""
    sums = [torch.empty_like(mean) if input_g else None for _ in range(2)]
    scale = mean if weight is None else weight
    wanted = [g and weight is not None for g in (weight_g, bias_g)]
    grads = [scale.new_empty(input.shape[1]) if w else None for w in wanted]
    return (*sums, *grads)


META: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {name: partial(_results, _overload(name), rows) for name, rows in LIKE.items()}
    | {
        "batch_norm_backward_reduce": batch_norm_backward_reduce,
        "batch_norm_gather_stats": batch_norm_gather_stats,
        "batch_norm_gather_stats_with_counts": batch_norm_gather_stats,
        "batch_norm_stats": batch_norm_stats,
        "batch_norm_update_stats": batch_norm_update_stats,
        "cudnn_grid_sampler": cudnn_grid_sampler,
        "quantize_per_channel": quantize_per_channel,
        "quantize_per_tensor": quantize,
        "quantize_per_tensor.tensor_qparams": quantize,
        "quantize_per_tensor_dynamic": quantize_per_tensor_dynamic,
    }
)
"""ATen op, with overload → its shape function."""
