"""The table op → function that says what it returns.

A function takes the op's arguments by schema name and returns an Array, a tuple or a list of them.
It raises Unclear where the source leaves open what it needs; the results are then unknown too.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, TypeVar

from kpredict.model import row_major
from kpredict.source.infer.values import UNKNOWN, Array, Dim, Value

Arguments = Mapping[str, Value]
ShapeFunction = Callable[[Arguments], Any]
F = TypeVar("F", bound=ShapeFunction)

_functions: dict[str, ShapeFunction] = {}
_storages = count(1)


class Unclear(Exception):
    """Not enough is known to say more."""


def shape(*names: str) -> Callable[[F], F]:
    """Register the decorated function for `aten.<name>`, its in-place form included."""

    def register(function: F) -> F:
        for name in names:
            if name in _functions:
                raise ValueError(f"two functions tell what {name} returns")
            _functions[name] = function
        return function

    return register


@cache
def _loaded() -> Mapping[str, ShapeFunction]:
    package = importlib.import_module("kpredict.source.infer.shapes")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _functions


def shape_function(name: str) -> ShapeFunction | None:
    return _loaded().get(name)


def fresh(
    shape: Sequence[Dim] | None,
    dtype: str | None,
    device: str,
    stride: tuple[int, ...] | None = None,
) -> Array:
    """A new array with memory of its own, row-major unless `stride` says otherwise."""
    sizes = None if shape is None else tuple(shape)
    if sizes is not None and any(d is not None and d < 0 for d in sizes):
        raise Unclear
    if stride is None and sizes is not None and None not in sizes:
        stride = row_major(sizes)  # type: ignore[arg-type]
    return Array(sizes, dtype, device, next(_storages), stride)


def device_of(arrays: Iterable[Array]) -> str:
    """The GPU if any of them lives there."""
    return "cuda" if any(a.device == "cuda" for a in arrays) else "cpu"


def like(
    a: Array, shape: Sequence[Dim] | None, dtype: str | None = None, *, device: str = ""
) -> Array:
    """A new row-major array with the dtype and device of `a`."""
    return fresh(shape, dtype or a.dtype, device or a.device)


def rank(a: Array) -> int:
    if a.shape is None:
        raise Unclear
    return len(a.shape)


def sizes(a: Array) -> tuple[int, ...]:
    found = a.sizes
    if found is None:
        raise Unclear
    return found


def dims(a: Array) -> tuple[Dim, ...]:
    if a.shape is None:
        raise Unclear
    return a.shape


def known(value: Value) -> Any:
    """The value, if the source tells it."""
    if value is UNKNOWN:
        raise Unclear
    return value


def at(dim: Value, ndim: int) -> int:
    """A dimension counted from the front."""
    d = known(dim)
    if not isinstance(d, int) or not -max(ndim, 1) <= d < max(ndim, 1):
        raise Unclear
    return d % max(ndim, 1)


def size_list(value: Value) -> list[Dim]:
    """A list of sizes, None for those that are unknown."""
    if value is UNKNOWN:
        raise Unclear
    if isinstance(value, int):
        return [value]
    return [v if isinstance(v, int) else None for v in value]
