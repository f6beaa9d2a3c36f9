"""Ways that the source leaves open: both are read, and what they leave behind is joined.

A block ends in one of six manners. Names are joined after two ways met; so are the contents of the
lists, dicts and objects that a way may have changed in place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kpredict.source.infer.assigning import Assigning
from kpredict.source.infer.joining import common, join
from kpredict.source.infer.state import NEXT, Frame
from kpredict.source.infer.trace import Fork
from kpredict.source.infer.values import UNKNOWN, Array, Function, Instance, Several, Value

# how a block ended, beside NEXT: left for sure, or left on some way
RETURN, BREAK, CONTINUE, RAISE, MAYBE = "return", "break", "continue", "raise", "maybe"

NEXT_OF_BLOCK = CONTINUE
"""After `if unknown: continue`, both ways reach the loop's next round."""


class Choices(Assigning):
    def branch(
        self,
        ways: tuple[Callable[[], str], Callable[[], str]],
        rest: Sequence[ast.stmt],
        frame: Frame,
    ) -> str | None:
        """One of two ways, nobody knows which: None to go on with `rest`, else how the whole
        block ended."""
        before = dict(frame.names)
        inside = Contents(before)
        yielded = _yielded(frame)
        with self.recording() as first:
            end_a = ways[0]()
        names_a = dict(frame.names)
        left_a = inside.swap()
        frame.become(before)
        with self.recording() as second:
            end_b = ways[1]()
        names_b = dict(frame.names)
        frame.whole = frame.whole and _yielded(frame) == yielded
        if end_a == RAISE:  # the error is not the steady state
            self.items += second
            return end_b or None
        if end_b == RAISE:
            self.items += first
            inside.put(left_a)
            frame.become(names_a)
            return end_a or None
        falls_a, falls_b = end_a in (NEXT, MAYBE), end_b in (NEXT, MAYBE)
        if falls_a == falls_b:
            self.fork(first, second)
            inside.join(left_a, names_a, names_b)
            frame.become(joined(names_a, names_b))
            if falls_a:
                return self.perhaps_rest(rest, frame) if MAYBE in (end_a, end_b) else None
            return end_a if end_a == end_b else MAYBE
        # one way leaves: the rest of the block belongs to the other
        left, names_left = (end_b, names_b) if falls_a else (end_a, names_a)
        if falls_a:
            left_a = inside.swap(left_a)
        frame.become(names_a if falls_a else names_b)
        with self.recording() as tail:
            end = self.execute(rest, frame)
        if end == RAISE:
            self.items += second if falls_a else first
            inside.put(left_a)
            frame.become(names_left)
            return left
        if falls_a:
            self.fork([*first, *tail], second)
        else:
            self.fork(first, [*second, *tail])
        if left == CONTINUE:
            names = dict(frame.names)
            inside.join(left_a, names_left, names)
            frame.become(joined(names_left, names))
        return end if end == left else (NEXT_OF_BLOCK if left == CONTINUE and not end else MAYBE)

    def perhaps_rest(self, rest: Sequence[ast.stmt], frame: Frame) -> str:
        """The rest of a block that some way has left already."""
        before = dict(frame.names)
        yielded = _yielded(frame)
        with self.recording() as items:
            end = self.execute(rest, frame)
        if items:
            self.record(Fork((tuple(items), ())))
        frame.whole = frame.whole and _yielded(frame) == yielded
        for name, value in before.items():
            frame.names[name] = join(value, frame.names.get(name, UNKNOWN))
        return end or MAYBE


class Contents:
    """What is inside the lists, dicts and objects that some names hold, to go back to it."""

    def __init__(self, names: Mapping[str, Value]) -> None:
        self.holders = list(_holders(names))
        self.before = [_copied(h) for h in self.holders]

    def swap(self, to: list[Any] | None = None) -> list[Any]:
        """Put the contents back as they were, or as in `to`; returns what they are now."""
        now = [_copied(h) for h in self.holders]
        self.put(self.before if to is None else to)
        return now

    def put(self, contents: list[Any]) -> None:
        for holder, content in zip(self.holders, contents, strict=True):
            if isinstance(holder, list):
                holder[:] = content
            else:
                holder.clear()
                holder.update(content)

    def join(self, other: list[Any], *scopes: dict[str, Value]) -> None:
        """The contents are what they are now or `other`. A list whose length is then unknown is
        replaced in the scopes and objects that hold it."""
        loose: dict[int, Value] = {}
        for holder, content in zip(self.holders, other, strict=True):
            if isinstance(holder, dict):
                holder.update(joined(content, holder, keep=True))
            elif len(holder) == len(content):
                holder[:] = [join(x, y) for x, y in zip(content, holder, strict=True)]
            else:
                holder[:] = holder if len(holder) > len(content) else content
                loose[id(holder)] = Several(common(holder))
        if loose:
            dicts = [h for h in self.holders if isinstance(h, dict)]
            for scope in (*scopes, *dicts):
                for name, value in scope.items():
                    if id(value) in loose:
                        scope[name] = loose[id(value)]

    def loosen(self, *scopes: dict[str, Value]) -> None:
        """After a loop of unknown length: a list that has grown has any number of items."""
        self.join(self.before, *scopes)


_MANY = 256
"""Longer containers are not copied at every branch."""


def _holders(names: Mapping[str, Value]) -> Iterator[list[Value] | dict[Any, Value]]:
    seen: set[int] = set()
    for value in names.values():
        inside: list[Value] = [value]
        if isinstance(value, Instance):
            inside = [value.attributes, *value.attributes.values()]
        for v in inside:
            if isinstance(v, (list, dict)) and len(v) <= _MANY and id(v) not in seen:
                seen.add(id(v))
                yield v


def _copied(holder: list[Value] | dict[Any, Value]) -> Any:
    return list(holder) if isinstance(holder, list) else dict(holder)


def _yielded(frame: Frame) -> int:
    return 0 if frame.yielded is None else len(frame.yielded)


def joined(a: Mapping[Any, Value], b: Mapping[Any, Value], keep: bool = False) -> dict[Any, Value]:
    """The names after two ways met; `keep` leaves those that only one way has as they are."""
    out: dict[Any, Value] = {}
    for name in (*a, *(n for n in b if n not in a)):
        if name in a and name in b:
            out[name] = join(a[name], b[name])
        else:
            value = a[name] if name in a else b[name]
            out[name] = value if keep or isinstance(value, (Array, Function)) else UNKNOWN
            if isinstance(value, Array) and not keep:
                out[name] = replace(value)
    return out


__all__ = ["BREAK", "CONTINUE", "MAYBE", "NEXT", "RAISE", "RETURN", "Choices", "Contents", "joined"]
