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
from kpredict.eager.shaping import view_strides
from kpredict.model import Tensor, row_major

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
    aten.upsample_bilinear2d.default: "self",
    aten._log_softmax.default: None,
    aten._log_softmax_backward_data.default: None,
    aten.index_add.default: None,
    aten.index_copy.default: None,
    aten.masked_fill.Scalar: None,
    aten.masked_fill.Tensor: None,
    aten.renorm.default: None,
    aten.tril.default: None,
    aten.triu.default: None,
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
    aten.native_group_norm.default: None,
    aten.native_group_norm_backward.default: None,
    aten.native_layer_norm.default: None,
    aten.native_layer_norm_backward.default: None,
    aten.poisson.default: None,
    aten.pow.Scalar: None,
    aten.rrelu_with_noise.default: None,
    aten.smooth_l1_loss_backward.default: None,
}

_NUMBER_STAYS = {aten.pow.Tensor_Scalar, aten.lerp.Scalar}  # their kernels take the number itself
_UNTAGGED = {aten.hardswish.default, aten.mish_backward.default}  # pointwise all the same
_LIKE_INPUT = {
    aten.hardtanh.default, aten.relu6.default, aten.nan_to_num.default, aten.deg2rad.default,
    aten.rad2deg.default,
}  # fmt: skip
"""Pointwise ops that allocate a result like their input before they iterate."""


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


VIEWS = {aten.view.default, aten._unsafe_view.default}
LIKE_FIRST = {
    aten.empty_like.default, aten.zeros_like.default, aten.ones_like.default,
    aten.full_like.default, aten.rand_like.default, aten.randn_like.default, aten.flip.default,
    aten.sort.default, aten.sort.stable,
}  # fmt: skip
"""Results allocated like the first argument: with its strides where it is dense, dims of size 1
included (empty_like in native/TensorFactories.cpp, 2.6.0)."""


def has_unit_dims(result: Any) -> bool:
    """Whether the first result has dims of size 1, whose strides are free."""
    first = result[0] if isinstance(result, tuple) else result
    return isinstance(first, torch.Tensor) and 1 in first.shape


def with_unit_dims(
    func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> Any:
    """`result` with the strides that C++ gives dims of size 1; the shape functions leave others."""
    source = args[0]
    if func in VIEWS:
        strides = view_strides(_metadata(source), result.shape)
        if strides is None or result.stride() == tuple(strides):
            return result
        return source.as_strided(result.shape, strides, source.storage_offset())
    if kwargs.get("memory_format") not in (None, torch.preserve_format):
        return result
    if not _metadata(source).is_dense:
        return result
    if isinstance(result, tuple):
        return tuple(_restrided(source.stride(), t) for t in result)
    return _restrided(source.stride(), result)


def is_ambiguous(func: OpOverload, args: Sequence[Any], result: Any) -> bool:
    """A fresh pointwise result with dims of size 1, whose strides operands leave open."""
    if not isinstance(result, torch.Tensor) or 1 not in result.shape or func in _LIKE_INPUT:
        return False
    if torch.Tag.pointwise not in func.tags and func not in _UNTAGGED:
        return False
    if func in LAYOUTS and func not in PACKING:
        return False
    schema = func._schema
    return (
        schema.returns[0].alias_info is None
        and all(a.name != "memory_format" for a in schema.arguments)
        and any(isinstance(x, torch.Tensor) and x.stride() != row_major(x.shape) for x in args)
    )


def as_iterated(func: OpOverload, args: Sequence[Any], result: torch.Tensor) -> torch.Tensor:
    """`result` with the strides TensorIterator gives it, which are row-major where all operands are
    contiguous and of one shape; the Python shape functions keep other strides of dims of size 1.
    A number in the place of a tensor is an operand of no dims."""
    operands = [_metadata(x) for x in args if isinstance(x, torch.Tensor)]
    named = zip(func._schema.arguments, args, strict=False)
    if _wraps_number(func) or any(
        not isinstance(x, torch.Tensor) and str(declared.type) == "Tensor" for declared, x in named
    ):
        operands.append(Tensor((), (), "float32"))
    return _restrided(output_strides(operands), result)


def _wraps_number(func: OpOverload) -> bool:
    """An overload for a number that runs the one for tensors (add.Scalar, where.ScalarOther, …)."""
    return "scalar" in func._overloadname.lower() and func not in _NUMBER_STAYS


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
