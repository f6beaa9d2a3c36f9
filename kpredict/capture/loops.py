"""Loops that end when the device says so: `while not converged`, rejection sampling.

A pretended GPU answers every read of one place alike, so such a loop would never end. After
`BOUND` reads from one `while` loop of one running frame the answers change, until the loop ends. A
`for` loop ends by itself: its reads are all answered alike.
"""

from __future__ import annotations

import dis
import sys
from functools import cache
from types import CodeType, FrameType

BOUND = 16
_OTHERS = (0.0, 1.0, 1e30, -1e30)
_KPREDICT = __name__.rsplit(".", 2)[0]


class LoopGuard:
    """Counts reads by place; holds one frame per place so that a new call starts anew."""

    def __init__(self) -> None:
        self._reads: dict[tuple[CodeType, int], tuple[FrameType, int]] = {}

    def repeats(self) -> int:
        """How often the `while` loop that is running has read at this very instruction before."""
        frame = _reader()
        if frame is None or not _is_in_while(frame.f_code, frame.f_lasti):
            return 0
        place = (frame.f_code, frame.f_lasti)
        last, n = self._reads.get(place, (None, 0))
        n = n + 1 if last is frame else 0
        self._reads[place] = (frame, n)
        return n


def other_value(supposed: float, repeats: int) -> float:
    """What to answer instead of `supposed` when a loop has read `repeats` >= BOUND times."""
    others = [v for v in _OTHERS if v != supposed]
    return others[(repeats - BOUND) % len(others)]


@cache
def _is_in_while(code: CodeType, at: int) -> bool:
    """Is the innermost loop around instruction `at` one that no iterator bounds?"""
    instructions = list(dis.get_instructions(code))
    heads: dict[int, str] = {}
    for before, i in zip([None, *instructions], instructions, strict=False):
        heads[i.offset] = i.opname
        if before is not None and before.opname == "EXTENDED_ARG":  # a long jump lands before it
            heads[before.offset] = i.opname
    loops = [
        (i.offset - i.argval, heads.get(i.argval, ""))
        for i in instructions
        if "JUMP" in i.opname and isinstance(i.argval, int) and i.argval <= at <= i.offset
    ]
    return bool(loops) and min(loops)[1] != "FOR_ITER"


def _reader() -> FrameType | None:
    """The innermost frame that is not kpredict's: the one whose loop it is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith((_KPREDICT, "torch._", "torch.utils.", "contextlib")):
            return frame
        frame = frame.f_back
    return None
