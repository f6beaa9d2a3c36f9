"""Watch a script run: which of its own functions and modules it calls with tensors, and how.

Of nested calls the outermost counts: `main()` takes no tensors, so what it calls does. Each
function is kept once, with the arguments of its first call, by reference.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: the receiver of a method, arguments, and whether gradients were on."""

    receiver: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    grad: bool


class Observer:
    """`calls` maps entry names (`f`, `Net`, `Net.loss`) to the first call seen, in order.

    `names` are the qualified names of the file's functions that may be entries.
    """

    def __init__(self, path: str, names: Collection[str]) -> None:
        self.calls: dict[str, Seen] = {}
        self._path = path
        self._names = frozenset(names)
        self._inside: FrameType | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(before)
            self._inside = None

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if self._inside is not None:
            if event == "return" and frame is self._inside:
                self._inside = None
            return
        if event != "call" or frame.f_code.co_filename != self._path:
            return
        name = frame.f_code.co_qualname
        if name not in self._names:
            return
        args, kwargs = _arguments(frame)
        receiver = None
        if "." in name and args:
            receiver, args = args[0], args[1:]
        if not any(isinstance(x, torch.Tensor) for x in tree_leaves((args, kwargs))):
            return
        if isinstance(receiver, torch.nn.Module) and name.endswith(".forward"):
            name = name.removesuffix(".forward")
        self._inside = frame
        self.calls.setdefault(name, Seen(receiver, args, kwargs, torch.is_grad_enabled()))


def _arguments(frame: FrameType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames
    n, only = code.co_argcount, code.co_kwonlyargcount
    args = [values[name] for name in names[:n] if name in values]
    kwargs = {name: values[name] for name in names[n : n + only] if name in values}
    at = n + only
    if code.co_flags & inspect.CO_VARARGS:
        args += values.get(names[at], ())
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs |= values.get(names[at], {})
    return tuple(args), kwargs
