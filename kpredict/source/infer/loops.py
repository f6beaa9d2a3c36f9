"""Loops: unrolled where their rounds are known, else read until the names are steady."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from kpredict.source.infer.choices import (
    BREAK,
    MAYBE,
    NEXT,
    RAISE,
    RETURN,
    Choices,
    Contents,
    joined,
)  # fmt: skip
from kpredict.source.infer.state import Frame
from kpredict.source.infer.trace import Place, Repeat
from kpredict.source.infer.values import UNKNOWN, Several

MOST_ROUNDS = 1024
"""A `while` that goes on longer than this is taken for one of unknown length."""

Loop = ast.For | ast.AsyncFor | ast.While


class Loops(Choices):
    def loop_over(self, node: ast.For | ast.AsyncFor, frame: Frame) -> str:
        over = self.evaluate(node.iter, frame)
        self.stand(node.iter, frame)
        items = self.iterate(over)
        if isinstance(items, Several):
            one = items.item
            return self._unknown_loop(node, frame, lambda: self.assign(node.target, one, frame))
        for i, item in enumerate(items):
            self.assign(node.target, item, frame)
            end = self.execute(node.body, frame)
            if end == BREAK:
                return NEXT
            if end in (RETURN, RAISE):
                return end
            if end == MAYBE and i < len(items) - 1:
                return self._unknown_loop(
                    node, frame, partial(self.assign, node.target, items[i + 1], frame)
                )
        return self.execute(node.orelse, frame)

    def loop_while(self, node: ast.While, frame: Frame) -> str:
        if frame.yielded is not None and isinstance(node.test, ast.Constant):
            return self._unknown_loop(node, frame, lambda: None)  # whoever takes items ends it
        rounds = 0
        while True:
            truth = self.truth_of(self.evaluate(node.test, frame))
            if truth is False:
                return self.execute(node.orelse, frame)
            if truth is None or rounds >= MOST_ROUNDS:
                return self._unknown_loop(node, frame, lambda: None)
            rounds += 1
            end = self.execute(node.body, frame)
            if end == BREAK:
                return NEXT
            if end in (RETURN, RAISE):
                return end
            if end == MAYBE:
                return self._unknown_loop(node, frame, lambda: None)

    def _unknown_loop(self, node: Loop, frame: Frame, first: Callable[[], None]) -> str:
        """A loop of unknown length: read the body until its names are steady, keep the last."""
        place = Place(frame.scope.file, node.lineno, node.col_offset + 1, frame.function)
        inside = Contents(frame.names)
        yielded = None if frame.yielded is None else len(frame.yielded)
        if any(frame.names.get(n, UNKNOWN) is not UNKNOWN for n in _stored(node)):
            before = dict(frame.names)
            returned = len(frame.returned)
            with self.recording():
                first()
                self.execute(node.body, frame)
            del frame.returned[returned:]
            frame.become(joined(before, frame.names, keep=True))
        inside.loosen(frame.names)
        before = dict(frame.names)
        with self.recording() as body:
            first()
            end = self.execute(node.body, frame)
            if isinstance(node, ast.While):
                self.evaluate(node.test, frame)
        if body:
            self.record(Repeat(tuple(body), place))
        frame.become(joined(before, frame.names, keep=True))
        inside.loosen(frame.names)
        if frame.yielded is not None and len(frame.yielded) != yielded:
            frame.whole = False
        return MAYBE if end == RETURN else NEXT


def _stored(loop: Loop) -> frozenset[str]:
    """The names that a loop's body assigns. Noted on the node: loops are read again and again."""
    known: frozenset[str] | None = getattr(loop, "kpredict_stored", None)
    if known is None:
        known = frozenset(
            n.id for s in loop.body for n in ast.walk(s)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )  # fmt: skip
        loop.kpredict_stored = known  # type: ignore[union-attr]
    return known
