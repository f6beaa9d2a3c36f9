"""Watch one file's code run: how often each line does, and which calls with tensors it gets.

A line in a loop or a function called many times shows its count. Of calls, the outermost counts:
`main()` takes no tensors, so what it calls does. Each function is kept once, with the arguments of
its first call, by reference.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
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


class Enough(BaseException):
    """Raised in a script that has gone on for longer than its limit."""


class Observer:
    """Hears the lines and calls of the code in `path`; frames of other files are passed by.

    `calls` maps entry names (`f`, `Net`, `Net.loss`) to the first call seen, in order; `names` are
    the qualified names that may be entries. A script is stopped (`stopped` is set) when
    `recorded()` has reached `limit`: a training loop's next thousand ops are more of the same.
    """

    def __init__(
        self, path: str, names: Collection[str] = (), recorded: Callable[[], int] = lambda: 0,
        limit: int = 1,
    ) -> None:  # fmt: skip
        self.calls: dict[str, Seen] = {}
        self.stopped = False
        self._path = path
        self._names = frozenset(names)
        self._recorded = recorded
        self._limit = limit
        self._inside: FrameType | None = None
        self._lines: Counter[int] = Counter()

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        except Enough:
            self.stopped = True
        finally:
            sys.settrace(before)
            self._inside = None

    @property
    def lines(self) -> Mapping[int, int]:
        """How often each line ran while it was watched."""
        return dict(sorted(self._lines.items()))

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != self._path:
            return None
        if self._inside is None and frame.f_code.co_qualname in self._names:
            self._call(frame)
        return self._within

    def _within(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._lines[frame.f_lineno] += 1
            if self._names and self._recorded() >= self._limit:
                raise Enough
        elif event == "return" and frame is self._inside:
            self._inside = None
        return self._within

    def _call(self, frame: FrameType) -> None:
        name = frame.f_code.co_qualname
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
