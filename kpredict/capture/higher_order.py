"""Higher-order ops that eager mode runs as the plain ops they are made of.

`flex_attention` without a compiler computes the whole score matrix. A dispatch mode hears nothing
inside a higher-order op unless it has a rule for it: here the op's own eager code, run under the
mode. While a compiler traces, the op stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from torch._C import DispatchKey
from torch._guards import TracingContext
from torch._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
from torch._ops import HigherOrderOperator
from torch._subclasses import FakeTensorMode

from kpredict.capture.mode import PretendGpu

_IN_PARTS = (flex_attention, flex_attention_backward)


def _in_parts(op: HigherOrderOperator) -> Callable[..., Any]:
    def run(mode: PretendGpu, *args: Any, **kwargs: Any) -> Any:
        whole = op.python_key_table.get(FakeTensorMode)
        if whole is not None and TracingContext.try_get() is not None:
            return whole(mode, *args, **kwargs)
        with mode:
            return op.py_kernels[DispatchKey.CompositeExplicitAutograd](*args, **kwargs)

    return run


@contextmanager
def heard_inside() -> Iterator[None]:
    """While entered, the mode hears the parts of these ops."""
    with ExitStack() as stack:
        for op in _IN_PARTS:
            rule = {PretendGpu: _in_parts(op)}
            stack.enter_context(mock.patch.dict(op.python_key_table, rule))
        yield
