"""The state of one reading: the trace, where the reader stands, the modes that are on.

The reader is built in layers, one file each: state (this) → dispatching → arrays → subscripts →
methods → displays → expressions → assigning → choices → loops → patterns → definitions →
statements → attributes → calls → containers → builtins → standard → torch_names → library → tape →
optimizers → transforms → modules → machine. Later layers are called through methods declared here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kpredict.source.infer.trace import Called, Item, Missing, Place, Sync
from kpredict.source.infer.values import (
    Array,
    Class,
    Function,
    Scope,
    Value,
)  # fmt: skip

NEXT = ""
"""How a block ends that falls through; the other ends are in choices.py."""


class Exhausted(Exception):
    """The reading has cost as much as it may; what is left stays unknown."""


@dataclass(slots=True)
class Frame:
    """One call: its names, and whose lines it runs."""

    scope: Scope
    function: str
    names: dict[str, Value] = field(default_factory=dict)
    closure: Mapping[str, Value] = field(default_factory=dict)
    owner: Class | None = None
    returned: list[Value] = field(default_factory=list)
    yielded: list[Value] | None = None
    whole: bool = True  # `yielded` is all of it: no yield sits on a way perhaps not taken
    consume: Callable[[Value], None] | None = None  # runs the block under `with`, at the yield
    outer: frozenset[str] = frozenset()  # names declared global
    is_class: bool = False  # a class body: its names are not seen from its methods
    enclosing: frozenset[str] = frozenset()  # names declared nonlocal
    perhaps: Mapping[str, Array] = field(default_factory=dict)  # arrays that may be None

    def assign_enclosing(self, name: str, value: Value) -> None:
        """Set a `nonlocal` name where the enclosing function has it."""
        for names in getattr(self.closure, "maps", ()):
            if name in names:
                names[name] = value
                return

    def become(self, names: Mapping[str, Value]) -> None:
        """Take over `names` in place: functions defined here look into the same dict."""
        if names is not self.names:
            new = dict(names)
            self.names.clear()
            self.names.update(new)


class State:
    """The trace being written, where the reader stands, and the modes that are on."""

    def __init__(self, fuel: int = 400_000, assume: int | None = None) -> None:
        self.items: list[Item] = []
        self.fuel = fuel
        self.assume = assume
        self.grad = True
        self.autocast: str | None = None
        self.here = Place("", 0, 0, "")
        self.stack: list[Place] = []
        self.default_device = "cpu"
        self.watched: Scope | None = None  # note what functions of this file are called with
        self.seen: dict[str, Mapping[str, Value]] = {}
        self.opened = 0  # composites of PyTorch that are open
        self.perhaps_arrays: Mapping[str, Array] = {}  # for the next call only
        self.tape: list[Any] = []  # ops that require grad, in order
        self.produced: set[Any] = set()  # the arrays they made that are no views
        self.tangled = False  # the tape is not all that happened, or more than that
        self.hooked = False  # something of the user's runs in every backward
        self.accumulated: dict[Any, Array] = {}  # `.grad` of leaves
        self.checks: set[Any] = set()  # results of `all`: what the device finds stays open
        self._casts: dict[tuple[int, str], Array] = {}

    # -- what later layers give ------------------------------------------------------------

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def execute(self, block: Sequence[ast.stmt], frame: Frame) -> str:
        raise NotImplementedError

    def call(self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        raise NotImplementedError

    def call_function(
        self, f: Function, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError

    def backward(self, root: Array, seed: Value = None, create_graph: Value = False) -> None:
        """`root.backward()`."""
        raise NotImplementedError

    def gradient_of(self, a: Array) -> Value:
        """`a.grad`."""
        raise NotImplementedError

    def method_named(self, cls: Class, name: str) -> Function | None:
        found = cls.find(name)
        return found if isinstance(found, Function) else None

    def attribute(self, owner: Value, name: str) -> Value:
        raise NotImplementedError

    def torch_call(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Call `torch.<name>` as user code would, composites opened."""
        raise NotImplementedError

    # -- the trace -------------------------------------------------------------------------

    def burn(self, amount: int = 1) -> None:
        self.fuel -= amount
        if self.fuel < 0:
            raise Exhausted

    @contextmanager
    def recording(self) -> Iterator[list[Item]]:
        """What is recorded inside goes to the list given, not to the trace."""
        before, self.items = self.items, []
        inside = self.items
        taped = len(self.tape)
        try:
            yield inside
        finally:
            self.items = before
            self.tangled = self.tangled or len(self.tape) > taped

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is dispatched is PyTorch's own doing and no call of the user's."""
        self.opened += 1
        try:
            yield
        finally:
            self.opened -= 1

    @contextmanager
    def made_on(self, device: str) -> Iterator[None]:
        """`with torch.device(…)`: where tensors are made that name no device."""
        before, self.default_device = self.default_device, device
        try:
            yield
        finally:
            self.default_device = before

    @contextmanager
    def mode(self, grad: bool | None = None, autocast: str | bool | None = True) -> Iterator[None]:
        """Grad mode and autocast for the time of a block; True leaves autocast as it is."""
        before = self.grad, self.autocast
        self.grad = self.grad if grad is None else grad
        if autocast is not True:
            self.autocast = autocast or None
        try:
            yield
        finally:
            if before[1] is None:  # the casts are kept until the outermost block ends
                self._casts.clear()
            self.grad, self.autocast = before

    def record(self, item: Item) -> None:
        self.items.append(item)

    def missing(self, what: str) -> None:
        """A call that may launch could not be read."""
        self.record(Missing(what, self.here))

    def sync(self, what: str, array: Array | None = None) -> None:
        self.record(Sync(what, self.here, array))

    def called(self, what: str, **kwargs: Any) -> None:
        self.record(Called(what, self.here, kwargs))

    # -- ops, by dispatching.py ------------------------------------------------------------

    def aten(self, name: str, *args: Value, **kwargs: Value) -> Value:
        """Dispatch `aten.<name>` and return what it returns; unknown to us: UNKNOWN, said so."""
        raise NotImplementedError
