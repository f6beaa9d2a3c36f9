"""Copies, casts, fills and the crossings between host and GPU.

Read: aten/src/ATen/native/Copy.cpp, TensorConversions.cpp, TensorFactories.cpp, Fill.cpp and
native/cuda/Copy.cu, CUDAScalar.cu of release 2.6.0; Copy.cu also in the main branch of 2026.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.copying import clone_storage, copy, expand, fill, read_by_host
from kpredict.eager.launches import contiguous, sync
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten.clone", "aten.lift_fresh_copy", "aten.lift", source="native/TensorFactories.cpp; 2.6.0")
def clone(op: Op, target: Target) -> Iterable[Launch]:
    """A new array and a copy into it: one memcpy when the layout is kept and dense, else one
    elementwise kernel."""
    return copy(op.out, op["self"])


@rule("aten._to_copy", source="native/TensorConversions.cpp _to_copy; 2.6.0")
def to_copy(op: Op, target: Target) -> Iterable[Launch]:
    """A new array of the wanted dtype, device and layout, and a copy into it."""
    return copy(op.out, op["self"], non_blocking=bool(op.get("non_blocking")))


@rule("aten.copy", source="native/Copy.cpp copy; 2.6.0")
def copied_over(op: Op, target: Target) -> Iterable[Launch]:
    """The out-of-place form: a clone of the destination that keeps its strides, then the copy."""
    yield from clone_storage(op.out, op["self"])
    yield from copy(op.out, op["src"], non_blocking=bool(op.get("non_blocking")))


@rule("aten.copy_", "aten._copy_from", source="native/Copy.cpp; 2.6.0")
def copy_(op: Op, target: Target) -> Iterable[Launch]:
    """One memcpy for equal dtypes and layouts, one elementwise kernel otherwise; across devices a
    memcpy with staging copies where the layouts or dtypes differ."""
    return copy(op.out, op["src"], non_blocking=bool(op.get("non_blocking")))


@rule("aten._local_scalar_dense", source="native/cuda/CUDAScalar.cu; 2.6.0")
def item(op: Op, target: Target) -> Iterable[Launch]:
    """`.item()`: one element is copied to the host, which waits for it."""
    return read_by_host(op["self"])


@rule("kpredict.synchronize", source="torch.cuda.synchronize")
def synchronize(op: Op, target: Target) -> Iterable[Launch]:
    """The host waits for all work on the GPU."""
    return [sync(str(op.get("what", "")))]


@rule("aten.fill", source="native/Fill.cpp; 2.6.0")
def fill_(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise kernel; a value that is an array on the GPU is copied into place, one that is
    elsewhere is read first."""
    value, out = op["value"], op.out
    if not isinstance(value, Tensor):
        return fill(out)
    if value.is_cuda != out.is_cuda:
        return [*read_by_host(value), *fill(out)]
    if value.storage == out.storage:
        temporary = contiguous(value)
        return [*copy(temporary, value), *copy(out, temporary)]
    return copy(out, expand(value, out.shape))


@rule("aten.zero", "aten.zero_", source="native/Fill.cpp zero_; 2.6.0")
def zero_(op: Op, target: Target) -> Iterable[Launch]:
    """A fill with 0: one elementwise kernel, not a memset."""
    return fill(op.out, because="fills with 0")
