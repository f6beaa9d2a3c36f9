"""Copies by `.contiguous()` that what follows may do without: the copy is left out.

Offered where the plan shows that a copy is made. Where a later `view` needs the copy the changed
program fails and the change is no more spoken of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from kpredict.changes.casts import SHARED
from kpredict.changes.change import Alternatives, Change, Edit, Kind
from kpredict.changes.facts import copies_on
from kpredict.changes.reading import Reading
from kpredict.model import Entry


def find(reading: Reading, entries: Sequence[Entry]) -> Iterator[Alternatives]:
    if reading.writes_in_place():
        return  # what shares memory afterwards did not before
    for node in reading.terms:
        match node:
            case ast.Call(func=ast.Attribute(value=array, attr="contiguous"), args=[], keywords=[]):
                line = node.end_lineno or node.lineno
                if not any(a == b for a, b in copies_on(entries, node.lineno, line)):
                    continue
                start, end = reading.span(array)[1], reading.span(node)[1]
                what = "expanded" if _is_expanded(array) else "strided"
                yield (
                    Change(
                        Kind.COPY, f"no .contiguous() of {what} {_short(array)}", line, line,
                        (Edit(start, end, ""),), SHARED, reading.name,
                    ),
                )  # fmt: skip


def _is_expanded(node: ast.expr) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("expand", "expand_as", "broadcast_to")
        for n in ast.walk(node)
    )


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:39]}…"
