"""Assignment: to names, attributes and subscripts, unpacked, annotated or augmented."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from kpredict.source.infer.expressions import Expressions
from kpredict.source.infer.state import NEXT, Frame
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Class,
    Function,
    Instance,
    Several,
    Value,
)  # fmt: skip


class Assigning(Expressions):
    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, frame)
            if isinstance(owner, Array) and target.attr == "requires_grad":
                made = replace(owner, requires_grad=value is not False)
                self.assign(target.value, made, frame)
                return
            self.assign_attribute(owner, target.attr, value)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, frame)
            index = self.evaluate(target.slice, frame)
            self.stand(target, frame)
            self.store_item(owner, index, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, frame)

    def assign_name(self, name: str, value: Value, frame: Frame) -> None:
        if name in frame.outer:
            frame.scope.names[name] = value
        elif name in frame.enclosing:
            frame.assign_enclosing(name, value)
        else:
            frame.names[name] = value

    def assign_attribute(self, owner: Value, name: str, value: Value) -> None:
        if isinstance(owner, Instance):
            setter = owner.cls.find(f"{name}.setter")
            if isinstance(setter, Function):
                self.call_function(setter, (owner, value), {})
                return
            owner.attributes[name] = value
        elif isinstance(owner, Class):
            owner.attributes[name] = value
        elif isinstance(owner, Array) and name == "grad":
            self.accumulated.pop(owner.key, None)
            if isinstance(value, Array):
                self.accumulated[owner.key] = value

    def store_item(self, owner: Value, index: Value, value: Value) -> None:
        if isinstance(owner, Array):
            self.store(owner, index, value)
        elif isinstance(owner, Instance) and "_items" in owner.attributes:
            self.store_item(owner.attributes["_items"], index, value)
        elif isinstance(owner, Instance) and isinstance(owner.cls.find("__setitem__"), Function):
            self.call(self.attribute(owner, "__setitem__"), (index, value), {})
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
