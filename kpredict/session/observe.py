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
    """One call: the receiver of a method, arguments, and whether gradients were on.

    `line` is where the file makes it (0: elsewhere); `number` counts the calls of the function.
    """

    receiver: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    grad: bool
    line: int = 0
    number: int = 1


MOST_REPEATS = 6  # calls of one function, beside the first, that are kept


class Enough(BaseException):
    """Raised in a script that has gone on for longer than its limit."""


class Observer:
    """Hears the lines and calls of the code in `path`; frames of other files are passed by.

    `calls` maps entry names (`f`, `Net`, `Net.loss`) to the first call seen, in order; `repeats` to
    later ones that differ from all before in sizes, types or values. `names` are the qualified
    names that may be entries. A script is stopped (`stopped` is set) when
    `recorded()` has reached `limit`: a training loop's next thousand ops are more of the same.
    """

    def __init__(
        self, path: str, names: Collection[str] = (), recorded: Callable[[], int] = lambda: 0,
        limit: int = 1,
    ) -> None:  # fmt: skip
        self.calls: dict[str, Seen] = {}
        self.repeats: dict[str, list[Seen]] = {}
        self.stopped = False
        self._path = path
        self._names = frozenset(names)
        self._recorded = recorded
        self._limit = limit
        self._inside: FrameType | None = None
        self._lines: Counter[int] = Counter()
        self._numbers: Counter[str] = Counter()
        self._kinds: dict[str, set[Any]] = {}

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
        self._numbers[name] += 1
        kinds = self._kinds.setdefault(name, set())
        kind = _kind((args, kwargs))
        if kind in kinds or len(kinds) > MOST_REPEATS:
            return
        kinds.add(kind)
        seen = Seen(
            receiver, args, kwargs, torch.is_grad_enabled(), self._caller(frame),
            self._numbers[name],
        )  # fmt: skip
        if self.calls.setdefault(name, seen) is not seen:
            self.repeats.setdefault(name, []).append(seen)

    def _caller(self, frame: FrameType) -> int:
        """The file's line that made the call; 0 when another file did."""
        outer = frame.f_back
        while outer is not None and outer.f_code.co_filename != self._path:
            outer = outer.f_back
        return outer.f_lineno if outer is not None else 0


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


def _kind(value: Any) -> str:
    """What torch.compile may have to compile anew for: sizes, strides and types, plain values."""
    return repr([
        (tuple(x.shape), tuple(x.stride()), x.dtype, x.device, x.requires_grad)
        if isinstance(x, torch.Tensor) and x.layout is torch.strided
        else x if isinstance(x, bool | int | float | str | None) else type(x).__name__
        for x in tree_leaves(value)
    ])  # fmt: skip
