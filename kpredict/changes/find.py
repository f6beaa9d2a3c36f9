"""All changes a file offers: in its text alone, or at the places its entries' plans point to."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from kpredict.changes import breaks, by_hand, casts, compiling, copies, loops, optimizers
from kpredict.changes.change import Alternatives, Change, apply
from kpredict.changes.walking import read
from kpredict.model import Entry


@dataclass(frozen=True, slots=True)
class Offers:
    """`edits` change what runs; `whole` compiles an entry point, by its name: that is predicted
    already, as its compiled plan."""

    edits: tuple[Alternatives, ...] = ()
    whole: tuple[tuple[str, Change], ...] = ()


def find(text: str, file: str, entries: Sequence[Entry]) -> Offers:
    """What a file offers to its entries; nothing for text that Python cannot read."""
    try:
        readings = list(read(text, ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return Offers()
    groups: list[Alternatives] = []
    for entry in entries:
        groups += breaks.find(readings, (*entry.graph_breaks, *entry.skipped), file)
    for reading in readings:
        groups += by_hand.find(reading, entries)
        groups += casts.find(reading, entries)
        groups += copies.find(reading, entries)
        groups += loops.find(reading)
    groups += optimizers.find(text, readings)
    for entry in entries:
        groups += compiling.parts(entry, readings)
    whole = [(e.name, compiling.whole(e, readings)) for e in entries]
    checked = [tuple(c for c in g if _is_python(text, c)) for g in groups]
    return Offers(
        tuple(dict.fromkeys(g for g in checked if g)),
        tuple((name, c) for name, c in whole if c is not None),
    )


def _is_python(text: str, change: Change) -> bool:
    """Whether the edited text can still be parsed."""
    try:
        ast.parse(apply(text, [change]))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
