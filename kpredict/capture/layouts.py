"""Memory layouts that PyTorch's shape functions get wrong: results as CUDA lays them out.

The Python shape functions of some ops are written with other ops and inherit their strides. Here
each such op is named with the arguments its iterator takes, in order; with None where its host code
allocates a row-major result; or with the one argument that may suggest channels last. Found by
comparing fake tensors with real ones, release 2.13.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import suggest_memory_format

from kpredict.eager.iterator import output_strides
from kpredict.model import Tensor

aten = torch.ops.aten

PACKING = frozenset({
    aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.atan2.default,
    aten.hypot.default, aten.fmod.Tensor, aten.remainder.Tensor, aten.pow.Tensor_Tensor,
    aten.maximum.default, aten.minimum.default, aten.fmax.default, aten.fmin.default,
    aten.clamp_max.Tensor, aten.clamp_min.Tensor, aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor,
    aten.le.Tensor, aten.gt.Tensor, aten.ge.Tensor, aten.gelu_backward.default,
    aten.sigmoid_backward.default, aten.tanh_backward.default, aten.mish_backward.default,
    aten.silu_backward.default,
})  # fmt: skip
"""Ops whose shape functions look at strides after a cast (of half types to float, say), which has
packed what was expanded. Looked at only where a first or second argument is expanded."""

_GRADIENT = ("grad_output", "self")
_BINARY = ("self", "other")
LAYOUTS: Mapping[OpOverload, tuple[str, ...] | str | None] = {
    **{op: tuple(a.name for a in op._schema.arguments[:2]) for op in PACKING},
    aten.complex.default: ("real", "imag"),
    aten.copysign.Tensor: _BINARY,
    aten.floor_divide.default: _BINARY,
    aten.heaviside.default: ("self", "values"),
    aten.logaddexp.default: _BINARY,
    aten.logaddexp2.default: _BINARY,
    aten.logical_and.default: _BINARY,
    aten.logical_or.default: _BINARY,
    aten.logical_xor.default: _BINARY,
    aten.polar.default: ("abs", "angle"),
    aten.rsub.Tensor: ("other", "self"),
    aten.special_xlog1py.default: _BINARY,
    aten.xlogy.Tensor: _BINARY,
    aten._prelu_kernel_backward.default: ("self", "weight", "grad_output"),
    aten.batch_norm_backward_elemt.default: "input",
    aten.native_batch_norm_backward.default: "input",
    aten._log_softmax_backward_data.default: None,
    aten.glu_backward.default: None,
    aten.isin.Tensor_Scalar: None,
    aten.isin.Tensor_Tensor: None,
    aten._standard_gamma.default: None,
    aten.pixel_unshuffle.default: None,
    aten.binary_cross_entropy.default: ("self",),
    aten.binary_cross_entropy_backward.default: ("self",),
    aten.elu_backward.default: ("grad_output", "self_or_result"),
    aten.hardsigmoid_backward.default: _GRADIENT,
    aten.hardswish_backward.default: _GRADIENT,
    aten.hardtanh_backward.default: _GRADIENT,
    aten.leaky_relu_backward.default: ("self", "grad_output"),
    aten.log_sigmoid_backward.default: ("grad_output",),
    aten.logit_backward.default: _GRADIENT,
    aten.soft_margin_loss_backward.default: ("target",),
    aten.softplus_backward.default: _GRADIENT,
    aten.threshold_backward.default: ("self", "grad_output"),
    aten.rrelu_with_noise_backward.default: ("noise", "grad_output"),
    aten.huber_loss_backward.default: None,
    aten.mse_loss_backward.default: None,
    aten.native_layer_norm.default: None,
    aten.native_layer_norm_backward.default: None,
    aten.poisson.default: None,
    aten.pow.Scalar: None,
    aten.rrelu_with_noise.default: None,
    aten.smooth_l1_loss_backward.default: None,
}


def as_laid_out(
    func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> Any:
    """`result` of an op in `LAYOUTS` with the strides the CUDA kernel gives it."""
    if func in PACKING and not any(_is_expanded(x) for x in args[:2]):
        return result
    names = LAYOUTS[func]
    positional = zip((a.name for a in func._schema.arguments), args, strict=False)
    bound = {**dict(positional), **kwargs}
    if names is None or isinstance(names, str):
        training = bound.get("train", True)  # else batch norm's gradient is row-major
        suggests = bound[names] if names is not None and training else None
        laid_out: Callable[[torch.Tensor], torch.Tensor] = partial(_in_format, suggests)
    else:
        tensors = [bound[n] for n in names if isinstance(bound[n], torch.Tensor)]
        laid_out = partial(_restrided, output_strides([_metadata(t) for t in tensors]))
    if isinstance(result, torch.Tensor):
        return laid_out(result)
    return tuple(None if t is None else laid_out(t) for t in result)


def _is_expanded(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and any(
        step == 0 and n > 1 for n, step in zip(x.shape, x.stride(), strict=True)
    )


def _metadata(t: torch.Tensor) -> Tensor:
    return Tensor(tuple(int(n) for n in t.shape), tuple(int(n) for n in t.stride()), "float32")


def _in_format(suggests: torch.Tensor | None, t: torch.Tensor) -> torch.Tensor:
    """Row-major, or channels last as an argument of the same rank is."""
    layout = torch.contiguous_format
    if suggests is not None and suggests.dim() == t.dim():
        layout = suggest_memory_format(suggests)
    return torch.empty_like(t, memory_format=layout)


def _restrided(strides: Sequence[int], t: torch.Tensor) -> torch.Tensor:
    if t.stride() == tuple(strides) or t.dim() == 0:
        return t
    return torch.empty_strided(t.shape, strides, dtype=t.dtype, device=t.device)
