"""Claims about values that the GPU checks, or that the host will read."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.launches import kernel
from kpredict.eager.registry import rule
from kpredict.eager.summing import truth_of
from kpredict.model import Launch, Op, Target


@rule("aten._assert_async", "aten._functional_assert_async",
      source="native/cuda/TensorCompare.cu _assert_async_cuda; 2.6.0")  # fmt: skip
def assert_async(op: Op, target: Target) -> Iterable[Launch]:
    """One thread looks at one value and traps if it is false; the host does not wait."""
    return [
        kernel("_assert_async_cuda_kernel", [op["self"]], grid=(1, 1, 1), block=(1, 1, 1),
               because="stops the GPU unless true")
    ]  # fmt: skip


@rule("aten._is_all_true", "aten._is_any_true", source="native/ReduceOps.cpp; 2.6.0")
def is_true(op: Op, target: Target) -> Iterable[Launch]:
    """`all()` or `any()` of a bool array."""
    return truth_of(op.out, op["self"], None, target)
