"""What a matcher of a pattern gives: what it found, and how to say it with PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kpredict.changes.writing import Writer

ROUNDING = "same result up to rounding"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """`rank` 0 is preferred; higher ones are for when that does not work.

    It holds only where the op `matrix`, if it names one, is seen to get matrices, and, if `even`,
    where no product is seen to mix dtypes.
    """

    what: str
    say: Callable[[Writer], str]
    note: str = ROUNDING
    rank: int = 0
    matrix: str = ""
    even: bool = False
