"""A finding: one place in the user's code that costs something, with its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Confidence(StrEnum):
    """How sure: the source says so; it very likely is so; it may be so."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`path:line:col: KPnnn name: message`. Line and column are 1-based.

    `function` is the qualified name it is in; together with path and code it is the key of a
    baseline. `before` and `after` are kernels, `bytes` what goes through GPU memory in vain.
    `cell` is the notebook cell (1-based) that line and column count in.
    """

    path: str
    line: int
    column: int
    code: str
    name: str
    message: str = field(compare=False)
    function: str = field(default="", compare=False)
    confidence: Confidence = field(default=Confidence.CERTAIN, compare=False)
    before: int | None = field(default=None, compare=False)
    after: int | None = field(default=None, compare=False)
    bytes: int | None = field(default=None, compare=False)
    end_line: int | None = field(default=None, compare=False)
    cell: int | None = field(default=None, compare=False)

    @property
    def weight(self) -> tuple[int, int]:
        """How bad: kernels saved, then bytes."""
        return ((self.before or 0) - (self.after or 0), self.bytes or 0)

    @property
    def key(self) -> tuple[str, str, str]:
        """What a baseline knows it by: never a line."""
        return self.path, self.function, self.code

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}:{self.column}"
        if self.cell is not None:
            where = f"{self.path}:cell {self.cell}:{self.line}:{self.column}"
        unsure = "" if self.confidence is Confidence.CERTAIN else f" [{self.confidence}]"
        return f"{where}: {self.code} {self.name}: {self.message}{unsure}"
