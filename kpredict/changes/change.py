"""The noun of this stage: a Change, edits to a file's text that keep what it computes.

In: nothing (standard library only). Offsets are characters of the text, so formatting and comments
of everything that is not edited stay as they are.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a change does."""

    COMPILE = "compile"
    GRAPH_BREAK = "graph-break"
    BY_HAND = "by-hand"
    CAST = "cast"
    OPTIMIZER = "optimizer"
    COPY = "copy"


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters start..end of the text become `text`."""

    start: int
    end: int
    text: str

    def overlaps(self, other: Edit) -> bool:
        """Whether both cannot be made. The same insertion twice is one."""
        if self == other:
            return False
        if self.start == self.end or other.start == other.end:
            return self.start < other.end and other.start < self.end
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that belong together, with a title such as "softmax by hand → F.softmax(x, dim=-1)".

    `first` and `last` are the lines it is about. `note` says what else a person should know: that
    results are the same up to rounding, or that a line is no longer printed. `function` is the
    qualified name of the def it is in. A change with `entry` is about that entry point alone.
    """

    kind: Kind
    title: str
    first: int
    last: int
    edits: tuple[Edit, ...]
    note: str = ""
    function: str = ""
    entry: str = ""

    def conflicts(self, other: Change) -> bool:
        return any(a.overlaps(b) for a in self.edits for b in other.edits)


Alternatives = tuple[Change, ...]
"""Ways to change the same place, the best first; the first that works is taken."""


def apply(text: str, changes: Iterable[Change]) -> str:
    """The text with the edits of all changes made; the changes must not conflict."""
    out: list[str] = []
    at = 0
    for edit in _edits(changes):
        out += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*out, text[at:]])


def moved(line: int, text: str, changes: Iterable[Change]) -> int:
    """Where a line of the text is after the changes; a line that is edited stays where it is."""
    start = _offset(text, line)
    shift = 0
    for edit in _edits(changes):
        if edit.end <= start:
            shift += edit.text.count("\n") - text.count("\n", edit.start, edit.end)
    return line + shift


def diff(text: str, changes: Sequence[Change], file: str) -> str:
    """The changes as a unified diff."""
    before, after = text.splitlines(True), apply(text, changes).splitlines(True)
    lines = difflib.unified_diff(before, after, file, file, n=1)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def compatible(changes: Iterable[Change]) -> list[Change]:
    """The changes in order, those left out that conflict with earlier ones or are part of them."""
    kept: list[Change] = []
    for change in changes:
        made = {edit for k in kept for edit in k.edits}
        if not any(change.conflicts(k) for k in kept) and not made.issuperset(change.edits):
            kept.append(change)
    return kept


def _edits(changes: Iterable[Change]) -> list[Edit]:
    return sorted({edit for change in changes for edit in change.edits})


def _offset(text: str, line: int) -> int:
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
        if at == 0:
            return len(text)
    return at
