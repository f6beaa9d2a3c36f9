"""Whether two arrays are equal or close, as a value on the host.

Read: aten/src/ATen/native/cuda/Equal.cpp, native/TensorCompare.cpp (isclose, allclose) of release
2.6.0; checked with torch 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.calling import call
from kpredict.eager.copying import read_by_host, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.iterator import broadcast_shape
from kpredict.eager.launches import contiguous
from kpredict.eager.promoting import DEFAULT_FLOAT, category, real_part
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor


def _all_on_host(flags: Tensor, target: Target) -> Iterable[Launch]:
    """`flags.all().item()`."""
    flag = contiguous(flags, shape=())
    yield from call("aten.all.default", target, flag, self=flags, dim=None)
    yield from read_by_host(flag)


@rule("aten.equal", source="native/cuda/Equal.cpp; 2.6.0")
def equal(op: Op, target: Target) -> Iterable[Launch]:
    """A comparison, a reduction, and the host reads the answer; nothing when shapes differ, when
    there are no elements, or when both are the same view of the same memory."""
    x, other = op["self"], op["other"]
    same = (x.storage, x.offset, x.stride) == (other.storage, other.offset, other.stride)
    if x.shape != other.shape or x.numel == 0 or (same and x.storage >= 0):
        return
    flags = contiguous(x, dtype="bool")
    yield from elementwise([flags], [x, other], result="bool")
    yield from _all_on_host(flags, target)


@rule("aten.allclose", source="native/TensorCompare.cpp; 2.6.0")
def allclose(op: Op, target: Target) -> Iterable[Launch]:
    """What isclose launches (13 kernels for floats), a reduction, and the host reads the answer."""
    x, other = op["self"], op["other"]
    flags = contiguous(x, shape=broadcast_shape([x, other]), dtype="bool")
    yield from _is_close(flags, x, other, op, target)
    yield from _all_on_host(flags, target)


def _is_close(flags: Tensor, x: Tensor, other: Tensor, op: Op, target: Target) -> Iterable[Launch]:
    yield from elementwise([flags], [x, other], result="bool", op="aten.eq.Tensor")
    if op.get("equal_nan") and category(x.dtype) > 1:
        for t in (x, other):
            nan = contiguous(t, dtype="bool")
            yield from elementwise([nan], [t, t], result="bool", reads=[t], op="aten.ne.Tensor")
        yield from _joined(flags)
    if op.get("rtol") == 0 and op.get("atol") == 0:
        return
    if category(x.dtype) < 2:
        other, casts = to(other, DEFAULT_FLOAT)
        yield from casts
        if x.dtype == "bool":
            x, casts = to(x, DEFAULT_FLOAT)
            yield from casts
    scaled = contiguous(other)
    allowed = contiguous(other, dtype=real_part(other.dtype))
    yield from elementwise([scaled], [other], op="aten.mul.Tensor")
    yield from call("aten.abs.default", target, allowed, self=scaled)
    yield from elementwise([allowed], [allowed], op="aten.add.Tensor")
    difference = contiguous(flags, dtype=other.dtype)
    error = contiguous(flags, dtype=real_part(other.dtype))
    yield from elementwise([difference], [x, other], compute=other.dtype, op="aten.sub.Tensor")
    yield from call("aten.abs.default", target, error, self=difference)
    finite = contiguous(flags)
    yield from elementwise(
        [finite], [error, error], result="bool", reads=[error], op="aten.eq.Tensor"
    )
    yield from elementwise([contiguous(error)], [error], op="aten.abs.default")
    yield from elementwise([finite], [error], result="bool", op="aten.ne.Scalar")
    yield from elementwise([finite], [finite, finite], reads=[finite], op="aten.mul.Tensor")
    yield from elementwise([flags], [error, allowed], result="bool", op="aten.le.Tensor")
    yield from _joined(flags)


def _joined(flags: Tensor) -> Iterable[Launch]:
    """`flags |= a & b`, all of one shape."""
    for name in ("bitwise_and_", "bitwise_or_"):
        yield from elementwise([flags], [flags, flags], op=f"aten.{name}.Tensor")
