"""The pretended GPU: a fake-tensor mode that also tells a recorder what was dispatched.

Tensors say `cuda:0`, hold no data and cost no memory. The recorder sits inside the mode and not in
a dispatch mode of its own, because dynamo skips frames under a foreign dispatch mode.

Private API touched: `torch._subclasses.fake_tensor`, `torch._guards`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch._guards import CompileContext, TracingContext
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv


class Listener(Protocol):
    """Who hears each op as it runs: `answer` may give its result without running it."""

    def answer(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[bool, Any]: ...

    def heard(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None: ...


def _decomposes(func: OpOverload) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


class PretendGpu(FakeTensorMode):
    """FakeTensorMode with CUDA tensors on any build; ops dispatched at the top are heard once."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True, shape_env=ShapeEnv())
        self.listener: Listener | None = None
        self._depth = 0
        self._composite: dict[OpOverload, bool] = {}

    @property
    def avoid_device_init(self) -> bool:
        """No CUDA runtime may be woken, whatever `torch.cuda.is_available` says."""
        return True

    def dispatch(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        listener = self.listener
        if (
            listener is None
            or self._depth
            or func.namespace == "prim"  # C++ asks for a tensor's device: an error here aborts
            or CompileContext.try_get() is not None
            or TracingContext.try_get() is not None
        ):
            return super().dispatch(func, types, args, kwargs)
        composite = self._composite.get(func)
        if composite is None:
            composite = self._composite[func] = _decomposes(func)
        if composite:  # inference mode brings composites here whole: hear their parts instead
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        self._depth += 1
        try:
            answered, result = listener.answer(func, args, kwargs)
            if not answered:
                result = super().dispatch(func, types, args, kwargs)
        finally:
            self._depth -= 1
        listener.heard(func, args, kwargs, result)
        return result


