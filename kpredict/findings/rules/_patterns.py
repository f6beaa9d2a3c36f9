"""What several rules ask of steps: chains of pointwise ops, what made an array, by hand or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpredict.source.infer.trace import Fork, Item, Place, Repeat, Step
from kpredict.source.infer.values import UNKNOWN, Array

_ALSO = frozenset("hardswish where masked_fill floor_divide dropout native_dropout".split())


def is_pointwise(step: Step) -> bool:
    """One pass over its elements on the GPU, that a compiler would merge with its neighbours."""
    if not any(a.device == "cuda" for a in (*step.arrays, *step.results)):
        return False
    if step.short == "_to_copy":
        return step.args.get("device") is None and all(a.device == "cuda" for a in step.arrays)
    return "pointwise" in step.tags or step.short in _ALSO


def sequences(items: Iterable[Item]) -> Iterable[list[Item]]:
    """The straight runs of a trace: what surely happens one after the other."""
    run: list[Item] = []
    for item in items:
        if isinstance(item, (Fork, Repeat)):
            if run:
                yield run
            run = []
            for inner in item.branches if isinstance(item, Fork) else (item.body,):
                yield from sequences(inner)
        else:
            run.append(item)
    if run:
        yield run


def chains(run: Sequence[Item]) -> Iterable[list[Step]]:
    """Maximal groups of pointwise steps joined by data, that one kernel could compute.

    Every array has a level: how many other kernels lie on the longest way to it. Only steps of one
    level can be one kernel: a step that also reads what a matrix product made of the chain's own
    result comes after it.
    """
    level: dict[int, int] = {}
    group_of: dict[int, list[Step]] = {}
    groups: list[list[Step]] = []
    for item in run:
        if not isinstance(item, Step) or "view" in item.tags:
            continue
        here = max((level.get(a.storage, 0) for a in item.arrays), default=0)
        if not is_pointwise(item):
            for a in item.results:
                level[a.storage] = here + 1
                group_of.pop(a.storage, None)
            continue
        if any(item.args.get(k) is UNKNOWN for k in ("self", "other")):
            here += 1  # what is unknown may have been made of anything before it
        merged: list[Step] = []
        for a in item.arrays:
            g = group_of.get(a.storage)
            if g is None or level.get(a.storage, 0) != here or g is merged:
                continue
            if g in groups:
                groups.remove(g)
            merged = [*merged, *(s for s in g if all(s is not m for m in merged))]
        merged = [*merged, item]
        groups.append(merged)
        for s in merged:
            for a in s.results:
                if group_of.get(a.storage) is not None or s is item:
                    group_of[a.storage] = merged
        for a in item.results:
            level[a.storage] = here
            group_of[a.storage] = merged
    return groups


def made_by(a: object, by: dict[int, Step]) -> Step | None:
    """The step whose result `a` is (or a view of it)."""
    return by.get(a.storage) if isinstance(a, Array) else None


def binary(step: Step) -> tuple[object, object]:
    return step.args.get("self"), step.args.get("other")


def is_value(x: object, *wanted: float) -> bool:
    """Whether a number is one of those given, nearly."""
    return isinstance(x, (int, float)) and any(abs(x - w) < 1e-3 * max(abs(w), 1) for w in wanted)


def same(a: object, b: object) -> bool:
    """Whether two arrays are the same memory."""
    return isinstance(a, Array) and isinstance(b, Array) and a.storage == b.storage


def span(steps: Sequence[Step]) -> tuple[Place, int]:
    """The first place of some steps, and their last line."""
    first = min(steps, key=lambda s: (s.place.line, s.place.column)).place
    return first, max(s.place.line for s in steps)


def lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"
