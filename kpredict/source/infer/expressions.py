"""Expressions: every kind of `ast.expr`, to a Value."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

from kpredict.source.infer.methods import Methods
from kpredict.source.infer.operators import Frame
from kpredict.source.infer.trace import Fork, Item, Place, Repeat
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Function,
    Instance,
    Several,
    Symbol,
    Value,
    join,
)  # fmt: skip

LONGEST_LOOP = 4096
BUILTINS = frozenset(
    "abs all any bool callable dict divmod enumerate filter float frozenset getattr hasattr id int "
    "isinstance issubclass iter len list map max min next object print range repr reversed round "
    "set setattr slice sorted staticmethod classmethod property str sum super tuple type zip "
    "complex bytes pow ord chr vars hash input open delattr format".split()
)


class Expressions(Methods):
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
        if name in frame.names and name not in frame.outer:
            return frame.names[name]
        if name in frame.closure:
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
        if isinstance(a, Instance) or isinstance(b, Instance):
            return UNKNOWN
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

    def fork(self, *branches: Sequence[Item]) -> None:
        if any(branches):
            self.record(Fork(tuple(tuple(b) for b in branches)))

    def truth_of(self, value: Value) -> bool | None:
        """`truth`, where objects and functions count as true."""
        if isinstance(value, Function) or (isinstance(value, Instance) and not value.open):
            length = value.attributes.get("_items") if isinstance(value, Instance) else None
            if isinstance(length, (list, dict)):
                return bool(length)
            return None if isinstance(length, Several) else True
        return self.truth(value)

    # -- displays and comprehensions -------------------------------------------------------

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        items = self._elements(node.elts, frame)
        return UNKNOWN if items is None else tuple(items)

    def _list(self, node: ast.List, frame: Frame) -> Value:
        items = self._elements(node.elts, frame)
        return UNKNOWN if items is None else items

    def _set(self, node: ast.Set, frame: Frame) -> Value:
        items = self._elements(node.elts, frame)
        try:
            return UNKNOWN if items is None else set(items)
        except TypeError:
            return UNKNOWN

    def _elements(self, nodes: Sequence[ast.expr], frame: Frame) -> list[Value] | None:
        """The values of a display, stars unpacked; None when a star's length is unknown."""
        out: list[Value] = []
        whole = True
        for n in nodes:
            if isinstance(n, ast.Starred):
                inner = self.iterate(self.evaluate(n.value, frame))
                if isinstance(inner, Several):
                    whole = False
                else:
                    out += inner
            else:
                out.append(self.evaluate(n, frame))
        return out if whole else None

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        out: dict[Value, Value] = {}
        whole = True
        for k, v in zip(node.keys, node.values, strict=True):
            value = self.evaluate(v, frame)
            if k is None:
                if isinstance(value, dict):
                    out.update(value)
                else:
                    whole = False
                continue
            key = self.evaluate(k, frame)
            try:
                hash(key)
            except TypeError:
                key = UNKNOWN
            if key is UNKNOWN:
                whole = False
            else:
                out[key] = value
        return out if whole else UNKNOWN

    def iterate(self, value: Value) -> list[Value] | Several:
        """What a loop over `value` sees: its items, or that there are several like one."""
        if isinstance(value, (list, tuple, set, frozenset, dict)):
            return list(value)
        if isinstance(value, (range, str, bytes)):
            return list(value) if len(value) <= LONGEST_LOOP else Several(UNKNOWN)
        if isinstance(value, Several):
            return value
        if isinstance(value, Array):
            if value.shape and value.shape[0] is not None and value.shape[0] <= LONGEST_LOOP:
                parts = self.aten("unbind", value, 0)
                return list(parts) if isinstance(parts, list) else Several(UNKNOWN)
            return Several(self.aten("select", value, 0, 0))
        if isinstance(value, Instance):
            if "_items" in value.attributes:
                return self.iterate(value.attributes["_items"])
            method = value.cls.find("__iter__")
            if isinstance(method, Function):
                got = self.call(self.attribute(value, "__iter__"), (), {})
                return self.iterate(got) if got is not value else Several(UNKNOWN)
        return Several(UNKNOWN)

    def _comprehension(self, node: Any, frame: Frame) -> Value:
        inner = Frame(frame.scope, frame.function, {}, ChainMap(frame.names, dict(frame.closure)),
                      frame.owner)  # fmt: skip
        out: list[Value] = []
        whole = self._generate(node, 0, inner, out)
        if isinstance(node, ast.DictComp):
            if not whole:
                return UNKNOWN
            return {k: v for k, v in out if k is not UNKNOWN}
        if isinstance(node, ast.SetComp):
            try:
                return set(out) if whole else Several(UNKNOWN)
            except TypeError:
                return UNKNOWN
        if whole:
            return out
        item: Value = out[0] if out else UNKNOWN
        for other in out[1:]:
            item = join(item, other)
        return Several(item)

    def _generate(self, node: Any, depth: int, frame: Frame, out: list[Value]) -> bool:
        """Run generator `depth` and those inside it; False when the length is not known."""
        if depth == len(node.generators):
            if isinstance(node, ast.DictComp):
                key = self.evaluate(node.key, frame)
                value = self.evaluate(node.value, frame)
                try:
                    hash(key)
                except TypeError:
                    key = UNKNOWN
                out.append((key, value))
            else:
                out.append(self.evaluate(node.elt, frame))
            return True
        generator = node.generators[depth]
        items = self.iterate(self.evaluate(generator.iter, frame))

        def once(item: Value) -> bool:
            self.assign(generator.target, item, frame)
            whole = True
            for test in generator.ifs:
                truth = self.truth_of(self.evaluate(test, frame))
                if truth is False:
                    return whole
                whole = whole and truth is True
            return self._generate(node, depth + 1, frame, out) and whole

        if isinstance(items, Several):
            with self.recording() as body:
                once(items.item)
            if body:
                self.record(Repeat(tuple(body), self.here))
            return False
        # no short cut: every item must be evaluated
        return all(once(item) for item in items)

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        raise NotImplementedError

    # -- the rest --------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        self.stand(node, frame)
        return self.item(owner, index)

    def item(self, owner: Value, index: Value) -> Value:
        if isinstance(owner, Array):
            return self.subscript(owner, index)
        if isinstance(owner, Several):
            return owner if isinstance(index, slice) else owner.item
        if isinstance(owner, Instance):
            if "_items" in owner.attributes:
                items = owner.attributes["_items"]
                if isinstance(items, dict) and isinstance(index, int):
                    items = list(items.values())
                if isinstance(items, dict) and isinstance(index, slice):
                    picked = dict(list(items.items())[index])
                    return Instance(owner.cls, {**owner.attributes, "_items": picked})
                return self.item(items, index)
            method = owner.cls.find("__getitem__")
            if isinstance(method, Function):
                return self.call(self.attribute(owner, "__getitem__"), (index,), {})
            return UNKNOWN
        if index is UNKNOWN or not isinstance(owner, (list, tuple, dict, str, range, bytes)):
            return UNKNOWN
        try:
            return owner[index]
        except Exception:
            return UNKNOWN

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        parts = [None if n is None else self.evaluate(n, frame)
                 for n in (node.lower, node.upper, node.step)]  # fmt: skip
        # an array as a bound is read by the host; an unknown bound is an unknown length
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
        self.stand(node, frame)
        if isinstance(function, Symbol) and function.path == "builtins.super":
            return self.super_of(frame, args)
        if args is None:  # f(*unknown)
            return self.unreadable(function, node)
        return self.call(function, args, kwargs)

    def super_of(self, frame: Frame, args: Sequence[Value] | None) -> Value:
        raise NotImplementedError

    def unreadable(self, function: Value, node: ast.Call) -> Value:
        """A call with arguments whose number is unknown."""
        if not isinstance(function, Symbol) or function.path.startswith("torch"):
            self.missing(ast.unparse(node.func)[:60])
        return UNKNOWN

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
        closure = frame.closure if top else ChainMap(frame.names, dict(frame.closure))
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
        if frame.yielded is not None:
            frame.yielded.append(value)
        return UNKNOWN

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Value:
        items = self.iterate(self.evaluate(node.value, frame))
        if frame.yielded is not None:
            frame.yielded += [items.item] if isinstance(items, Several) else items
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
