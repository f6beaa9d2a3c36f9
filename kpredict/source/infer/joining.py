"""Questions to values: what two have in common, which arrays are inside, whether all is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Cursor,
    Dim,
    Instance,
    Several,
    Value,
)  # fmt: skip


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
        return Several(common(items))
    if isinstance(a, Several):
        return Several(join(a.item, b.item))
    try:
        return a if bool(a == b) else UNKNOWN
    except Exception:
        return UNKNOWN


def common(items: Sequence[Value]) -> Value:
    """What each of several values may be."""
    one = items[0]
    for other in items[1:]:
        one = join(one, other)
    return one


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
    if isinstance(value, Several):
        return arrays_in(value.item, depth - 1)
    if isinstance(value, Cursor):
        return arrays_in(value.items, depth)
    return []


def touches(values: Iterable[Value]) -> bool:
    """Whether a call with these may launch something: an array is inside, in an object even."""
    return any(
        arrays_in(v) or (isinstance(v, Instance) and arrays_in(v.attributes)) for v in values
    )


def knows(value: Value, depth: int = 4) -> bool:
    """Whether nothing inside `value` is UNKNOWN."""
    if value is UNKNOWN:
        return False
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return all(knows(v, depth - 1) for v in value)
    if depth and isinstance(value, dict):
        return all(knows(v, depth - 1) for v in value.values())
    return not isinstance(value, (Several, Cursor))
