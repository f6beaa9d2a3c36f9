"""What a name can hold while source is read: plain Python values, or one of these.

Numbers, strings, tuples, lists, dicts, slices and ranges stand for themselves. Whatever cannot be
known is UNKNOWN; an operation on it is UNKNOWN again, never a guess.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Value = Any


class Unknown:
    """The value of everything that the source alone does not tell. There is one: UNKNOWN."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()

Dim = int | None


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor of which only metadata is known, each part of it perhaps not.

    `shape` is None for an unknown rank and has None for an unknown size; `stride` is None unless
    every stride is known. Two arrays share `storage` exactly when they share memory.
    """

    shape: tuple[Dim, ...] | None
    dtype: str | None
    device: str
    storage: int
    stride: tuple[int, ...] | None = None
    offset: int = 0
    requires_grad: bool = False
    role: str = ""  # "parameter" or "buffer" of a module

    @property
    def key(self) -> tuple[Any, ...]:
        """Which array it is, however it got here: where it lies and how."""
        return self.storage, self.offset, self.shape, self.stride

    @property
    def known(self) -> bool:
        """Everything a launch decision needs is known."""
        return self.stride is not None and self.dtype is not None

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The shape when all of it is known."""
        if self.shape is None or None in self.shape:
            return None
        return self.shape  # type: ignore[return-value]

    @property
    def ndim(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def numel(self) -> int | None:
        sizes = self.sizes
        return None if sizes is None else math.prod(sizes)

    @property
    def is_contiguous(self) -> bool | None:
        if self.sizes is None or self.stride is None:
            return None
        expected = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.stride), strict=True):
            if size == 0:
                return True
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True

    def __str__(self) -> str:
        dims = (
            "?"
            if self.shape is None
            else ",".join("?" if d is None else str(d) for d in self.shape)
        )
        return f"{self.dtype or '?'}[{dims}]"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name of a library we do not read, such as `torch.nn.functional.relu` or `numpy.clip`."""

    path: str

    @property
    def name(self) -> str:
        return self.path.rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class DType:
    """`torch.float32`; `name` has no prefix."""

    name: str


@dataclass(frozen=True, slots=True)
class Device:
    type: str


@dataclass(frozen=True, slots=True)
class Layout:
    """`torch.channels_last`, `torch.strided`, …"""

    name: str


@dataclass(eq=False, slots=True)
class Scope:
    """The names of one module file; `package` tells relative imports where they are."""

    file: str
    names: dict[str, Value] = field(default_factory=dict)
    package: str = ""
    library: bool = False  # one of ours: its lines are nobody's lines
    yields: tuple[int, ...] | None = None  # the lines that have the word; None: not known


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A `def` or lambda of a file, with what it closed over and its evaluated defaults."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    closure: Mapping[str, Value]
    qualname: str
    defaults: Mapping[str, Value] = field(default_factory=dict)
    decorators: tuple[Value, ...] = ()
    owner: Class | None = None
    wrapped: Value = None  # what the user's own decorators made of it

    @property
    def is_cached(self) -> bool:
        """A `cached_property`: run once per object."""
        return any(isinstance(d, Symbol) and d.name == "cached_property" for d in self.decorators)

    @property
    def kind(self) -> str:
        """How a class hands it out: "static", "class", "property" or "" for a plain method."""
        for d in self.decorators:
            name = d.name if isinstance(d, Symbol) else ""
            if name in ("staticmethod", "classmethod"):
                return name.removesuffix("method")
            if name in ("property", "cached_property"):
                return "property"
        return ""


@dataclass(eq=False, slots=True)
class Class:
    """A `class` of a file. `bases` holds Class, or Symbol for those of libraries."""

    name: str
    bases: tuple[Value, ...]
    attributes: dict[str, Value]
    scope: Scope
    fields: tuple[str, ...] = ()  # of a dataclass or named tuple, in order
    line: int = 0
    is_tuple: bool = False  # a named tuple: its fields are its items
    _lines: tuple[Class, ...] | None = None

    def find(self, name: str) -> Value:
        """The attribute by the classes' order, or UNKNOWN."""
        return self.lookup(name)[0]

    def lookup(self, name: str) -> tuple[Value, Class | None]:
        """The attribute and the class that has it."""
        for c in self.lines():
            if name in c.attributes:
                return c.attributes[name], c
        return UNKNOWN, None

    def lines(self) -> tuple[Class, ...]:
        """Itself and its classes in Python's method resolution order."""
        if self._lines is None:
            above = [b for b in self.bases if isinstance(b, Class) and b is not self]
            orders = [list(b.lines()) for b in above]
            self._lines = (self, *_merged([*orders, above]))
        return self._lines

    def is_a(self, name: str) -> bool:
        return any(c.name == name for c in self.lines())

    @property
    def has_unknown_base(self) -> bool:
        return any(
            not isinstance(b, (Class, Symbol)) or (isinstance(b, Symbol) and b.path != "object")
            for c in self.lines()
            for b in c.bases
        )


def _merged(orders: list[list[Class]]) -> list[Class]:
    """The C3 merge of the orders of several bases; a contradiction is left in the order given."""
    out: list[Class] = []
    while orders := [o for o in orders if o]:
        heads = [o[0] for o in orders]
        head = next((h for h in heads if not any(h in o[1:] for o in orders)), heads[0])
        out.append(head)
        orders = [[c for c in o if c is not head] for o in orders]
    return out


@dataclass(eq=False, slots=True)
class Instance:
    """An object of a Class: attributes by name, in the order they were set."""

    cls: Class
    attributes: dict[str, Value] = field(default_factory=dict)
    open: bool = False  # attributes we have not seen may exist


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A method with its object: of an Array, an Instance, or a plain value such as a list."""

    owner: Value
    name: str
    function: Function | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """A list of unknown length whose elements all look like `item`."""

    item: Value


@dataclass(eq=False, slots=True)
class Cursor:
    """An iterator over known items: what is taken is gone."""

    items: list[Value]

    def rest(self) -> list[Value]:
        """Everything that is left, taken."""
        taken, self.items = self.items, []
        return taken


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """`functools.partial(function, *args, **kwargs)`."""

    function: Value
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Managed:
    """A call of a generator that `contextlib.contextmanager` decorates, not run yet."""

    function: Function
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Context:
    """What `with` is given: `kind` is "grad", "autocast", or "" if nothing changes here."""

    kind: str
    value: Value = None


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """`super()` inside a method of `owner`."""

    owner: Class
    instance: Value


@dataclass(frozen=True, slots=True, eq=False)
class Optimizer:
    """An object of torch.optim: what it was made of."""

    name: str
    parameters: Value
    kwargs: Mapping[str, Value]
