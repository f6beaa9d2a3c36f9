"""Rules that a user writes as rows: `[[tool.kpredict.rule]]` → rules of the registry.

    [[tool.kpredict.rule]]
    op = "mylib.rotary.default"        # or aten.mm.default, or a packet: aten.mm
    launches = ["rotary_kernel"]       # in order
    arrays = ["float16[8,128,64]"]     # optional: only where our own rule's launches read these
    because = "one fused kernel"       # optional

A launch is a kernel's name, "library" (one kernel), "library 2", "library 1..3", "memcpy DtoD" (or
HtoD, DtoH), "memset" or "sync". `kpredict calibrate` writes such rows from a measurement. Several
rows for one op are tried in order; where none fits, our own rule decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from kpredict.eager.launches import accesses
from kpredict.eager.registry import own_rule, user_rule
from kpredict.model import Basis, Count, Kind, KpredictError, Launch, Op, Target, Tensor

_KEYS = ("op", "launches", "arrays", "because")
_LIBRARY = re.compile(r"library(?: (\d+)(?:\.\.(\d+))?)?")
_MEMCPY = re.compile(r"memcpy (HtoD|DtoH|DtoD)")


@dataclass(frozen=True, slots=True)
class UserRow:
    """One row. `arrays` None means every call of the op."""

    op: str
    launches: tuple[str, ...]
    arrays: tuple[str, ...] | None = None
    because: str = ""


def parse_rows(
    raw: Iterable[Mapping[str, Any]], where: str = "[[tool.kpredict.rule]]"
) -> list[UserRow]:
    """Rows of a TOML file. Raises KpredictError that names the row and the fault."""
    return [_parse(row, f"{where} {i}") for i, row in enumerate(raw, 1)]


def _parse(raw: Mapping[str, Any], where: str) -> UserRow:
    for key in raw:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Keys: {', '.join(_KEYS)}."
            raise KpredictError(f"{where} has an unknown key {key!r}.", hint)
    op, launches = raw.get("op"), _texts(raw.get("launches"))
    arrays = _texts(raw["arrays"]) if "arrays" in raw else None
    if not isinstance(op, str) or not re.fullmatch(r"[\w.:]+", op):
        raise KpredictError(f"{where} needs op, the name of an ATen or custom op.")
    if launches is None or ("arrays" in raw and arrays is None):
        raise KpredictError(f"{where} ({op}): launches and arrays are lists of texts.")
    for text in launches:
        _launch(text)
    return UserRow(op.replace("::", "."), launches, arrays, str(raw.get("because", "")))


def _texts(value: Any) -> tuple[str, ...] | None:
    """A list of texts as a tuple; None for anything else."""
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        return None
    return tuple(value)


def register(rows: Sequence[UserRow], origin: str = "user") -> None:
    """Make the rows rules; they go before ours. Raises KpredictError for an op twice over."""
    by_op: dict[str, list[UserRow]] = {}
    for row in rows:
        by_op.setdefault(row.op, []).append(row)
    for op, found in by_op.items():
        user_rule(op, _Rows(tuple(found)), origin)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rule function of one op's rows."""

    rows: tuple[UserRow, ...]

    def __call__(self, op: Op, target: Target) -> Iterator[Launch]:
        ours = own_rule(op)
        own = list(ours.function(op, target)) if ours is not None else []
        arrays = arrays_read(own) if own else tuple(str(t) for t in op.inputs)
        row = next((r for r in self.rows if r.arrays is None or r.arrays == arrays), None)
        if row is None:
            yield from own
            return
        stated = [_launch(text) for text in row.launches]
        like = own if len(own) == len(stated) else [*own[:1]]
        if ours is None and len(stated) == 1:  # one kernel does all of it
            results = accesses(t for t in op.outputs if isinstance(t, Tensor))
            like = [replace(stated[0], reads=accesses(op.inputs), writes=results)]
        for i, launch in enumerate(stated):
            arrays_of = like[i] if i < len(like) else None
            yield replace(
                launch,
                reads=arrays_of.reads if arrays_of else (),
                writes=arrays_of.writes if arrays_of else (),
                because=row.because or "a rule of the user's",
            )


def arrays_read(launches: Iterable[Launch]) -> tuple[str, ...]:
    """What a row's `arrays` is held against: every array read, in launch order."""
    return tuple(describe(a.tensor) for launch in launches for a in launch.reads)


def describe(tensor: Tensor) -> str:
    """`float32[64,128]`, with strides where it is not row-major: `float32[64,128](1,64)`."""
    stride = "" if tensor.is_contiguous else f"({','.join(map(str, tensor.stride))})"
    return f"{tensor}{stride}"


def _launch(text: str) -> Launch:
    """One launch as a row writes it."""
    if match := _LIBRARY.fullmatch(text):
        lo = int(match[1] or 1)
        count = Count(lo, max(int(match[2] or lo), lo))
        return Launch(Kind.LIBRARY, "library", count, basis=Basis.ASSUMED, expected=lo)
    if match := _MEMCPY.fullmatch(text):
        return Launch(Kind.MEMCPY, f"Memcpy {match[1]}", basis=Basis.ASSUMED)
    if text == "memset":
        return Launch(Kind.MEMSET, "Memset", basis=Basis.ASSUMED)
    if text == "sync":
        return Launch(Kind.SYNC, "synchronize", basis=Basis.ASSUMED)
    if not re.fullmatch(r"[\w:<>.]+", text):
        raise KpredictError(
            f"{text!r} is no launch.",
            "Write a kernel's name, library 2, library 1..3, memcpy DtoD, memset or sync.",
        )
    return Launch(Kind.KERNEL, text, basis=Basis.ASSUMED)
