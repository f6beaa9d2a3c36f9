"""How text looks: colour, signs, width. Pure but for `style_for`, which asks the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from kpredict.model import Mode

TITLES = {Mode.EAGER: "eager", Mode.COMPILED: "compiled", Mode.AS_WRITTEN: "as written"}
BOLD, DIM, YELLOW, CYAN = "1", "2", "33", "36"
_UNICODE = {
    "bar": "│", "gap": "⋮", "trip": "↺", "sync": "‼", "break": "✂", "unknown": "?", "more": "…",
    "added": "▲",
}  # fmt: skip
_ASCII = {
    "bar": "|", "gap": ":", "trip": "@", "sync": "!", "break": "/", "unknown": "?", "more": "...",
    "added": "^",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How to render: `width` None never cuts a line (pipes, files)."""

    color: bool = False
    verbose: int = 0
    quiet: bool = False
    width: int | None = None
    unicode: bool = True

    def sign(self, name: str) -> str:
        """A mark by its name: a symbol, or what ASCII has for it."""
        return (_UNICODE if self.unicode else _ASCII)[name]

    def paint(self, text: str, code: str) -> str:
        """The text in a colour, where colours are wanted."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text.strip() else text

    def cut(self, text: str, width: int | None = None) -> str:
        """The text, on a terminal no wider than `width` (None: the terminal)."""
        width = self.width if width is None else width
        if width is None or self.width is None or len(text) <= width:
            return text
        return text[: max(width - 1, 1)] + self.sign("more")[0]


def style_for(
    stream: TextIO, *, color: bool, verbose: int = 0, quiet: bool = False, to_file: bool = False
) -> Style:
    """The Style for a stream: cut to a terminal's width, ASCII where UTF-8 cannot be written."""
    encoding = "utf-8" if to_file else (stream.encoding or "ascii")
    width = None if to_file or not stream.isatty() else shutil.get_terminal_size().columns
    return Style(color, verbose, quiet, width, "utf" in encoding.lower())


def aligned(table: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    """Rows in columns, the first one as a title."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for at, row in enumerate(table):
        cells = [f"{c:<{w}}" for c, w in zip(row, widths, strict=True)]
        line = ("  " + "  ".join(cells)).rstrip()
        yield style.paint(line, BOLD) if at == 0 else line
