"""Which dtype an op computes in: torch's type promotion, on metadata.

In: operands (Tensors and Python numbers). Out: a dtype name. Follows c10/core/ScalarType.h
(promoteTypes) and ATen/native/TypeProperties.cpp (result_type: tensors with dims, then 0-dim
tensors, then numbers; a later group matters only when its category is higher).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from kpredict.model import Tensor

DEFAULT_FLOAT = "float32"

_INTEGRAL = ("uint8", "int8", "int16", "int32", "int64")
_UNSIGNED = ("uint16", "uint32", "uint64")
_FLOATING = ("float16", "bfloat16", "float32", "float64")
_COMPLEX_OF = {
    "float16": "complex32", "bfloat16": "complex64", "float32": "complex64",
    "float64": "complex128",
}  # fmt: skip
_PART_OF = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def category(dtype: str) -> int:
    """0 bool, 1 integral, 2 floating, 3 complex."""
    if dtype == "bool":
        return 0
    if dtype.startswith("complex"):
        return 3
    return 2 if dtype.startswith(("float", "bfloat")) else 1


@cache
def promote(a: str, b: str) -> str:
    """The smallest dtype both fit in, as `torch.promote_types` says."""
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    if category(low) < category(high):
        if category(high) == 3 and category(low) == 2:
            part = promote(_PART_OF[high], low)
            return _COMPLEX_OF.get(part, high)
        return high
    if category(a) == 1:
        return _promote_integers(a, b)
    if category(a) == 2:
        if {a, b} == {"float16", "bfloat16"}:
            return "float32"
        known = [t for t in (a, b) if t in _FLOATING]
        if len(known) < 2:  # float8 types promote to nothing; the other one is kept
            return known[0] if known else a
    elif {a, b} <= set(_PART_OF):
        return _COMPLEX_OF[promote(_PART_OF[a], _PART_OF[b])]
    return max(a, b, key=_FLOATING.index)


def _promote_integers(a: str, b: str) -> str:
    if a in _UNSIGNED or b in _UNSIGNED:
        return a if a in _UNSIGNED else b
    if "uint8" in (a, b):
        other = b if a == "uint8" else a
        return "int16" if other == "int8" else other
    return max(a, b, key=_INTEGRAL.index)


def result_type(operands: Iterable[object]) -> str:
    """The dtype a binary or ternary op of these operands computes in."""
    dims = zeros = numbers = None
    for x in operands:
        if isinstance(x, Tensor):
            if x.ndim:
                dims = x.dtype if dims is None else promote(dims, x.dtype)
            else:
                zeros = x.dtype if zeros is None else promote(zeros, x.dtype)
        elif isinstance(x, (bool, int, float, complex)):
            found = _of_number(x)
            numbers = found if numbers is None else promote(numbers, found)
    return _combined(dims, _combined(zeros, numbers)) or DEFAULT_FLOAT


def _combined(higher: str | None, lower: str | None) -> str | None:
    """What two groups of operands give: the lower one matters only in a higher category."""
    if higher is None or lower is None:
        return higher or lower
    if category(higher) == 3 or (category(lower) < 2 and higher != "bool"):
        return higher
    if category(higher) == 2:
        return _COMPLEX_OF.get(higher, lower) if category(lower) == 3 else higher
    return promote(higher, lower)


def _of_number(x: complex) -> str:
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, int):
        return "int64"
    return DEFAULT_FLOAT if isinstance(x, float) else _COMPLEX_OF[DEFAULT_FLOAT]


def to_float(dtype: str) -> str:
    """Integers and bools compute in the default float type where an op promotes them."""
    return DEFAULT_FLOAT if category(dtype) < 2 else dtype


def real_part(dtype: str) -> str:
    """The dtype of a complex dtype's parts; others unchanged."""
    return _PART_OF.get(dtype, dtype)
