"""Expressions: every kind of `ast.expr`, to a Value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from kpredict.source.infer.displays import Displays, enclosed
from kpredict.source.infer.joining import arrays_in, join
from kpredict.source.infer.shapes.registry import device_of, fresh
from kpredict.source.infer.state import Frame
from kpredict.source.infer.trace import Fork, Place
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Function,
    Instance,
    Partial,
    Several,
    Symbol,
    Value,
)  # fmt: skip

ANY = "**"
"""The keyword that stands for `**unknown` in a call: any parameter may be given."""
BUILTINS = frozenset(
    "abs all any bool callable dict divmod enumerate filter float frozenset getattr hasattr id int "
    "isinstance issubclass iter len list map max min next object print range repr reversed round "
    "set setattr slice sorted staticmethod classmethod property str sum super tuple type zip "
    "complex bytes pow ord chr vars hash input open delattr format".split()
)


class Expressions(Displays):
    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        self.burn()
        method = _METHODS.get(type(node))
        return UNKNOWN if method is None else method(self, node, frame)

    def stand(self, node: ast.expr, frame: Frame) -> None:
        """From here on, ops belong to this node's line, unless its file is one of ours."""
        if not frame.scope.library:
            line, column = node.lineno, node.col_offset + 1
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                line = node.func.end_lineno or line
            self.here = Place(frame.scope.file, line, column, frame.function)

    # -- names and constants ---------------------------------------------------------------

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return node.value

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        return self.lookup(node.id, frame)

    def lookup(self, name: str, frame: Frame) -> Value:
        if name in frame.names and name not in frame.outer and name not in frame.enclosing:
            return frame.names[name]
        if name in frame.closure and name not in frame.outer:
            return frame.closure[name]
        if name in frame.scope.names:
            return frame.scope.names[name]
        if name in BUILTINS:
            return Symbol(f"builtins.{name}")
        return UNKNOWN

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        if isinstance(owner, (Array, Instance)):
            self.stand(node, frame)
        return self.attribute(owner, node.attr)

    # -- operators -------------------------------------------------------------------------

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        a, b = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        self.stand(node, frame)
        return self.binary(type(node.op), a, b)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        a = self.evaluate(node.operand, frame)
        self.stand(node, frame)
        return self.unary(node.op, a)

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        result: Value = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node, frame)
            self.stand(node, frame)
            one = self.compare(type(op), left, right)
            if len(node.ops) == 1:
                return one
            if isinstance(one, Array) or one is UNKNOWN:
                result = UNKNOWN
            elif not one:
                return False
            left = right
        return result

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Value:
        stop = isinstance(node.op, ast.Or)
        value: Value = UNKNOWN
        for i, part in enumerate(node.values):
            value = self.evaluate(part, frame)
            if i == len(node.values) - 1:
                return value
            self.stand(part, frame)
            truth = self.truth(value)
            if truth is None and not isinstance(value, (Instance, Function)):
                rest = ast.BoolOp(node.op, node.values[i + 1 :]) if len(node.values) > i + 2 else (
                    node.values[i + 1])  # fmt: skip
                ast.copy_location(rest, part)
                with self.recording() as items:
                    other = self.evaluate(rest, frame)
                if items:
                    self.record(Fork((tuple(items), ())))
                decided = self.truth_quietly(other)
                if decided is stop and isinstance(other, bool):
                    return stop  # `unknown or True`
                return UNKNOWN
            if (True if truth is None else truth) is stop:  # objects and functions are true
                return value
        return value

    def truth_quietly(self, value: Value) -> bool | None:
        return None if isinstance(value, Array) else self.truth(value)

    def _conditional(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.evaluate(node.test, frame)
        self.stand(node, frame)
        truth = self.truth_of(test)
        if truth is not None:
            return self.evaluate(node.body if truth else node.orelse, frame)
        with self.recording() as first:
            a = self.evaluate(node.body, frame)
        with self.recording() as second:
            b = self.evaluate(node.orelse, frame)
        self.fork(first, second)
        return join(a, b)

    # -- the rest --------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        self.stand(node, frame)
        return self.item(owner, index)

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        parts = [None if n is None else self.evaluate(n, frame)
                 for n in (node.lower, node.upper, node.step)]  # fmt: skip
        # an array as a bound is read by the host; an unknown bound is an unknown length
        if any(isinstance(p, Array) for p in parts):
            self.stand(node, frame)
        return slice(*(self._bound(p) for p in parts))

    def _bound(self, p: Value) -> Value:
        if isinstance(p, Array):
            return self.read(p, "__int__")
        return p if p is None or isinstance(p, int) else UNKNOWN

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        function = self.evaluate(node.func, frame)
        args = self._elements(node.args, frame)
        kwargs: dict[str, Value] = {}
        for k in node.keywords:
            value = self.evaluate(k.value, frame)
            if k.arg is not None:
                kwargs[k.arg] = value
            elif isinstance(value, dict):
                kwargs.update({str(n): v for n, v in value.items()})
            else:
                kwargs[ANY] = UNKNOWN
        self.stand(node, frame)
        if isinstance(function, Symbol) and function.path == "builtins.super":
            return self.super_of(frame, args)
        read = isinstance(function, (Function, Class, Instance, Partial)) or (
            isinstance(function, Bound) and function.function is not None
        )
        if args is None or (ANY in kwargs and not read):  # f(*unknown)
            return self.unreadable(function, node, [*(args or ()), *kwargs.values()])
        return self.call(function, args, kwargs)

    def super_of(self, frame: Frame, args: Sequence[Value] | None) -> Value:
        raise NotImplementedError

    def unreadable(self, function: Value, node: ast.Call, known: Sequence[Value]) -> Value:
        """A call with arguments whose number is unknown."""
        arrays = arrays_in(list(known))
        ours = isinstance(function, Symbol) and not function.path.startswith("torch")
        if not ours or arrays:
            self.missing(ast.unparse(node.func)[:60])
        return fresh(None, None, device_of(arrays)) if arrays else UNKNOWN

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return self.make_function(node, frame, f"{frame.function}.<lambda>")

    def make_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, frame: Frame, name: str
    ) -> Function:
        a = node.args
        defaults: dict[str, Value] = {}
        positional = [*a.posonlyargs, *a.args]
        for arg, default in zip(
            positional[len(positional) - len(a.defaults) :], a.defaults, strict=True
        ):
            defaults[arg.arg] = self.evaluate(default, frame)
        for arg, kw_default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
            if kw_default is not None:
                defaults[arg.arg] = self.evaluate(kw_default, frame)
        top = frame.function in ("", "<module>")
        closure = frame.closure if top or frame.is_class else enclosed(frame)
        decorators = () if isinstance(node, ast.Lambda) else tuple(
            self.decorator(d, frame) for d in node.decorator_list)  # fmt: skip
        return Function(node, frame.scope, closure, name, defaults, decorators, frame.owner)

    def decorator(self, node: ast.expr, frame: Frame) -> Value:
        return self.evaluate(node, frame)

    def _named(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.evaluate(node.value, frame)
        self.assign(node.target, value, frame)
        return value

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts: list[str] = []
        for v in node.values:
            if isinstance(v, ast.Constant):
                parts.append(str(v.value))
                continue
            assert isinstance(v, ast.FormattedValue)
            value = self.evaluate(v.value, frame)
            if isinstance(value, Array) and value.device == "cuda":
                self.stand(v.value, frame)
                self.sync("format", value)
            parts.append(
                str(value) if isinstance(value, (int, str)) and not v.format_spec else "\0"
            )
        text = "".join(parts)
        return UNKNOWN if "\0" in text else text

    def _starred(self, node: ast.Starred, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _await(self, node: ast.Await, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _yield(self, node: ast.Yield, frame: Frame) -> Value:
        value = None if node.value is None else self.evaluate(node.value, frame)
        if frame.consume is not None:
            frame.consume(value)
            return None
        if frame.yielded is not None:
            frame.yielded.append(value)
        return UNKNOWN

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Value:
        items = self.iterate(self.evaluate(node.value, frame))
        if frame.yielded is not None:
            frame.yielded += [items.item] if isinstance(items, Several) else items
            frame.whole = frame.whole and not isinstance(items, Several)
        return UNKNOWN


_METHODS: dict[type[ast.expr], Callable[[Expressions, Any, Frame], Value]] = {
    ast.Constant: Expressions._constant, ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute, ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary, ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._boolean, ast.IfExp: Expressions._conditional,
    ast.Tuple: Expressions._tuple, ast.List: Expressions._list, ast.Set: Expressions._set,
    ast.Dict: Expressions._dict, ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension, ast.DictComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension, ast.Subscript: Expressions._subscript,
    ast.Slice: Expressions._slice, ast.Call: Expressions._call, ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._named, ast.JoinedStr: Expressions._text,
    ast.Starred: Expressions._starred, ast.Await: Expressions._await,
    ast.Yield: Expressions._yield, ast.YieldFrom: Expressions._yield_from,
}  # fmt: skip
