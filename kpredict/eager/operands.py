"""What a pointwise op works on: its tensor and number operands without the arrays it only writes.

In: an Op. Out: its operands in schema order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kpredict.eager.elementwise import elementwise
from kpredict.eager.promoting import result_type
from kpredict.model import Launch, Op, Tensor

_DESTINATIONS = frozenset(
    {"out", "out0", "out1", "out2", "grad_input", "output", "mantissa", "exponent", "buffer"}
)


def operands(op: Op) -> list[Tensor]:
    """The tensors read, in schema order: arguments of an `.out` overload that take results are not
    among them, those of an in-place op are."""
    return [v for k, v in op.args.items() if isinstance(v, Tensor) and not _is_destination(op, k)]


def _is_destination(op: Op, name: str) -> bool:
    if name not in _DESTINATIONS:
        return False
    if name == "buffer":
        return True
    return op.overload.endswith("out") or op.overload in ("grad_input", "output")


def common_dtype(op: Op, *names: str) -> str:
    """What the operands called `names` promote to (default: all tensors and the number `other`)."""
    if names:
        return result_type([op[n] for n in names])
    return result_type([*operands(op), op.get("other")])


def one_pass(
    op: Op, compute: str, *, result: str | None = None, jit: str = "", because: str = ""
) -> list[Launch]:
    """One elementwise kernel from the op's operands into its output."""
    return elementwise(
        [op.out], operands(op), compute=compute, result=result or compute, jit=jit, because=because
    )


def view(
    t: Tensor, shape: Sequence[int], stride: Sequence[int], offset: int = 0, dtype: str = ""
) -> Tensor:
    """Another look at the memory of `t`; `offset` in elements of the new dtype, relative to `t`."""
    dtype = dtype or t.dtype
    fresh = replace(t, shape=tuple(shape), stride=tuple(stride), dtype=dtype)
    return replace(fresh, offset=t.offset * t.itemsize // fresh.itemsize + offset)


def narrow(t: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`t.narrow(dim, start, length)`."""
    dim %= t.ndim
    shape = tuple(length if d == dim else s for d, s in enumerate(t.shape))
    return replace(t, shape=shape, offset=t.offset + start * t.stride[dim])
