"""Statements: assignments, branches both ways where the test is unknown, loops, `with`, `def`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from kpredict.source.infer.expressions import Expressions
from kpredict.source.infer.operators import Frame
from kpredict.source.infer.trace import Fork, Item, Place, Repeat
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Class,
    Context,
    Function,
    Instance,
    Several,
    Symbol,
    Value,
    join,
)  # fmt: skip

# how a block ended: fell through, left for sure, or left on some way
NEXT, RETURN, BREAK, CONTINUE, RAISE, MAYBE = "", "return", "break", "continue", "raise", "maybe"


class Statements(Expressions):
    def execute(self, block: Sequence[ast.stmt], frame: Frame) -> str:
        """Run a block; returns how it ended."""
        for i, statement in enumerate(block):
            self.burn()
            if isinstance(statement, ast.If):
                end = self._branch(statement, block[i + 1 :], frame)
                if end is not None:
                    return end
                continue
            method = _METHODS.get(type(statement))
            end = NEXT if method is None else method(self, statement, frame)
            if end == MAYBE:
                return self._perhaps(block[i + 1 :], frame)
            if end:
                return end
        return NEXT

    def _perhaps(self, rest: Sequence[ast.stmt], frame: Frame) -> str:
        """The rest of a block that some way has left already."""
        before = dict(frame.names)
        with self.recording() as items:
            end = self.execute(rest, frame)
        if items:
            self.record(Fork((tuple(items), ())))
        for name, value in before.items():
            frame.names[name] = join(value, frame.names.get(name, UNKNOWN))
        return end or MAYBE

    def _branch(self, node: ast.If, rest: Sequence[ast.stmt], frame: Frame) -> str | None:
        """An `if`. Returns None to go on with `rest`, else how the whole block ended."""
        test = self.evaluate(node.test, frame)
        self.stand(node.test, frame)
        truth = self.truth_of(test)
        if truth is not None:
            end = self.execute(node.body if truth else node.orelse, frame)
            if end == MAYBE:
                return self._perhaps(rest, frame)
            return end or None
        before = dict(frame.names)
        narrowed = _narrowing(node.test)
        with self.recording() as first:
            if (
                narrowed
                and frame.names.get(narrowed[0]) is UNKNOWN
                and narrowed[0] in frame.perhaps
            ):
                frame.names[narrowed[0]] = frame.perhaps[narrowed[0]]
            end_a = self.execute(node.body, frame)
        names_a, frame.names = frame.names, before
        with self.recording() as second:
            if narrowed and frame.names.get(narrowed[0]) is UNKNOWN:
                frame.names[narrowed[0]] = narrowed[1]
            end_b = self.execute(node.orelse, frame)
        names_b = frame.names
        if end_a == RAISE:  # the error is not the steady state
            self.items += second
            return end_b or None
        if end_b == RAISE:
            self.items += first
            frame.names = names_a
            return end_a or None
        if end_a in (NEXT, MAYBE) and end_b in (NEXT, MAYBE):
            self.fork(first, second)
            frame.names = _joined(names_a, names_b)
            return self._perhaps(rest, frame) if MAYBE in (end_a, end_b) else None
        if end_a not in (NEXT, MAYBE) and end_b not in (NEXT, MAYBE):
            self.fork(first, second)
            frame.names = _joined(names_a, names_b)
            return end_a if end_a == end_b else MAYBE
        # one way leaves: the rest of the block belongs to the other
        leaves_first = end_a not in (NEXT, MAYBE)
        frame.names = names_b if leaves_first else names_a
        with self.recording() as tail:
            end = self.execute(rest, frame)
        if end == RAISE:
            self.items += first if leaves_first else second
            frame.names = names_a if leaves_first else names_b
            return end_a if leaves_first else end_b
        if leaves_first:
            self.fork(first, [*second, *tail])
        else:
            self.fork([*first, *tail], second)
        left = end_a if leaves_first else end_b
        if left == CONTINUE:
            frame.names = _joined(names_a if leaves_first else names_b, frame.names)
        return end if end == left else (NEXT_OF_BLOCK if left == CONTINUE and not end else MAYBE)

    # -- assignment ------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            if target.id in frame.outer:
                frame.scope.names[target.id] = value
            else:
                frame.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, frame)
            if isinstance(owner, (Instance, Class)):
                owner.attributes[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, frame)
            index = self.evaluate(target.slice, frame)
            self.stand(target, frame)
            self.store_item(owner, index, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, frame)

    def store_item(self, owner: Value, index: Value, value: Value) -> None:
        if isinstance(owner, Array):
            self.store(owner, index, value)
        elif isinstance(owner, Instance) and "_items" in owner.attributes:
            self.store_item(owner.attributes["_items"], index, value)
        elif isinstance(owner, (list, dict)) and index is not UNKNOWN:
            try:
                owner[index] = value
            except Exception:
                return

    def _unpack(self, targets: Sequence[ast.expr], value: Value, frame: Frame) -> None:
        items = self.iterate(value)
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if isinstance(items, Several) or (
            len(items) != len(targets) if star is None else len(items) < len(targets) - 1
        ):
            item = items.item if isinstance(items, Several) else UNKNOWN
            for i, t in enumerate(targets):
                self.assign(t, Several(item) if i == star else item, frame)
            return
        if star is not None:
            after = len(targets) - star - 1
            middle = items[star : len(items) - after]
            items = [*items[:star], middle, *items[len(items) - after :]]
        for t, v in zip(targets, items, strict=True):
            self.assign(t, v, frame)

    def _assign(self, node: ast.Assign, frame: Frame) -> str:
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame)
        return NEXT

    def _annotated(self, node: ast.AnnAssign, frame: Frame) -> str:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, frame), frame)
        return NEXT

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> str:
        target = node.target
        if isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, frame)
            index = self.evaluate(target.slice, frame)
            value = self.evaluate(node.value, frame)
            self.stand(target, frame)
            before = self.item(owner, index)
            after = self.augmented(type(node.op), before, value)
            # Python stores the result again: onto a view of itself, which torch skips
            if not (
                isinstance(owner, Array)
                and isinstance(before, Array)
                and before.storage == owner.storage
            ):
                self.store_item(owner, index, after)
            return NEXT
        before = self.evaluate(target, frame)
        value = self.evaluate(node.value, frame)
        self.stand(target, frame)
        self.assign(target, self.augmented(type(node.op), before, value), frame)
        return NEXT

    def _expression(self, node: ast.Expr, frame: Frame) -> str:
        self.evaluate(node.value, frame)
        return NEXT

    def _return(self, node: ast.Return, frame: Frame) -> str:
        frame.returned.append(None if node.value is None else self.evaluate(node.value, frame))
        return RETURN

    def _assert(self, node: ast.Assert, frame: Frame) -> str:
        test = self.evaluate(node.test, frame)
        self.stand(node.test, frame)
        self.truth_of(test)
        return NEXT

    def _delete(self, node: ast.Delete, frame: Frame) -> str:
        for t in node.targets:
            if isinstance(t, ast.Name):
                frame.names.pop(t.id, None)
        return NEXT

    # -- loops -----------------------------------------------------------------------------

    def _for(self, node: ast.For, frame: Frame) -> str:
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

    def _while(self, node: ast.While, frame: Frame) -> str:
        rounds = 0
        while True:
            truth = self.truth_of(self.evaluate(node.test, frame))
            if truth is False:
                return self.execute(node.orelse, frame)
            if truth is None or rounds >= 1024:
                return self._unknown_loop(node, frame, lambda: None)
            rounds += 1
            end = self.execute(node.body, frame)
            if end == BREAK:
                return NEXT
            if end in (RETURN, RAISE):
                return end
            if end == MAYBE:
                return self._unknown_loop(node, frame, lambda: None)

    def _unknown_loop(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, first: Callable[[], None]
    ) -> str:
        """A loop of unknown length: read the body until its names are steady, keep the last."""
        place = Place(frame.scope.file, node.lineno, node.col_offset + 1, frame.function)
        stored = _stored(node)
        if any(frame.names.get(n, UNKNOWN) is not UNKNOWN for n in stored):
            before = dict(frame.names)
            returned = len(frame.returned)
            with self.recording():
                first()
                self.execute(node.body, frame)
            del frame.returned[returned:]
            frame.names = _joined(before, frame.names, keep=True)
        before = dict(frame.names)
        with self.recording() as body:
            first()
            end = self.execute(node.body, frame)
            if isinstance(node, ast.While):
                self.evaluate(node.test, frame)
        if body:
            self.record(Repeat(tuple(body), place))
        frame.names = _joined(before, frame.names, keep=True)
        return MAYBE if end == RETURN else NEXT

    # -- blocks ----------------------------------------------------------------------------

    def _with(self, node: ast.With, frame: Frame) -> str:
        with ExitStack() as stack:
            for item in node.items:
                value = self.evaluate(item.context_expr, frame)
                if isinstance(value, Context):
                    if value.kind == "grad":
                        stack.enter_context(self.mode(grad=value.value))
                    elif value.kind == "autocast":
                        stack.enter_context(self.mode(autocast=value.value))
                elif isinstance(value, Instance) and isinstance(
                    value.cls.find("__enter__"), Function
                ):
                    entered = self.call(self.attribute(value, "__enter__"), (), {})
                    value = entered
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value, frame)
            return self.execute(node.body, frame)

    def _try(self, node: ast.Try, frame: Frame) -> str:
        """The way without an exception; handlers count only as a source of names."""
        end = self.execute(node.body, frame)
        if end == RAISE:
            for handler in node.handlers:
                end = self.execute(handler.body, frame)
        if end == NEXT:
            end = self.execute(node.orelse, frame)
        last = self.execute(node.finalbody, frame)
        return last or end

    def _match(self, node: ast.Match, frame: Frame) -> str:
        self.evaluate(node.subject, frame)
        before = dict(frame.names)
        branches: list[list[Item]] = []
        names, ends = [], []
        for case in node.cases:
            frame.names = dict(before)
            for name in _bound_by(case.pattern):
                frame.names[name] = UNKNOWN
            with self.recording() as items:
                end = self.execute(case.body, frame)
            if end != RAISE:
                branches.append(items)
                names.append(frame.names)
                ends.append(end)
        frame.names = before
        if not branches:
            return NEXT
        self.fork(*branches, [])
        for n in names:
            frame.names = _joined(frame.names, n)
        return MAYBE if any(ends) else NEXT

    def _function(self, node: ast.FunctionDef, frame: Frame) -> str:
        name = node.name if frame.function in ("", "<module>") else f"{frame.function}.{node.name}"
        frame.names[node.name] = self.make_function(node, frame, name)
        return NEXT

    def _class(self, node: ast.ClassDef, frame: Frame) -> str:
        bases = tuple(self.evaluate(b, frame) for b in node.bases if not isinstance(b, ast.Starred))
        inner = Frame(
            frame.scope,
            node.name,
            {},
            frame.names if frame.function not in ("", "<module>") else {},
        )
        cls = Class(node.name, bases, inner.names, frame.scope, line=node.lineno)
        inner.owner = cls
        self.execute(node.body, inner)
        cls.attributes = inner.names
        named = [
            d
            for d in (self.decorator(d, frame) for d in node.decorator_list)
            if isinstance(d, Symbol) and d.name == "dataclass"
        ]
        if named or any(isinstance(b, Symbol) and b.name == "NamedTuple" for b in bases):
            own = tuple(
                s.target.id
                for s in node.body
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            )
            inherited = next((b.fields for b in bases if isinstance(b, Class)), ())
            cls.fields = (*inherited, *own)
        frame.names[node.name] = cls
        return NEXT

    def _import(self, node: ast.Import, frame: Frame) -> str:
        for alias in node.names:
            if alias.asname:
                frame.names[alias.asname] = self.import_module(alias.name, 0, frame)
            else:
                top = alias.name.split(".")[0]
                frame.names[top] = self.import_module(top, 0, frame)
        return NEXT

    def _import_from(self, node: ast.ImportFrom, frame: Frame) -> str:
        module = self.import_module(node.module or "", node.level, frame)
        for alias in node.names:
            if alias.name == "*":
                self.import_all(module, frame)
            else:
                frame.names[alias.asname or alias.name] = self.attribute(module, alias.name)
        return NEXT

    def import_module(self, name: str, level: int, frame: Frame) -> Value:
        raise NotImplementedError

    def import_all(self, module: Value, frame: Frame) -> None:
        raise NotImplementedError

    def _global(self, node: ast.Global, frame: Frame) -> str:
        frame.outer |= set(node.names)
        return NEXT

    def _leave(self, node: ast.stmt, frame: Frame) -> str:
        return {ast.Break: BREAK, ast.Continue: CONTINUE, ast.Raise: RAISE}[type(node)]


NEXT_OF_BLOCK = CONTINUE
"""After `if unknown: continue`, both ways reach the loop's next round."""


def _joined(a: dict[str, Value], b: dict[str, Value], keep: bool = False) -> dict[str, Value]:
    """The names after two ways met; `keep` leaves those that only one way has as they are."""
    out: dict[str, Value] = {}
    for name in a.keys() | b.keys():
        if name in a and name in b:
            out[name] = join(a[name], b[name])
        else:
            value = a.get(name, b.get(name))
            out[name] = value if keep or isinstance(value, (Array, Function)) else UNKNOWN
            if isinstance(value, Array) and not keep:
                out[name] = replace(value)
    return out


def _stored(loop: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """The names that a loop's body assigns. Noted on the node: loops are read again and again."""
    known: frozenset[str] | None = getattr(loop, "kpredict_stored", None)
    if known is None:
        known = frozenset(
            n.id for s in loop.body for n in ast.walk(s)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )  # fmt: skip
        loop.kpredict_stored = known  # type: ignore[union-attr]
    return known


def _narrowing(test: ast.expr) -> tuple[str, Value] | None:
    """What the else way of `if x is not None` tells of `x`."""
    if (
        isinstance(test, ast.Compare) and isinstance(test.left, ast.Name)
        and isinstance(test.ops[0], ast.IsNot) and len(test.ops) == 1
        and isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    ):  # fmt: skip
        return test.left.id, None
    return None


def _bound_by(pattern: ast.pattern) -> list[str]:
    return [n.name for n in ast.walk(pattern)
            if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name]  # fmt: skip


_METHODS: dict[type[ast.stmt], Callable[[Statements, Any, Frame], str]] = {
    ast.Assign: Statements._assign, ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augmented, ast.Expr: Statements._expression,
    ast.Return: Statements._return, ast.For: Statements._for, ast.AsyncFor: Statements._for,
    ast.While: Statements._while, ast.With: Statements._with, ast.AsyncWith: Statements._with,
    ast.Try: Statements._try, ast.Match: Statements._match,
    ast.FunctionDef: Statements._function, ast.AsyncFunctionDef: Statements._function,
    ast.ClassDef: Statements._class, ast.Import: Statements._import,
    ast.ImportFrom: Statements._import_from, ast.Global: Statements._global,
    ast.Nonlocal: Statements._global, ast.Break: Statements._leave,
    ast.Continue: Statements._leave, ast.Raise: Statements._leave, ast.Assert: Statements._assert,
    ast.Delete: Statements._delete,
}  # fmt: skip
