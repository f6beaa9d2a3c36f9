"""Loops that end when the device says so: `while not converged`, rejection sampling.

A pretended GPU answers every read of one place alike, so such a loop would never end. After
`BOUND` reads from the same running frame and instruction the answers change, until the loop ends.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from kpredict.model import KpredictError

BOUND = 16
_OTHERS = (0.0, 1.0, 1e30, -1e30)
_KPREDICT = __name__.rsplit(".", 2)[0]


class LoopGuard:
    """Counts reads by place; holds one frame per place so that a new call starts anew."""

    def __init__(self) -> None:
        self._reads: dict[tuple[CodeType, int], tuple[FrameType, int]] = {}

    def repeats(self) -> int:
        """How often the running frame has read at this very instruction before."""
        frame = _reader()
        if frame is None:
            return 0
        place = (frame.f_code, frame.f_lasti)
        last, n = self._reads.get(place, (None, 0))
        n = n + 1 if last is frame else 0
        self._reads[place] = (frame, n)
        return n

    def value(self, supposed: float, repeats: int) -> float:
        """`supposed` for the first BOUND reads of a loop, then other values until it ends.

        Raises KpredictError when no value ends it.
        """
        if repeats < BOUND:
            return supposed
        others = [v for v in _OTHERS if v != supposed]
        if repeats - BOUND >= len(others) * BOUND:
            frame = _reader()
            line = frame.f_lineno if frame is not None else 0
            raise KpredictError(
                f"The loop that reads the GPU on line {line} does not end for any value supposed.",
                f"State one that ends it: --assume {line}=VALUE.",
            )
        return others[(repeats - BOUND) % len(others)]


def _reader() -> FrameType | None:
    """The innermost frame that is not kpredict's: the one whose loop it is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith((_KPREDICT, "torch._", "torch.utils.", "contextlib")):
            return frame
        frame = frame.f_back
    return None
