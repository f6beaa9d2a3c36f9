"""`Module.to`, `.cuda`, `.half` on pretended parameters: the same Parameter object, moved.

Torch swaps a parameter's content in place and refuses when a weak reference points at it, as the
fake-tensor mode's own bookkeeping does. Optimizers built before the move and tied weights rely
on the object staying the same, so here it does.

Private API touched: `torch._C._swap_tensor_impl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import torch

Moved = Callable[[torch.Tensor], torch.Tensor]


def apply(module: torch.nn.Module, fn: Moved, recurse: bool = True) -> torch.nn.Module:
    """What `Module._apply` does: `fn` on every parameter, its gradient and every buffer."""
    if recurse:
        for child in module.children():
            child._apply(fn)  # RNNs do more: they flatten their weights
    for name, parameter in module._parameters.items():
        if parameter is None:
            continue
        with torch.no_grad():
            moved = fn(parameter)
            gradient = None if parameter.grad is None else fn(parameter.grad)
        if moved is parameter:
            continue
        parameter.grad = None
        new = torch.nn.Parameter(moved, parameter.requires_grad)
        if not _become(parameter, new):
            module._parameters[name] = parameter = new
        parameter.grad = gradient
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


def _become(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Put the content of `new` into the object `old`; False where torch cannot."""

    def exchange() -> None:
        old.__class__, new.__class__ = new.__class__, old.__class__
        old.__dict__, new.__dict__ = new.__dict__, old.__dict__

    try:
        exchange()
    except TypeError:  # layouts of the two classes differ
        return False
    try:
        torch._C._swap_tensor_impl(old, new)
    except RuntimeError:  # something else holds the tensor, such as a graph
        exchange()
        return False
    return True


@contextmanager
def movable_modules() -> Iterator[None]:
    with mock.patch.object(torch.nn.Module, "_apply", apply):
        yield
