"""The methods of plain Python values: lists, dicts, sets, texts, numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpredict.source.infer.calls import Calls
from kpredict.source.infer.joining import common
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Optimizer,
    Several,
    Symbol,
    Value,
)  # fmt: skip


class Containers(Calls):
    def value_method(
        self, owner: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if isinstance(owner, Optimizer):
            return self.optimizer_method(owner, name, args, kwargs)
        if isinstance(owner, Several):
            if name in ("append", "extend"):
                return None
            return owner if name in ("values", "copy") else UNKNOWN
        if isinstance(owner, list):
            return self._list_method(owner, name, args, kwargs)
        if isinstance(owner, dict):
            return self._dict_method(owner, name, args, kwargs)
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
        return self.pure(getattr(owner, name), args, kwargs)

    def _list_method(
        self, owner: list[Value], name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if name == "append" and args:
            owner.append(args[0])
            return None
        if name == "extend" and args:
            items = self.iterate(args[0])
            owner += [items.item] if isinstance(items, Several) else items
            return None
        if name == "popleft":
            return owner.pop(0) if owner else UNKNOWN
        if name == "appendleft" and args:
            owner.insert(0, args[0])
            return None
        if name == "sort":
            ordered = self.call(Symbol("builtins.sorted"), (owner,), kwargs)
            owner[:] = ordered if isinstance(ordered, list) else owner
            return None
        if name in ("insert", "pop", "clear", "reverse", "remove", "copy", "index", "count"):
            if UNKNOWN in [a for a in args if not isinstance(a, Array)]:
                return common(owner) if name == "pop" and owner else UNKNOWN
            try:
                return getattr(owner, name)(*args)
            except Exception:
                return UNKNOWN
        return UNKNOWN

    def _dict_method(
        self, d: dict[Value, Value], name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
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
                elif a is not UNKNOWN:
                    made = self.call(Symbol("builtins.dict"), (a,), {})
                    d.update(made if isinstance(made, dict) else {})
            return None
        if name in ("get", "pop", "setdefault", "copy", "clear", "popitem"):
            if args and args[0] is UNKNOWN:
                return common(list(d.values())) if d else UNKNOWN
            try:
                return getattr(d, name)(*args)
            except Exception:
                return UNKNOWN
        return UNKNOWN

    def pure(
        self, f: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError

    def optimizer_method(
        self, o: Optimizer, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError
