"""Complex arrays from two real ones (parts are views; a conjugate stays lazy until copied)."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.operands import one_pass
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target


@rule("aten.complex", "aten.polar", source="native/cuda/ComplexKernel.cu; 2.6.0")
def from_parts(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise kernel from real and imaginary part, or from length and angle."""
    parts = op.inputs[0].dtype
    return one_pass(op, parts, result=op.out.dtype, because="two real numbers make a complex one")
