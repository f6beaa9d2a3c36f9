"""What is asked of the measuring child, and its answer where there is nothing to measure on."""

from __future__ import annotations

from dataclasses import dataclass

from kpredict.request import Request


@dataclass(frozen=True, slots=True)
class MeasureRequest(Request):
    """`seconds` bounds the timing of one entry in one mode; 0 means no timing."""

    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class NoCuda:
    """Why nothing could be measured."""

    reason: str
