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


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous array."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


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

    def find(self, name: str) -> Value:
        """The attribute by the classes' order, or UNKNOWN."""
        return self.lookup(name)[0]

    def lookup(self, name: str) -> tuple[Value, Class | None]:
        """The attribute and the class that has it."""
        if name in self.attributes:
            return self.attributes[name], self
        for base in self.bases:
            if isinstance(base, Class):
                found, owner = base.lookup(name)
                if owner is not None:
                    return found, owner
        return UNKNOWN, None

    def lines(self) -> list[Class]:
        """Itself and its classes, nearest first."""
        out: list[Class] = [self]
        for base in self.bases:
            if isinstance(base, Class):
                out += [c for c in base.lines() if c not in out]
        return out

    def is_a(self, name: str) -> bool:
        return any(c.name == name for c in self.lines())

    @property
    def has_unknown_base(self) -> bool:
        return any(
            not isinstance(b, (Class, Symbol)) or (isinstance(b, Symbol) and b.path != "object")
            for c in self.lines()
            for b in c.bases
        )


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


def join(a: Value, b: Value) -> Value:
    """What a name holds when it is one of the two and nobody knows which."""
    if a is b:
        return a
    if isinstance(a, Array) and isinstance(b, Array):
        if a == b:
            return a
        shape: tuple[Dim, ...] | None = None
        if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
            shape = tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))
        return Array(
            shape, a.dtype if a.dtype == b.dtype else None,
            "cuda" if "cuda" in (a.device, b.device) else "cpu", a.storage,
            a.stride if a.stride == b.stride and shape is not None and None not in shape else None,
            requires_grad=a.requires_grad or b.requires_grad,
        )  # fmt: skip
    if type(a) is not type(b):
        return UNKNOWN
    if isinstance(a, tuple):
        if len(a) != len(b):
            return UNKNOWN
        return tuple(join(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, list):
        items = [*a, *b]
        if len(a) == len(b):
            return [join(x, y) for x, y in zip(a, b, strict=True)]
        item = items[0]
        for other in items[1:]:
            item = join(item, other)
        return Several(item)
    if isinstance(a, Several):
        return Several(join(a.item, b.item))
    try:
        return a if bool(a == b) else UNKNOWN
    except Exception:
        return UNKNOWN


def arrays_in(value: Value, depth: int = 4) -> list[Array]:
    """Every Array inside nested containers and objects, in order."""
    if isinstance(value, Array):
        return [value]
    if depth == 0:
        return []
    if isinstance(value, (list, tuple, set, frozenset)):
        return [a for v in value for a in arrays_in(v, depth - 1)]
    if isinstance(value, dict):
        return [a for v in value.values() for a in arrays_in(v, depth - 1)]
    return []


def knows(value: Value, depth: int = 4) -> bool:
    """Whether nothing inside `value` is UNKNOWN."""
    if value is UNKNOWN:
        return False
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return all(knows(v, depth - 1) for v in value)
    if depth and isinstance(value, dict):
        return all(knows(v, depth - 1) for v in value.values())
    return True
