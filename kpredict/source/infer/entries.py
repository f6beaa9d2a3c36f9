"""Whole files: which functions to read, with which inputs, and what came out of each.

In: a file's text. Out: a Reading, with the trace of every function. Nothing is imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kpredict.model import Target
from kpredict.source.infer.counting import total
from kpredict.source.infer.machine import Machine
from kpredict.source.infer.operators import Exhausted
from kpredict.source.infer.trace import Interval, Item, Missing, Place
from kpredict.source.infer.values import (
    UNKNOWN, Array, Bound, Class, Function, Instance, Scope, Value, arrays_in,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Read:
    """One function as read: its trace and what its inputs were taken to be."""

    name: str
    line: int
    items: tuple[Item, ...]
    inputs: tuple[tuple[str, str], ...] = ()
    complete: bool = True  # False: the reading was cut short

    def kernels(self, target: Target) -> Interval:
        found = total(self.items, target)
        return found if self.complete else Interval(found.lo, None)


def read_conventional(text: str, file: str, target: Target | None = None) -> Read | None:
    """The file's `Model` or `ENTRY`, with what `get_init_inputs()` and `get_inputs()` return;
    None when it has no such thing. Runs as capture would: a Model in eval mode without grad
    unless `MODE = "training"`."""
    scope_reader = Machine(fuel=5_000_000, target=target)
    scope = scope_reader.load(ast.parse(text), file)
    names = scope.names
    entry = names.get("ENTRY") if isinstance(names.get("ENTRY"), str) else "Model"
    found = names.get(entry) if isinstance(entry, str) else None
    if not isinstance(found, (Function, Class)) or not isinstance(
        names.get("get_inputs"), Function
    ):
        return None
    assume = names.get("D2H_VALUE")
    reader = Machine(
        fuel=20_000_000, target=target, files=scope_reader.files,
        assume=int(assume) if isinstance(assume, (int, float)) else 0,
    )  # fmt: skip
    with reader.recording():
        inputs = reader.call(names["get_inputs"], (), {})
        kwargs = reader.call(names["get_kwargs"], (), {}) if "get_kwargs" in names else {}
    args = list(inputs) if isinstance(inputs, (list, tuple)) else [UNKNOWN]
    training = names.get("MODE") == "training"
    function: Value = found
    if isinstance(found, Class):
        with reader.recording():
            init = (
                reader.call(names["get_init_inputs"], (), {}) if "get_init_inputs" in names else []
            )
            function = reader.call(
                found, tuple(init) if isinstance(init, (list, tuple)) else (UNKNOWN,), {}
            )
            if isinstance(function, Instance):
                reader.module_method(function, "cuda", (), {})
                reader.module_method(function, "train" if training else "eval", (), {})
        reader.grad = training
    return run(
        reader, function, args, kwargs if isinstance(kwargs, dict) else {}, str(entry), found
    )


def run(
    reader: Machine, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value],
    name: str, defined: Function | Class,
) -> Read:  # fmt: skip
    """Call `function` and keep what it recorded."""
    line = defined.line if isinstance(defined, Class) else defined.node.lineno
    complete = True
    with reader.recording() as items:
        try:
            reader.call(function, tuple(args), dict(kwargs))
        except (Exhausted, RecursionError):
            complete = False
            reader.missing("the rest")
    shown = tuple((str(i), str(a)) for i, v in enumerate(args) for a in arrays_in([v]))
    return Read(name, line, tuple(items), shown, complete)


__all__ = ["Array", "Bound", "Missing", "Place", "Read", "Scope", "read_conventional", "run"]
