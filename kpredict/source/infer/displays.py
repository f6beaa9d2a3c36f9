"""Lists, dicts and comprehensions: what they hold, and what a loop over a value sees."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

from kpredict.source.infer.joining import common
from kpredict.source.infer.methods import Methods
from kpredict.source.infer.state import Frame
from kpredict.source.infer.trace import Fork, Item, Repeat
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Cursor,
    Function,
    Instance,
    Several,
    Value,
)  # fmt: skip

LONGEST_LOOP = 4096


class Displays(Methods):
    # -- choices ---------------------------------------------------------------------------

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

    # -- displays --------------------------------------------------------------------------

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

    # -- iteration -------------------------------------------------------------------------

    def iterate(self, value: Value) -> list[Value] | Several:
        """What a loop over `value` sees: its items, or that there are several like one."""
        if isinstance(value, (list, tuple, set, frozenset, dict)):
            return list(value)
        if isinstance(value, (range, str, bytes)):
            return list(value) if len(value) <= LONGEST_LOOP else Several(UNKNOWN)
        if isinstance(value, Several):
            return value
        if isinstance(value, Cursor):
            return value.rest()
        if isinstance(value, Array):
            if value.shape and value.shape[0] is not None and value.shape[0] <= LONGEST_LOOP:
                parts = self.aten("unbind", value, 0)
                return list(parts) if isinstance(parts, list) else Several(UNKNOWN)
            return Several(self.aten("select", value, 0, 0))
        if isinstance(value, Instance):
            if "_items" in value.attributes:
                return self.iterate(value.attributes["_items"])
            if value.cls.is_tuple:
                return [value.attributes.get(n, UNKNOWN) for n in value.cls.fields]
            method = value.cls.find("__iter__")
            if isinstance(method, Function):
                got = self.call(self.attribute(value, "__iter__"), (), {})
                return self.iterate(got) if got is not value else Several(UNKNOWN)
            length = self._length(value)
            if length is not None and isinstance(value.cls.find("__getitem__"), Function):
                return [self.item(value, i) for i in range(length)]
        return Several(UNKNOWN)

    def _length(self, o: Instance) -> int | None:
        """`len(o)` by its own method, when that tells."""
        if not isinstance(o.cls.find("__len__"), Function):
            return None
        n = self.call(self.attribute(o, "__len__"), (), {})
        return n if isinstance(n, int) and 0 <= n <= LONGEST_LOOP else None

    def _comprehension(self, node: Any, frame: Frame) -> Value:
        inner = Frame(frame.scope, frame.function, {}, enclosed(frame), frame.owner)
        out: list[Value] = []
        whole = self._generate(node, 0, inner, out)
        if isinstance(node, ast.DictComp):
            if not whole:
                return UNKNOWN
            return {k: v for k, v in out if k is not UNKNOWN}
        if isinstance(node, ast.GeneratorExp) and whole:
            return Cursor(out)
        if isinstance(node, ast.SetComp):
            try:
                return set(out) if whole else Several(UNKNOWN)
            except TypeError:
                return UNKNOWN
        if whole:
            return out
        return Several(common(out) if out else UNKNOWN)

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
                    picked = self.item(list(items.items()), index)
                    if not isinstance(picked, list):
                        return UNKNOWN  # a bound is not known
                    return Instance(owner.cls, {**owner.attributes, "_items": dict(picked)})
                return self.item(items, index)
            if owner.cls.is_tuple:
                return self.item(
                    tuple(owner.attributes.get(n, UNKNOWN) for n in owner.cls.fields), index
                )
            method = owner.cls.find("__getitem__")
            if isinstance(method, Function):
                return self.call(self.attribute(owner, "__getitem__"), (index,), {})
            return UNKNOWN
        if index is UNKNOWN and isinstance(owner, (list, tuple)) and owner:
            return common(owner)
        if index is UNKNOWN or not isinstance(owner, (list, tuple, dict, str, range, bytes)):
            return UNKNOWN
        try:
            return owner[index]
        except Exception:
            return UNKNOWN

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        raise NotImplementedError


def enclosed(frame: Frame) -> Mapping[str, Value]:
    """What a function defined in this frame sees around it: its names as they will be."""
    return ChainMap(frame.names, *getattr(frame.closure, "maps", (dict(frame.closure),)))
