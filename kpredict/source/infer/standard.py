"""The parts of Python's standard library that decide what is called: functools, itertools, …"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kpredict.source.infer.builtins import Builtins
from kpredict.source.infer.displays import LONGEST_LOOP
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.trace import Repeat
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Class,
    Context,
    Cursor,
    Instance,
    Partial,
    Scope,
    Several,
    Symbol,
    Value,
)  # fmt: skip


class Standard(Builtins):
    def standard_call(self, path: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """A call of `path`. Returns NotImplemented for all that is not read here."""
        top, _, name = path.partition(".")
        if top == "math":
            return self._math(name, args)
        if top == "itertools":
            return self._itertools(name, args, kwargs)
        if top == "operator":
            return self._operator(name, args)
        method = _CALLS.get(path)
        return NotImplemented if method is None else method(self, args, kwargs)

    def _math(self, name: str, args: Sequence[Value]) -> Value:
        numbers = [self.read(a, "__float__") if isinstance(a, Array) else a for a in args]
        return folded_math(name, numbers)

    def _operator(self, name: str, args: Sequence[Value]) -> Value:
        op = _OPERATORS.get(name)
        if op is not None and len(args) == 2:
            return self.binary(op, *args)
        if name in ("itemgetter", "attrgetter") and len(args) == 1:
            return Partial(Symbol(f"operator.{name}_"), tuple(args), {})
        if name == "itemgetter_":
            return self.item(args[1], args[0])
        if name == "attrgetter_" and isinstance(args[0], str):
            return self.attribute(args[1], args[0])
        return NotImplemented

    # -- functools, copy, collections, dataclasses -----------------------------------------

    def _partial(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return Partial(args[0], tuple(args[1:]), dict(kwargs)) if args else UNKNOWN

    def _reduce(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if len(args) < 2:
            return UNKNOWN
        items = self.iterate(args[1])
        if isinstance(items, Several):
            return self._folded(args[0], items)
        if len(args) > 2:
            items = [args[2], *items]
        if not items:
            return UNKNOWN
        total = items[0]
        for item in items[1:]:
            total = self.call(args[0], (total, item), {})
        return total

    def _folded(self, f: Value, items: Several) -> Value:
        """A fold over any number of items."""
        with self.recording() as body:
            total = self.call(f, (items.item, items.item), {})
        if body:
            self.record(Repeat(tuple(body), self.here))
        return total

    def _copied(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """`copy.deepcopy`: a module's arrays get memory of their own, as far as that matters."""
        return deep_copy(args[0], {}) if args else UNKNOWN

    def _namedtuple(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if len(args) < 2 or not isinstance(args[0], str):
            return UNKNOWN
        fields = args[1].replace(",", " ").split() if isinstance(args[1], str) else args[1]
        if not isinstance(fields, (list, tuple)) or not all(isinstance(f, str) for f in fields):
            return UNKNOWN
        return Class(args[0], (), {}, Scope(""), tuple(fields), is_tuple=True)

    def _replaced(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        o = args[0] if args else UNKNOWN
        if not isinstance(o, Instance):
            return UNKNOWN
        return Instance(o.cls, {**o.attributes, **kwargs}, o.open)

    def _as_dict(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        o = args[0] if args else UNKNOWN
        return dict(o.attributes) if isinstance(o, Instance) and not o.open else UNKNOWN

    def _fields(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return Partial(Symbol("dataclasses.field"), (), dict(kwargs))

    def _as_tuple(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        o = args[0] if args else UNKNOWN
        return tuple(o.attributes.values()) if isinstance(o, Instance) and not o.open else UNKNOWN

    def _ordered(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return self.builtin("dict", args, kwargs)

    def _defaulting(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return self.builtin("dict", (), kwargs)

    def _queue(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return self.builtin("list", args[:1], {})

    def _no_context(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return Context("")

    def _numbered(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return next(_numbers)  # enum.auto(): each member is another

    # -- itertools -------------------------------------------------------------------------

    def _itertools(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if name == "chain.from_iterable" and args:
            inside = self.iterate(args[0])
            return inside if isinstance(inside, Several) else self._itertools("chain", inside, {})
        if name == "accumulate" and args:
            known = {k: v for k, v in kwargs.items() if k in ("func", "initial")}
            return self._accumulated(*args[:2], **known)
        if name == "count":
            return Several(UNKNOWN)
        if name == "starmap" and len(args) == 2:
            rows = self.iterate(args[1])
            if isinstance(rows, Several):
                columns = rows.item if isinstance(rows.item, (list, tuple)) else ()
                return self.builtin("map", (args[0], *(Several(c) for c in columns)), {})
            return [self.call(args[0], tuple(self._row(r)), {}) for r in rows]
        if name == "repeat" and len(args) > 1 and isinstance(args[1], int):
            return [args[0]] * min(args[1], LONGEST_LOOP)
        if name in ("cycle", "repeat") and args:
            found = self.iterate(args[0]) if name == "cycle" else [args[0]]
            one = found.item if isinstance(found, Several) else found[0] if found else UNKNOWN
            return Several(one)
        if name == "zip_longest":
            return self.builtin("zip", args, {})
        f = _ITERTOOLS.get(name)
        if f is None:
            return UNKNOWN
        if name == "islice":
            items = self.iterate(args[0])
            plain = all(a is None or isinstance(a, int) for a in args[1:])
            if isinstance(items, Several) or not plain:
                return items if isinstance(items, Several) else Several(UNKNOWN)
            return list(itertools.islice(items, *args[1:]))
        lists: list[Any] = []
        for a in args:
            if isinstance(a, int):
                lists.append(a)
                continue
            items = self.iterate(a)
            if isinstance(items, Several):
                return Several(UNKNOWN)
            lists.append(items)
        try:
            return list(itertools.islice(f(*lists, **kwargs), LONGEST_LOOP))
        except (TypeError, ValueError):
            return UNKNOWN

    def _row(self, row: Value) -> list[Value]:
        items = self.iterate(row)
        return [items.item] if isinstance(items, Several) else items

    def _accumulated(self, x: Value, func: Value = None, initial: Value = None) -> Value:
        items = self.iterate(x)
        if isinstance(items, Several):
            return items
        if initial is not None:
            items = [initial, *items]
        out: list[Value] = items[:1]
        for item in items[1:]:
            add = Symbol("operator.add") if func is None else func
            out.append(self.call(add, (out[-1], item), {}))
        return out


def deep_copy(value: Value, done: dict[int, Value]) -> Value:
    """A copy of objects and containers; arrays that shared memory share other memory then."""
    if not isinstance(value, Array) and id(value) in done:
        return done[id(value)]
    if isinstance(value, Instance):
        made = done[id(value)] = Instance(value.cls, {}, value.open)
        made.attributes.update({k: deep_copy(v, done) for k, v in value.attributes.items()})
        return made
    if isinstance(value, list):
        return [deep_copy(v, done) for v in value]
    if isinstance(value, dict):
        return {k: deep_copy(v, done) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(deep_copy(v, done) for v in value)
    if isinstance(value, Array):
        if -value.storage not in done:
            done[-value.storage] = fresh((), None, "cpu").storage
        return replace(value, storage=done[-value.storage])
    if isinstance(value, Cursor):
        return Cursor([deep_copy(v, done) for v in value.items])
    return value


def folded_math(name: str, args: Sequence[Value]) -> Value:
    """`math.<name>` on numbers."""
    f = getattr(math, name, None)
    if (
        f is None
        or not all(isinstance(a, (int, float)) for a in args)
        or name in ("factorial", "comb", "perm")
    ):
        return UNKNOWN
    try:
        return f(*args)
    except Exception:
        return UNKNOWN


_numbers = itertools.count(1)
_OPERATORS: Mapping[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "mod": ast.Mod,
    "floordiv": ast.FloorDiv, "pow": ast.Pow, "matmul": ast.MatMult, "and_": ast.BitAnd,
    "or_": ast.BitOr, "xor": ast.BitXor,
}  # fmt: skip
_ITERTOOLS: Mapping[str, Callable[..., Any]] = {
    "chain": itertools.chain, "product": itertools.product, "pairwise": itertools.pairwise,
    "combinations": itertools.combinations, "permutations": itertools.permutations,
    "combinations_with_replacement": itertools.combinations_with_replacement,
    "islice": itertools.islice, "batched": getattr(itertools, "batched", None) or itertools.chain,
}  # fmt: skip
_CALLS: Mapping[str, Callable[[Standard, Sequence[Value], Mapping[str, Value]], Value]] = {
    "functools.partial": Standard._partial, "functools.reduce": Standard._reduce,
    "copy.deepcopy": Standard._copied, "copy.copy": Standard._copied,
    "collections.namedtuple": Standard._namedtuple, "dataclasses.replace": Standard._replaced,
    "dataclasses.asdict": Standard._as_dict, "dataclasses.astuple": Standard._as_tuple,
    "dataclasses.field": Standard._fields, "collections.OrderedDict": Standard._ordered,
    "collections.defaultdict": Standard._defaulting, "collections.deque": Standard._queue,
    "contextlib.nullcontext": Standard._no_context, "contextlib.suppress": Standard._no_context,
    "enum.auto": Standard._numbered,
}  # fmt: skip
