"""The pretended GPU: a fake-tensor mode that also tells a recorder what was dispatched.

Tensors say `cuda:0`, hold no data and cost no memory. The recorder sits inside the mode and not in
a dispatch mode of its own, because dynamo skips frames under a foreign dispatch mode.

Private API touched: `torch._subclasses.fake_tensor`, `torch._guards`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch._guards import CompileContext, TracingContext
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)  # fmt: skip
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import is_traceable_wrapper_subclass_type
from torch.utils._pytree import tree_leaves

from kpredict.capture.composites import FILL_IN_PLACE, FIRST_OPS, ask
from kpredict.capture.layouts import (
    LAYOUTS,
    LIKE_FIRST,
    VIEWS,
    as_iterated,
    as_laid_out,
    has_unit_dims,
    is_ambiguous,
    with_unit_dims,
)
from kpredict.capture.rebasing import REPLAYED, Rebased
from kpredict.capture.values import FROM_ALL, PARTS, TOO_SMALL
from kpredict.model import KpredictError

aten = torch.ops.aten

_ALL = {aten.all.default, aten.all.dim, aten.all.dims, aten._is_all_true.default}
_BELOW = {torch.ops.aten.lt.Scalar, torch.ops.aten.le.Scalar}
REAL_LIMIT = 1 << 16  # elements


class Listener(Protocol):
    """Who hears each op as it runs.

    `answer` gives the result of an op it `knows` without running it (or NotImplemented); `settle`
    gives numbers to sizes left open.
    """

    def knows(self, func: OpOverload) -> bool: ...

    def answer(self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any: ...

    def settle(self, func: OpOverload, args: Sequence[Any], result: Any) -> Any: ...

    def heard(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None: ...

    def sync(self, what: str) -> None: ...

    def kernel(
        self, name: str, reads: Sequence[torch.Tensor], writes: Sequence[torch.Tensor]
    ) -> None: ...


def _decomposes(func: OpOverload) -> bool:
    has_kernel = partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    return has_kernel("CompositeImplicitAutograd") and not has_kernel("CUDA")


def _as_for_plain_tensors(func: OpOverload) -> OpOverload:
    """C++ writes out of place for tensor subclasses, which fakes are, what it writes in place for
    plain tensors; that differs where the copy is a launch of its own."""
    if func is aten.masked_fill.Scalar:
        node = torch._C._current_autograd_node()
        if node is not None and node.name() in FILL_IN_PLACE:
            return aten.masked_fill_.Scalar
    return func


def _is_open(result: torch.Tensor | Sequence[object]) -> bool:
    """Does some size depend on data the device would have?"""
    return any(
        isinstance(t, torch.Tensor) and t._has_symbolic_sizes_strides
        for t in ((result,) if isinstance(result, torch.Tensor) else result)
    )


def _mutated(func: OpOverload, args: Sequence[object], error: Exception) -> Any:
    """What an op without a fake implementation returns, if it only writes into its arguments."""
    schema = func._schema
    written = [
        arg
        for arg, declared in zip(args, schema.arguments, strict=False)
        if declared.alias_info is not None and declared.alias_info.is_write
    ]
    if not schema.returns:
        return None
    if written and all(r.alias_info is not None for r in schema.returns):
        return written[0] if len(schema.returns) == 1 else tuple(written[: len(schema.returns)])
    raise KpredictError(
        f"{func} says nothing about the shape it returns on a GPU.",
        f"Give it a fake implementation with torch.library.register_fake({func.name()!r}).",
    ) from error


def _stays_real(func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Only small real CPU tensors go in, and nothing large or on another device comes out."""
    if any(isinstance(arg, FakeTensor) for arg in args):  # nearly always
        return False
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cpu":  # type: ignore[call-overload]
        return False
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    if tensors:
        return (
            all(
                not isinstance(t, FakeTensor)
                and t.device.type == "cpu"
                and t.untyped_storage().nbytes() <= REAL_LIMIT * 8
                and type(t) in (torch.Tensor, torch.nn.Parameter)
                for t in tensors
            )
            and _expansion(func, args) <= REAL_LIMIT
        )
    if not func._schema.returns or func.namespace != "aten":
        return False
    return _expansion(func, args) <= REAL_LIMIT


def _expansion(func: OpOverload, args: Sequence[object]) -> int:
    """An upper guess of the elements a factory or an expanding op makes: the product of a size, or
    a number; one with a fraction is a size only where it ends a range."""
    number = (int, float) if func.overloadpacket in (aten.arange, aten.range) else int
    largest = 1
    for arg in args:
        if isinstance(arg, (list, tuple)) and arg and all(isinstance(n, int) for n in arg):
            largest = max(largest, math.prod(max(int(n), 1) for n in arg))
        elif isinstance(arg, number) and not isinstance(arg, bool):
            largest = max(largest, int(min(abs(arg), 2**62)))
    return largest


class PretendGpu(FakeTensorMode):
    """FakeTensorMode with CUDA tensors on any build; ops dispatched at the top are heard once.

    Small CPU tensors stay real, so control flow, `.item()`, `.numpy()` and data loaders work on
    them; a CPU array of more than `REAL_LIMIT` elements is fake, so a large model costs no memory.
    """

    def __init__(self, listener: Listener) -> None:
        # a fallback would run the op's real kernel: on a CUDA build, on the device
        super().__init__(
            allow_non_fake_inputs=True, shape_env=ShapeEnv(), allow_fallback_kernels=False
        )
        self.listener = listener
        self._depth = 0
        self._composite: dict[OpOverload, bool] = {}
        self._rebased = Rebased()

    @property
    def avoid_device_init(self) -> bool:
        """No CUDA runtime may be woken, whatever `torch.cuda.is_available` says."""
        return True

    def _unsupported(
        self, func: OpOverload, types: Sequence[type], args: Sequence[object],
        kwargs: Mapping[str, object], error: Exception,
    ) -> Any:  # fmt: skip
        """An op without a shape function: its real kernel on the CPU tells, if none is on CUDA."""
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if any(t.device.type == "cuda" for t in tensors):
            return _mutated(func, args, error)
        self.allow_fallback_kernels = True
        try:
            return super().dispatch(func, types, args, kwargs)
        finally:
            self.allow_fallback_kernels = False

    def dispatch(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if (
            self._depth
            or func.namespace == "prim"  # C++ asks for a tensor's device: an error here aborts
            or CompileContext.try_get() is not None
            or TracingContext.try_get() is not None
        ):
            return super().dispatch(func, types, args, kwargs)
        if any(is_traceable_wrapper_subclass_type(t) for t in types):
            return NotImplemented  # a wrapper (nested, quantized …) calls ops on what it wraps
        if _stays_real(func, args, kwargs):
            return func(*args, **kwargs)
        if "generator" in kwargs:  # no data, no seed
            kwargs = {**kwargs, "generator": None}
        listener = self.listener
        func = _as_for_plain_tensors(func)
        composite = self._composite.get(func)
        if composite is None:
            composite = self._composite[func] = _decomposes(func)
        if composite:  # inference mode brings composites here whole: hear their parts instead
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func in PARTS and args[0].device.type == "cuda":  # type: ignore[attr-defined]
            with self:
                return PARTS[func](*args, **kwargs)
        if func in FIRST_OPS:
            with self:
                ask()
        self._depth += 1
        try:
            result = NotImplemented
            if listener.knows(func):
                with self:
                    result = listener.answer(func, args, kwargs)
            if result is NotImplemented:
                try:
                    result = super().dispatch(func, types, args, kwargs)
                except (NotImplementedError, UnsupportedOperatorException) as error:
                    result = self._unsupported(func, types, args, kwargs, error)
                if isinstance(result, (torch.Tensor, tuple, list)) and _is_open(result):
                    with self:
                        result = listener.settle(func, args, result)
                if func in LAYOUTS:
                    with self:
                        result = as_laid_out(func, args, kwargs, result)
                if (func in VIEWS or func in LIKE_FIRST) and has_unit_dims(result):
                    with self:
                        result = with_unit_dims(func, args, kwargs, result)
                if is_ambiguous(func, args, result):
                    with self:
                        result = as_iterated(func, args, result)
        finally:
            self._depth -= 1
        if func in _ALL and isinstance(result, torch.Tensor):
            setattr(result, FROM_ALL, True)
        if func in _BELOW and result.dim() == 0:
            setattr(result, TOO_SMALL, True)
        self._rebased.wrote(func, args)
        if func in REPLAYED and torch._C._current_autograd_node() is not None:
            with self:
                stood_in = self._rebased.stand_in(args, result, copied=func is aten.clone.default)
            if stood_in is not NotImplemented:
                return stood_in
        listener.heard(func, args, kwargs, result)
        return result
