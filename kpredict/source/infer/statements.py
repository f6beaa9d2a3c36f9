"""Statements: a block is executed statement by statement, and ends in one of six manners."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from kpredict.source.infer.choices import BREAK, CONTINUE, MAYBE, NEXT, RAISE, RETURN
from kpredict.source.infer.definitions import Definitions
from kpredict.source.infer.state import Frame
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Context,
    Device,
    Function,
    Instance,
    Managed,
    Value,
)  # fmt: skip

_IN_PLACE = frozenset("requires_grad_ t_ transpose_ swapaxes_ squeeze_ unsqueeze_".split())
"""Methods that change what an array is and not what it holds: the name stands for the result."""


class Statements(Definitions):
    def execute(self, block: Sequence[ast.stmt], frame: Frame) -> str:
        """Run a block; returns how it ended."""
        for i, statement in enumerate(block):
            self.burn()
            if isinstance(statement, ast.If):
                end = self._if(statement, block[i + 1 :], frame)
                if end is not None:
                    return end
                continue
            if isinstance(statement, ast.Match):
                end = self.match_value(statement, block[i + 1 :], frame)
                if end is not None:
                    return end
                continue
            method = _METHODS.get(type(statement))
            end = NEXT if method is None else method(self, statement, frame)
            if end == MAYBE:
                return self.perhaps_rest(block[i + 1 :], frame)
            if end:
                return end
        return NEXT

    def _if(self, node: ast.If, rest: Sequence[ast.stmt], frame: Frame) -> str | None:
        narrowed = _narrowing(node.test)

        def first() -> str:
            if narrowed and frame.names.get(narrowed) is UNKNOWN and narrowed in frame.perhaps:
                frame.names[narrowed] = frame.perhaps[narrowed]
            return self.execute(node.body, frame)

        def second() -> str:
            if narrowed and frame.names.get(narrowed) is UNKNOWN:
                frame.names[narrowed] = None
            return self.execute(node.orelse, frame)

        value = self.evaluate(node.test, frame)
        self.stand(node.test, frame)
        truth = self.truth_of(value)
        if truth is not None:
            end = self.execute(node.body if truth else node.orelse, frame)
            return self.perhaps_rest(rest, frame) if end == MAYBE else end or None
        return self.branch((first, second), rest, frame)

    # -- single statements -----------------------------------------------------------------

    def _expression(self, node: ast.Expr, frame: Frame) -> str:
        value = self.evaluate(node.value, frame)
        call = node.value
        if (
            isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            and call.func.attr in _IN_PLACE and isinstance(call.func.value, ast.Name)
            and isinstance(value, Array)
        ):  # fmt: skip
            self.assign(call.func.value, value, frame)
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
            elif isinstance(t, ast.Attribute):
                owner = self.evaluate(t.value, frame)
                if isinstance(owner, Instance):
                    owner.attributes.pop(t.attr, None)
            elif isinstance(t, ast.Subscript):
                owner = self.evaluate(t.value, frame)
                index = self.evaluate(t.slice, frame)
                if isinstance(owner, (list, dict)) and index is not UNKNOWN:
                    try:
                        del owner[index]
                    except (LookupError, TypeError):
                        continue
        return NEXT

    def _global(self, node: ast.Global, frame: Frame) -> str:
        frame.outer |= set(node.names)
        return NEXT

    def _nonlocal(self, node: ast.Nonlocal, frame: Frame) -> str:
        frame.enclosing |= set(node.names)
        return NEXT

    def _leave(self, node: ast.stmt, frame: Frame) -> str:
        return {ast.Break: BREAK, ast.Continue: CONTINUE, ast.Raise: RAISE}[type(node)]

    # -- blocks ----------------------------------------------------------------------------

    def _with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> str:
        return self._entered(node.items, node.body, frame)

    def _entered(
        self, items: Sequence[ast.withitem], body: Sequence[ast.stmt], frame: Frame
    ) -> str:
        """Enter the first context, then the others and the body inside it."""
        if not items:
            return self.execute(body, frame)
        item, rest = items[0], items[1:]
        value = self.evaluate(item.context_expr, frame)
        if isinstance(value, Managed):
            return self._managed(value, item, rest, body, frame)
        leave: Value = None
        with ExitStack() as stack:
            if isinstance(value, Context):
                if value.kind == "grad":
                    stack.enter_context(self.mode(grad=value.value))
                elif value.kind == "autocast":
                    stack.enter_context(self.mode(autocast=value.value))
            elif isinstance(value, Device):
                stack.enter_context(self.made_on(value.type))
            elif isinstance(value, Instance):
                leave = self.method_named(value.cls, "__exit__")
                owner = value
                if self.method_named(value.cls, "__enter__") is not None:
                    value = self.call(self.attribute(value, "__enter__"), (), {})
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, frame)
            end = self._entered(rest, body, frame)
            if isinstance(leave, Function):
                self.call_function(leave, (owner, None, None, None), {})
            return end

    def _managed(
        self, call: Managed, item: ast.withitem, rest: Sequence[ast.withitem],
        body: Sequence[ast.stmt], frame: Frame,
    ) -> str:  # fmt: skip
        """Run the generator; the block is what its `yield` waits for."""
        ends: list[str] = []
        outside = list(self.stack)

        def block(value: Value) -> None:
            if ends:
                return
            ends.append(NEXT)
            outer, self.stack = self.stack, list(outside)
            try:
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value, frame)
                ends[0] = self._entered(rest, body, frame)
            finally:
                self.stack = outer

        self.run_generator(call, block)
        if not ends:
            block(UNKNOWN)
        return ends[0]

    def run_generator(self, call: Managed, consume: Callable[[Value], None]) -> None:
        raise NotImplementedError

    def _try(self, node: ast.Try, frame: Frame) -> str:
        """The way without an exception; handlers count only where the body raises for sure."""
        end = self.execute(node.body, frame)
        if end == RAISE:
            for handler in node.handlers[:1]:
                end = self.execute(handler.body, frame)
        elif end == NEXT:
            end = self.execute(node.orelse, frame)
        last = self.execute(node.finalbody, frame)
        return last or end


def _narrowing(test: ast.expr) -> str | None:
    """The name of `if x is not None`: in the else way it is None."""
    if (
        isinstance(test, ast.Compare) and isinstance(test.left, ast.Name)
        and isinstance(test.ops[0], ast.IsNot) and len(test.ops) == 1
        and isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    ):  # fmt: skip
        return test.left.id
    return None


_METHODS: dict[type[ast.stmt], Callable[[Statements, Any, Frame], str]] = {
    ast.Assign: Statements._assign, ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augmented, ast.Expr: Statements._expression,
    ast.Return: Statements._return, ast.For: Statements.loop_over,
    ast.AsyncFor: Statements.loop_over, ast.While: Statements.loop_while,
    ast.With: Statements._with, ast.AsyncWith: Statements._with,
    ast.Try: Statements._try, ast.TryStar: Statements._try,
    ast.FunctionDef: Statements.define_function, ast.AsyncFunctionDef: Statements.define_function,
    ast.ClassDef: Statements.define_class, ast.Import: Statements.define_import,
    ast.ImportFrom: Statements.define_import_from, ast.Global: Statements._global,
    ast.Nonlocal: Statements._nonlocal, ast.Break: Statements._leave,
    ast.Continue: Statements._leave, ast.Raise: Statements._leave, ast.Assert: Statements._assert,
    ast.Delete: Statements._delete,
}  # fmt: skip
