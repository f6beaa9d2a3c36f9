"""Pointwise ops: one pass of the elementwise loop each."""

from __future__ import annotations

from kpredict.eager.elementwise import elementwise
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target


@rule("aten.relu", source="aten/src/ATen/native/Activation.cpp (relu = clamp_min), v2.6")
def unary(op: Op, target: Target) -> list[Launch]:
    """One elementwise kernel over the input."""
    return elementwise([op.out], list(op.inputs))
