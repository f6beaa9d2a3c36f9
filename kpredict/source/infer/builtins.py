"""Python's own functions, and the methods of its own types, on values that may be unknown."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpredict.source.infer.calls import Calls
from kpredict.source.infer.trace import Repeat
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Context,
    Function,
    Instance,
    Optimizer,
    Several,
    Symbol,
    Value,
    arrays_in,
    join,
    knows,
)  # fmt: skip

_PURE: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "divmod": divmod, "hash": hash, "repr": repr, "round": round, "str": str,
    "complex": complex, "bytes": bytes, "pow": pow, "ord": ord, "chr": chr, "frozenset": frozenset,
    "set": set, "slice": slice, "format": format,
}  # fmt: skip
_LONGEST = 1 << 16


class Builtins(Calls):
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
            return self._pure(_PURE[name], args, kwargs)
        if name in ("staticmethod", "classmethod", "property"):
            return args[0] if args else UNKNOWN
        return UNKNOWN

    def _pure(
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
        return self._pure({"float": float, "int": int}[name], args, {})

    def _py_none(self, *args: Value, **kwargs: Value) -> Value:
        return None

    def _py_len(self, x: Value) -> Value:
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
                    c.item if isinstance(c, Several) else (_common(c) if c else UNKNOWN)
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

    def _py_iter(self, x: Value) -> Value:
        return self.iterate(x)

    def _py_next(self, x: Value, default: Value = UNKNOWN) -> Value:
        if isinstance(x, Several):
            return x.item
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
        return (
            items if isinstance(items, Several) else Several(_common(items) if items else UNKNOWN)
        )

    def _py_sum(self, x: Value, start: Value = 0) -> Value:
        import ast

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
        if isinstance(items, Several) or kwargs or not items:
            return UNKNOWN
        arrays = arrays_in(list(items))
        if arrays:
            import ast

            for other in items[1:]:  # Python compares, and reads each answer
                self.truth(self.compare(ast.Lt, items[0], other))
            return arrays[0] if len(arrays) == len(items) else UNKNOWN
        return self._pure(f, tuple(items), {})

    def _py_sorted(self, x: Value, **kwargs: Value) -> Value:
        items = self.iterate(x)
        if isinstance(items, Several):
            return items
        if kwargs or not knows(items) or arrays_in(items):
            return Several(_common(items)) if items else []
        try:
            return sorted(items)
        except TypeError:
            return UNKNOWN

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
        if isinstance(o, Instance) and isinstance(name, str):
            o.attributes[name] = value
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
        return isinstance(o, (Function, Class, Bound, Symbol, Instance))

    def _py_type(self, o: Value, *rest: Value) -> Value:
        return o.cls if isinstance(o, Instance) else UNKNOWN

    def _py_isinstance(self, o: Value, kinds: Value) -> Value:
        if o is UNKNOWN:
            return UNKNOWN
        answers = [_is_a(o, k) for k in (kinds if isinstance(kinds, tuple) else (kinds,))]
        return True if True in answers else UNKNOWN if UNKNOWN in answers else False

    # -- methods of plain values -----------------------------------------------------------

    def value_method(
        self, owner: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if isinstance(owner, Optimizer):
            return self.optimizer_method(owner, name, args, kwargs)
        if isinstance(owner, Several):
            return (
                owner
                if name in ("values", "copy")
                else None
                if name in ("append", "extend")
                else UNKNOWN
            )
        if isinstance(owner, list):
            return self._list_method(owner, name, args)
        if isinstance(owner, dict):
            return _dict_method(owner, name, args, kwargs)
        if isinstance(owner, set) and name in ("add", "discard", "update"):
            with contextlib.suppress(TypeError):
                getattr(owner, name)(*args)
            return None
        if isinstance(owner, str) and name in ("join", "format"):
            if name == "join" and args:
                items = self.iterate(args[0])
                if not isinstance(items, Several) and all(isinstance(i, str) for i in items):
                    return owner.join(items)
            return UNKNOWN
        if not hasattr(owner, name):
            return UNKNOWN
        return self._pure(getattr(owner, name), args, kwargs)

    def _list_method(self, owner: list[Value], name: str, args: Sequence[Value]) -> Value:
        if name == "append" and args:
            owner.append(args[0])
            return None
        if name == "extend" and args:
            items = self.iterate(args[0])
            owner += [items.item] if isinstance(items, Several) else items
            return None
        if name in ("insert", "pop", "clear", "reverse", "remove", "copy", "index", "count"):
            try:
                return getattr(owner, name)(*args)
            except Exception:
                return UNKNOWN
        return UNKNOWN

    def optimizer_method(
        self, o: Optimizer, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError


def _dict_method(
    d: dict[Value, Value], name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    if name == "items":
        return list(d.items())
    if name == "values":
        return list(d.values())
    if name == "keys":
        return list(d)
    if name == "update":
        for a in (*args, kwargs):
            if isinstance(a, Mapping):
                d.update(a)
        return None
    if name in ("get", "pop", "setdefault", "copy", "clear", "popitem"):
        if args and args[0] is UNKNOWN:
            return UNKNOWN
        try:
            return getattr(d, name)(*args)
        except Exception:
            return UNKNOWN
    return UNKNOWN


def _common(items: Sequence[Value]) -> Value:
    one = items[0]
    for other in items[1:]:
        one = join(one, other)
    return one


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


def folded_math(name: str, args: Sequence[Value]) -> Value:
    """`math.<name>` on numbers."""
    f = getattr(math, name, None)
    if (
        f is None
        or not all(isinstance(a, (int, float)) for a in args)
        or name in ("factorial", "comb")
    ):
        return UNKNOWN
    try:
        return f(*args)
    except Exception:
        return UNKNOWN


__all__ = ["Builtins", "Context", "folded_math"]
