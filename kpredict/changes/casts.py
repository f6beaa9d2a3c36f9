"""Casts there and back: an array that is converted and converted straight back to what it was.

Only where the plan shows that the dtype between holds every value of the array's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from kpredict.changes.change import Alternatives, Change, Kind
from kpredict.changes.facts import copies_on
from kpredict.changes.patterns import cast
from kpredict.changes.reading import Reading
from kpredict.changes.terms import Term
from kpredict.changes.writing import Writer, rewrite
from kpredict.model import Entry

SHARED = "same result, in the memory of the array it is made of"
_WIDER = {
    "float16": ("float32", "float64"), "bfloat16": ("float32", "float64"), "float32": ("float64",),
    "int8": ("int16", "int32", "int64"), "int16": ("int32", "int64"), "int32": ("int64",),
    "uint8": ("int16", "int32", "int64"),
}  # fmt: skip


def find(reading: Reading, entries: Sequence[Entry]) -> Iterator[Alternatives]:
    if reading.writes_in_place():
        return  # what shares memory afterwards did not before
    for site in reading.sites:
        outer = cast(site.term)
        inner = cast(outer[0]) if outer is not None else None
        if outer is None or inner is None:
            continue
        source: Term = inner[0]
        made = rewrite(site, partial(_said, source))
        if made is None:
            continue
        edits, text = made
        lines = [reading.text.count("\n", 0, e.start) + 1 for e in edits]
        first, last = min(lines), max(site.node.end_lineno or 0, *lines)
        if _are_there_and_back(copies_on(entries, first, last)):
            yield (
                Change(
                    Kind.CAST, f"cast there and back → {text}", first, last, edits, SHARED,
                    reading.name,
                ),
            )  # fmt: skip


def _said(term: Term, writer: Writer) -> str:
    return writer.say(term)


def _are_there_and_back(copies: Sequence[tuple[str, str]]) -> bool:
    """Whether casts go from one dtype to a wider one and back, and no others do."""
    kinds = {(a, b) for a, b in copies if a != b}
    if len(kinds) != 2:
        return False
    (a, b), (c, d) = kinds
    return a == d and b == c and (b in _WIDER.get(a, ()) or a in _WIDER.get(b, ()))
