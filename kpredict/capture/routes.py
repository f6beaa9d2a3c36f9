"""Ops whose C++ composite would take the CPU's way on a CPU build: the CUDA choice, one row each.

C++ takes the CUDA way by itself wherever it only asks for the device. Here are the ops that ask a
dispatch stub of the CUDA library, which a CPU build does not have. A route is registered for the
AutogradCUDA key, so only tensors that say CUDA are routed, calls from inside C++ composites are
routed too, and dynamo and AOTAutograd trace what it dispatches. Under inference mode, where that
key is off, fake tensors ask for the op's Python decomposition: the route again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch._C import DispatchKey
from torch._decomp import meta_table
from torch._ops import OpOverload
from torch._subclasses.fake_impls import op_implementations_dict

from kpredict.capture import (
    attention,
    composites,
    higher_order,
    missing_kernels,
    nested,
    recurrent,
    shapes,
    spectra,
)
from kpredict.model import Target

Route = Callable[..., Any]
_COMPOSITE = DispatchKey.CompositeImplicitAutograd


ROUTES: dict[str, Route] = {
    "_fused_sdp_choice": attention.fused_choice,
    "scaled_dot_product_attention": attention.scaled_dot_product_attention,
    **recurrent.ROUTES,
    **composites.ROUTES,
    **spectra.ROUTES,
}
"""ATen op, with overload → the function that takes the CUDA way, target first."""

CUDA_KERNELS = ("_fused_rms_norm", "mish_backward", "silu_backward")
"""Composites on other devices that have a kernel of their own on CUDA: with one registered, C++
dispatches them whole and autograd takes their own formula."""


def _not_run(*args: Any) -> Any:
    raise AssertionError("fake tensors take an op's shape function, not its kernel")


def _overload(name: str) -> OpOverload:
    packet, _, overload = name.partition(".")
    found: OpOverload = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return found


def composite(name: str, *args: Any, **kwargs: Any) -> Any:
    """The op's own C++ composite, past any route."""
    return _overload(name)._op_dk(_COMPOSITE, *args, **kwargs)


def _decomposition(name: str, function: Route) -> Route:
    """The route for CUDA tensors, C++ for others: what fake tensors run under inference mode."""

    def decompose(*args: Any, **kwargs: Any) -> Any:
        first = next(a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor))
        if first.device.type == "cuda":
            return function(*args, **kwargs)
        return composite(name, *args, **kwargs)

    return decompose


def _in_python(stack: ExitStack, op: OpOverload, key: DispatchKey, kernel: Route) -> None:
    """Register `kernel` with the Python dispatcher too, which dynamo runs under."""
    stack.enter_context(mock.patch.dict(op.py_kernels, {key: kernel}))
    op._dispatch_cache.clear()
    stack.callback(op._dispatch_cache.clear)


@contextmanager
def cuda_routes(target: Target) -> Iterator[None]:
    """Route while entered; the shape functions PyTorch lacks are there as well."""
    with ExitStack() as stack:
        stack.enter_context(attention.cuda_priority(target))
        stack.enter_context(recurrent.cudnn_present())
        stack.enter_context(higher_order.heard_inside())
        stack.enter_context(nested.as_on_gpu(target))
        stack.enter_context(mock.patch.dict(op_implementations_dict, missing_kernels.FAKE))
        library = torch.library.Library("aten", "IMPL")
        stack.callback(library._destroy)
        for name, meta in {**missing_kernels.META, **shapes.META}.items():
            op = _overload(name)
            library.impl(name, meta, "Meta", allow_override=True)
            _in_python(stack, op, DispatchKey.Meta, meta)
            # else fake tensors would run the op's Python decomposition instead
            stack.enter_context(mock.patch.dict(meta_table, {op: meta}))
        for name in CUDA_KERNELS:
            library.impl(name, _not_run, "CUDA")
        for name, function in ROUTES.items():
            op = _overload(name)
            routed = partial(function, target)
            library.impl(name, routed, "AutogradCUDA")
            if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), _COMPOSITE):
                _in_python(stack, op, _COMPOSITE, _decomposition(name, routed))
        yield
