"""Python's own functions, on values that may be unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpredict.source.infer.containers import Containers
from kpredict.source.infer.joining import arrays_in, common, knows
from kpredict.source.infer.trace import Repeat
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Cursor,
    Function,
    Instance,
    Partial,
    Several,
    Symbol,
    Value,
)  # fmt: skip

_PURE: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "divmod": divmod, "hash": hash, "repr": repr, "round": round, "str": str,
    "complex": complex, "bytes": bytes, "pow": pow, "ord": ord, "chr": chr, "frozenset": frozenset,
    "set": set, "slice": slice, "format": format,
}  # fmt: skip


class Builtins(Containers):
    def builtin(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        method = getattr(self, f"_py_{name}", None)
        if method is not None:
            try:
                return method(*args, **kwargs)
            except TypeError:
                return UNKNOWN
        if name in ("float", "int", "bool"):
            return self._number(name, args)
        if name in _PURE:
            return self.pure(_PURE[name], args, kwargs)
        if name in ("staticmethod", "classmethod", "property"):
            return args[0] if args else UNKNOWN
        return UNKNOWN

    def pure(
        self, f: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if f is abs and args and isinstance(args[0], Array):
            return self.aten("abs", args[0])
        if arrays_in(list(args)) or not knows([*args]) or any(
            isinstance(a, (Instance, Function, Class, Several)) for a in args
        ):  # fmt: skip
            return UNKNOWN
        try:
            return f(*args, **kwargs)
        except Exception:
            return UNKNOWN

    def _number(self, name: str, args: Sequence[Value]) -> Value:
        if not args:
            return {"float": 0.0, "int": 0, "bool": False}[name]
        x = args[0]
        if name == "bool":
            truth = self.truth_of(x)
            return UNKNOWN if truth is None else truth
        if isinstance(x, Array):
            return self.read(x, f"__{name}__")
        return self.pure({"float": float, "int": int}[name], args, {})

    def _py_none(self, *args: Value, **kwargs: Value) -> Value:
        return None

    def _py_len(self, x: Value) -> Value:
        if isinstance(x, Instance) and x.cls.is_tuple:
            return len(x.cls.fields)
        if isinstance(x, Array):
            return UNKNOWN if not x.shape or x.shape[0] is None else x.shape[0]
        if isinstance(x, Instance):
            if "_items" in x.attributes:
                return self._py_len(x.attributes["_items"])
            method = self.method_named(x.cls, "__len__")
            return UNKNOWN if method is None else self.call_function(method, (x,), {})
        return len(x) if isinstance(x, (list, tuple, dict, set, str, range, bytes)) else UNKNOWN

    def _py_range(self, *args: Value) -> Value:
        numbers = [self.read(a, "__int__") if isinstance(a, Array) else a for a in args]
        if all(isinstance(a, int) for a in numbers):
            try:
                return range(*numbers)
            except (ValueError, TypeError):
                return UNKNOWN
        return Several(UNKNOWN)

    def _py_enumerate(self, x: Value, start: Value = 0) -> Value:
        items = self.iterate(x)
        if isinstance(items, Several):
            return Several((UNKNOWN, items.item))
        first = start if isinstance(start, int) else 0
        return [(first + i, v) for i, v in enumerate(items)]

    def _py_zip(self, *args: Value, strict: Value = False) -> Value:
        columns = [self.iterate(a) for a in args]
        lengths = [len(c) for c in columns if not isinstance(c, Several)]
        if len(lengths) < len(columns):
            return Several(
                tuple(
                    c.item if isinstance(c, Several) else (common(c) if c else UNKNOWN)
                    for c in columns
                )
            )
        return [tuple(c[i] for c in columns) for i in range(min(lengths, default=0))]  # type: ignore[index]

    def _py_list(self, x: Value = ()) -> Value:
        items = self.iterate(x)
        return items if isinstance(items, Several) else list(items)

    def _py_tuple(self, x: Value = ()) -> Value:
        items = self.iterate(x)
        return items if isinstance(items, Several) else tuple(items)

    def _py_dict(self, x: Value = None, **kwargs: Value) -> Value:
        if x is None:
            return dict(kwargs)
        if isinstance(x, dict):
            return {**x, **kwargs}
        items = self.iterate(x)
        if isinstance(items, Several) or not all(
            isinstance(i, tuple) and len(i) == 2 for i in items
        ):
            return UNKNOWN
        try:
            return {**{k: v for k, v in items if k is not UNKNOWN}, **kwargs}
        except TypeError:
            return UNKNOWN

    def _py_reversed(self, x: Value) -> Value:
        items = self.iterate(x)
        return items if isinstance(items, Several) else items[::-1]

    def _py_iter(self, x: Value, *sentinel: Value) -> Value:
        if isinstance(x, Cursor):
            return x
        items = Several(UNKNOWN) if sentinel else self.iterate(x)
        return items if isinstance(items, Several) else Cursor(items)

    def _py_next(self, x: Value, default: Value = UNKNOWN) -> Value:
        if isinstance(x, Several):
            return x.item
        if isinstance(x, Cursor):
            return x.items.pop(0) if x.items else default
        if isinstance(x, Instance) and self.method_named(x.cls, "__next__"):
            return self.call(self.attribute(x, "__next__"), (), {})
        return x[0] if isinstance(x, list) and x else default

    def _py_map(self, f: Value, *args: Value) -> Value:
        rows = self._py_zip(*args)
        if isinstance(rows, Several):
            with self.recording() as body:
                one = self.call(f, rows.item, {})
            if body:
                self.record(Repeat(tuple(body), self.here))
            return Several(one)
        return [self.call(f, row, {}) for row in rows]

    def _py_filter(self, f: Value, x: Value) -> Value:
        items = self.iterate(x)
        if isinstance(items, Several):
            return items
        kept = [(v, self.truth_of(v if f is None else self.call(f, (v,), {}))) for v in items]
        if any(truth is None for _, truth in kept):
            return Several(common(items)) if items else []
        return [v for v, truth in kept if truth]

    def _py_sum(self, x: Value, start: Value = 0) -> Value:
        items = self.iterate(x)
        if isinstance(items, Several):
            if isinstance(items.item, Array):
                with self.recording() as body:
                    out = self.binary(ast.Add, items.item, items.item)
                self.record(Repeat(tuple(body), self.here))
                return out
            return UNKNOWN
        total = start
        for item in items:
            total = self.binary(ast.Add, total, item)
        return total

    def _py_min(self, *args: Value, **kwargs: Value) -> Value:
        return self._extreme(min, args, kwargs)

    def _py_max(self, *args: Value, **kwargs: Value) -> Value:
        return self._extreme(max, args, kwargs)

    def _extreme(
        self, f: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        items = self.iterate(args[0]) if len(args) == 1 else list(args)
        if isinstance(items, Several):
            return UNKNOWN
        if not items:
            return kwargs.get("default", UNKNOWN)
        key = kwargs.get("key")
        keys = items if key is None else [self.call(key, (v,), {}) for v in items]
        if arrays_in(list(keys)):
            for other in keys[1:]:  # Python compares, and reads each answer
                self.truth(self.compare(ast.Lt, keys[0], other))
            return common(items)
        if not knows(keys):
            return common(items) if arrays_in(items) else UNKNOWN
        try:
            return items[keys.index(f(keys))]
        except (TypeError, ValueError):
            return UNKNOWN

    def _py_sorted(self, x: Value, key: Value = None, reverse: Value = False) -> Value:
        items = self.iterate(x)
        if isinstance(items, Several) or not items:
            return items
        keys = items if key is None else [self.call(key, (v,), {}) for v in items]
        if not knows(keys) or arrays_in(list(keys)) or not isinstance(reverse, bool):
            return [common(items)] * len(items)
        try:
            order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        except TypeError:
            return UNKNOWN
        return [items[i] for i in order]

    def _py_any(self, x: Value) -> Value:
        return self._quantified(x, True)

    def _py_all(self, x: Value) -> Value:
        return self._quantified(x, False)

    def _quantified(self, x: Value, stop: bool) -> Value:
        items = self.iterate(x)
        if isinstance(items, Several):
            return UNKNOWN
        truths = [self.truth_of(i) for i in items]
        return stop if stop in truths else UNKNOWN if None in truths else not stop

    def _py_print(self, *args: Value, **kwargs: Value) -> Value:
        for a in arrays_in(list(args)):
            if a.device == "cuda":
                self.sync("print", a)
                self.missing("print")
        return None

    def _py_getattr(self, o: Value, name: Value, default: Value = UNKNOWN) -> Value:
        if not isinstance(name, str):
            return UNKNOWN
        found = self.attribute(o, name)
        if (
            found is UNKNOWN
            and isinstance(o, Instance)
            and not o.open
            and not o.cls.has_unknown_base
        ):
            return default
        return found

    def _py_setattr(self, o: Value, name: Value, value: Value) -> Value:
        if isinstance(name, str):
            self.assign_attribute(o, name, value)
        return None

    def _py_hasattr(self, o: Value, name: Value) -> Value:
        if not isinstance(name, str) or o is UNKNOWN:
            return UNKNOWN
        if self.attribute(o, name) is not UNKNOWN:
            return True
        closed = isinstance(o, Instance) and not o.open and not o.cls.has_unknown_base
        return False if closed else UNKNOWN

    def _py_callable(self, o: Value) -> Value:
        if o is UNKNOWN:
            return UNKNOWN
        return isinstance(o, (Function, Class, Bound, Symbol, Instance, Partial))

    def _py_type(self, o: Value, *rest: Value) -> Value:
        if isinstance(o, Instance):
            return o.cls
        if isinstance(o, Array):
            return Symbol("torch.Tensor")
        return UNKNOWN

    def _py_vars(self, o: Value) -> Value:
        return o.attributes if isinstance(o, Instance) else UNKNOWN

    def _py_isinstance(self, o: Value, kinds: Value) -> Value:
        if o is UNKNOWN:
            return UNKNOWN
        answers = [_is_a(o, k) for k in (kinds if isinstance(kinds, tuple) else (kinds,))]
        return True if True in answers else UNKNOWN if UNKNOWN in answers else False


def _is_a(o: Value, kind: Value) -> Value:
    if isinstance(kind, Class):
        if isinstance(o, Instance):
            if kind in o.cls.lines():
                return True
            return UNKNOWN if o.cls.has_unknown_base else False
        return False
    if not isinstance(kind, Symbol):
        return UNKNOWN
    plain = {"int": int, "float": float, "str": str, "list": list, "tuple": tuple, "dict": dict,
             "bool": bool, "set": set, "complex": complex}  # fmt: skip
    if kind.path.startswith("builtins."):
        python = plain.get(kind.name)
        if python is None:
            return UNKNOWN
        if isinstance(o, Several):
            return kind.name == "list"
        return isinstance(o, python) and not isinstance(o, (Array, Instance, Function))
    if kind.path in ("torch.Tensor", "torch.FloatTensor", "torch.LongTensor"):
        return isinstance(o, Array)
    if kind.path == "torch.nn.Parameter":
        return isinstance(o, Array) and o.role == "parameter"
    if kind.path.startswith("collections.abc") or kind.path.startswith("typing"):
        return isinstance(o, (list, tuple)) if kind.name in ("Sequence", "Iterable") else UNKNOWN
    return (
        False if isinstance(o, (Array, int, float, str, list, tuple, dict, type(None))) else UNKNOWN
    )
