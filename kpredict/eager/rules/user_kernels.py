"""Kernels of the user's own, launched by the user's own code."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.launches import kernel
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target


@rule("kpredict.triton_kernel", source="triton/runtime/jit.py, JITFunction.run; 3.8")
def triton_kernel(op: Op, target: Target) -> Iterable[Launch]:
    """One launch for each call `kernel[grid](...)`, by the kernel's name. Which arrays it loads and
    stores is torch's own analysis of the kernel; each counts whole."""
    because = "a Triton kernel of the user's own"
    return [kernel(op["name"], op["reads"], op["writes"], because=because)]
