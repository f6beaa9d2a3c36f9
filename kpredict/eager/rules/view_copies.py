"""`*_copy` ops: a view, then a row-major clone of it, as functionalized code writes views.

Read: torchgen/gen_functionalization_type.py of torch 2.13.0 (the generated composite kernels).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kpredict.eager.copying import copy, expand
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor, row_major

_SOURCE = "torchgen/gen_functionalization_type.py; 2.13.0"


def _clones(op: Op, views: Sequence[Tensor]) -> list[Launch]:
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    return [launch for out, v in zip(outs, views, strict=True) for launch in copy(out, v)]


@rule(
    "aten.alias_copy", "aten.detach_copy", "aten.view_copy", "aten._reshape_alias_copy",
    "aten.squeeze_copy", "aten.unsqueeze_copy", "aten.view_as_real_copy",
    "aten.view_as_complex_copy", "aten._fw_primal_copy",
    source=_SOURCE,
)  # fmt: skip
def reshaped(op: Op, target: Target) -> Iterable[Launch]:
    """One memcpy of a row-major array, one elementwise kernel of another."""
    x, out = op["self"], op.out
    if x.is_contiguous and x.dtype == out.dtype:
        return copy(out, replace(out, storage=x.storage, offset=x.offset))
    if x.dtype != out.dtype:  # real and complex looks at one memory
        return copy(out, replace(out, storage=x.storage, offset=0))
    return copy(replace(out, shape=x.shape, stride=row_major(x.shape)), x)


@rule("aten.t_copy", "aten.transpose_copy", "aten.permute_copy", source=_SOURCE)
def permuted(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise kernel that reorders, or a memcpy where that changes nothing."""
    x = op["self"]
    dims = list(range(x.ndim))
    if "permute" in op.name:
        dims = [d % x.ndim for d in op["dims"]]
    elif x.ndim > 1:
        a, b = (0, 1) if "aten.t_copy" in op.name else (op["dim0"] % x.ndim, op["dim1"] % x.ndim)
        dims[a], dims[b] = dims[b], dims[a]
    shape, stride = (tuple(values[d] for d in dims) for values in (x.shape, x.stride))
    return _clones(op, [replace(x, shape=shape, stride=stride)])


@rule("aten.expand_copy", source=_SOURCE)
def expanded(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise kernel that repeats, or a memcpy where nothing repeats."""
    return _clones(op, [expand(op["self"], op.out.shape)])


@rule("aten.narrow_copy", "aten.unfold_copy", source=_SOURCE)
def picked(op: Op, target: Target) -> Iterable[Launch]:
    """One memcpy of what lies together, one elementwise kernel of what does not."""
    x, out = op["self"], op.out
    stride = list(x.stride)
    if x.ndim == 0:
        stride = [1] * out.ndim
    elif "unfold" in op.name:
        dim = op["dimension"] % x.ndim
        stride.append(stride[dim])
        stride[dim] *= op["step"]
    return _clones(op, [replace(x, shape=out.shape, stride=tuple(stride))])


@rule("aten.split_copy", "aten.split_with_sizes_copy", "aten.unbind_copy", source=_SOURCE)
def pieces(op: Op, target: Target) -> Iterable[Launch]:
    """One copy per piece: a memcpy where it lies together, else an elementwise kernel."""
    x, dim = op["self"], op.get("dim") or 0
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    views, at = [], 0
    for out in outs:
        length = 1 if "unbind" in op.name else out.shape[dim]
        part = narrow(x, dim, at, length)
        if "unbind" in op.name:
            keep = [d for d in range(x.ndim) if d != dim % x.ndim]
            shape, stride = (tuple(v[d] for d in keep) for v in (part.shape, part.stride))
            part = replace(part, shape=shape, stride=stride)
        views.append(part)
        at += length
    return _clones(op, views)
