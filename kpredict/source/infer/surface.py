"""Which ATen op a Python call means: the checked-in schemas, and how arguments are matched to them.

`surface.json` is written by tools/generate_surface.py from torch's own tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kpredict.source.infer.values import UNKNOWN, Array, Device, DType, Layout, Value


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str  # as in the schema, without alias marks and "?"
    optional: bool
    default: Any
    required: bool
    keyword: bool
    written: bool

    @property
    def is_list(self) -> bool:
        return "[" in self.type


@dataclass(frozen=True, slots=True)
class Schema:
    """One overload of one op."""

    name: str  # aten.add.Tensor
    parameters: tuple[Parameter, ...]
    returns: int
    returns_list: bool
    tags: frozenset[str]
    composite: bool


@cache
def _data() -> dict[str, Any]:
    text = files("kpredict.source.infer").joinpath("surface.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def dtypes() -> Mapping[str, str]:
    """`long` → `int64`, `float32` → `float32`, …"""
    found: Mapping[str, str] = _data()["dtypes"]
    return found


@cache
def python_names() -> frozenset[str]:
    """`torch.add`, `Tensor.add_`, `F.relu`, …: what torch says its Python functions are."""
    return frozenset(_data()["names"])


@cache
def packet(name: str) -> tuple[Schema, ...]:
    """The overloads of `aten.<name>`; empty when there are none."""
    rows = sorted(_data()["ops"].get(name, ()), key=lambda row: row[0] != "default")
    return tuple(_schema(name, *row) for row in rows)


def dispatched(name: str) -> bool:
    """Whether `aten.<name>` exists and is dispatched itself, not opened into others."""
    found = packet(name)
    return bool(found) and not all(s.composite for s in found)


def _schema(name: str, overload: str, text: str, flags: str) -> Schema:
    arguments, _, returns = text[1:].rpartition(") -> ")
    if not returns:  # "(…) -> ()" keeps its brackets
        arguments, _, returns = text[1:].partition(") -> ")
    if returns.startswith("(") or " -> (" in text:
        arguments, _, inner = text[1:].rpartition(") -> (")
        returns = inner.rstrip(")")
        number = len([r for r in returns.split(",") if r.strip()])
    else:
        number = 1
    tags = frozenset(
        t for f, t in (("p", "pointwise"), ("r", "reduction"), ("v", "view")) if f in flags
    )
    return Schema(
        f"aten.{name}.{overload}", tuple(_parameters(arguments)), number, "[]" in returns,
        tags, "c" in flags,
    )  # fmt: skip


def _parameters(text: str) -> Iterable[Parameter]:
    keyword = False
    for part in _split(text):
        if part == "*":
            keyword = True
            continue
        declaration, eq, default = part.partition("=")
        kind, _, name = declaration.rpartition(" ")
        written = "!" in kind
        kind = re.sub(r"\([a-z!*]*( -> \*)?\)", "", kind)
        yield Parameter(
            name, kind.removesuffix("?"), kind.endswith("?"),
            _default(default, kind) if eq else None, not eq, keyword, written,
        )  # fmt: skip


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _default(text: str, kind: str) -> Any:
    constants = {"None": None, "True": True, "False": False, "contiguous_format": None}
    if text in constants:
        return constants[text]
    if text.startswith("["):
        return tuple(int(x) for x in text.strip("[]").split(",") if x.strip())
    if text.startswith('"'):
        return text.strip('"')
    if kind.startswith("MemoryFormat"):
        return None
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text


def _fits(value: Value, p: Parameter, numbers: bool) -> bool:
    if value is UNKNOWN:
        return True
    if value is None:
        return p.optional or p.type == "MemoryFormat"
    kind = p.type
    if kind == "Tensor":
        return isinstance(value, Array) or (
            numbers and p.name == "other" and isinstance(value, (int, float, complex))
        )
    if kind.startswith("Tensor"):
        return isinstance(value, (list, tuple)) and all(
            v is UNKNOWN or v is None or isinstance(v, Array) for v in value
        )
    if p.is_list:
        if isinstance(value, (list, tuple)):
            return all(v is UNKNOWN or (isinstance(v, (int, float)) and not isinstance(v, Array))
                       for v in value)  # fmt: skip
        return isinstance(value, int) and not kind.endswith("[]")
    if kind in ("int", "SymInt"):
        return isinstance(value, int) and not (isinstance(value, bool) and kind != "int")
    if kind in ("float", "Scalar"):
        return isinstance(value, (int, float, complex)) or (
            isinstance(value, Array) and value.shape == ()
        )
    return {
        "bool": lambda v: isinstance(v, bool),
        "str": lambda v: isinstance(v, str),
        "ScalarType": lambda v: isinstance(v, DType),
        "Device": lambda v: isinstance(v, (Device, str)),
        "Layout": lambda v: isinstance(v, Layout),
        "MemoryFormat": lambda v: isinstance(v, Layout),
    }.get(kind, lambda v: not isinstance(v, Array))(value)


_TAKES_NUMBERS = {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide",
                  "floor_divide"}  # fmt: skip
"""Ops for whose `other` Python's argument parser makes a tensor of a number."""

_RENAMED = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x1": "self", "x2": "other"}


def bind(
    schema: Schema, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> dict[str, Value] | None:
    """Arguments by schema name with defaults filled in, or None when they do not fit."""
    bound: dict[str, Value] = {}
    numbers = schema.name.split(".")[1].rstrip("_") in _TAKES_NUMBERS
    positional = [p for p in schema.parameters if not p.keyword]
    args = list(args)
    # the last list parameter may be given as separate numbers: x.view(2, 3)
    lists = [i for i, p in enumerate(positional) if p.is_list]
    if lists and lists[0] < len(args) and lists[0] == len(positional) - 1:
        rest = args[lists[0] :]
        if all(isinstance(v, int) or v is UNKNOWN for v in rest) and (
            len(rest) > 1 or rest[0] is not UNKNOWN
        ):
            args = [*args[: lists[0]], tuple(rest)]
    if len(args) > len(positional):
        return None
    for p, value in zip(positional, args, strict=False):
        bound[p.name] = value
    names = {p.name for p in schema.parameters}
    for key, value in kwargs.items():
        name = key if key in names else _RENAMED.get(key, key)
        if name not in names or name in bound:
            if key in ("requires_grad", "pin_memory", "generator"):
                continue
            return None
        bound[name] = value
    for p in schema.parameters:
        if p.name not in bound:
            if p.required and not p.optional:
                return None
            bound[p.name] = p.default
        elif not _fits(bound[p.name], p, numbers):
            return None
        else:
            bound[p.name] = _normal(bound[p.name], p)
    return bound


def _normal(value: Value, p: Parameter) -> Value:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Device):
        return value.type
    if isinstance(value, Layout):
        return value.name
    if p.is_list and isinstance(value, int):
        width = re.search(r"\[(\d+)\]", p.type)
        return (value,) * (int(width.group(1)) if width and width.group(1) != "1" else 1)
    if isinstance(value, list):
        return tuple(value)
    if p.type == "Device" and isinstance(value, str):
        return value.split(":")[0]
    return value


def choose(
    name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[Schema, dict[str, Value]] | None:
    """The overload of `aten.<name>` that a call means, with its arguments bound."""
    wants_out = "out" in kwargs
    for schema in packet(name):
        if any(p.written and p.keyword for p in schema.parameters) != wants_out:
            continue
        bound = bind(schema, args, kwargs)
        if bound is not None:
            return schema, bound
    return None
