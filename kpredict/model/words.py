"""What everything is told in: kinds, modes, phases, counts, and the error a user can mend."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class KpredictError(Exception):
    """Something the user can mend: one sentence what is wrong, one what to do. Exit code 2."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class Kind(StrEnum):
    """What the device is told to do by one launch."""

    KERNEL = "kernel"
    LIBRARY = "library"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    SYNC = "sync"


class Basis(StrEnum):
    """Why we believe a count."""

    HOST_CODE = "host-code"  # follows from PyTorch's own launch code
    MEASURED = "measured"  # seen by a profiler
    LIBRARY = "library"  # heuristics of a closed library
    ASSUMED = "assumed"  # only an op's tag says so
    UNKNOWN = "unknown"


class Mode(StrEnum):
    EAGER = "eager"
    COMPILED = "compiled"
    AS_WRITTEN = "as_written"


class Phase(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class Count:
    """A number of launches: the closed interval lo..hi, exact when equal. Intervals add."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if not 0 <= self.lo <= self.hi:
            raise ValueError(f"not an interval of counts: {self.lo}..{self.hi}")

    @classmethod
    def exactly(cls, n: int) -> Count:
        return cls(n, n)

    @property
    def exact(self) -> bool:
        return self.lo == self.hi

    def __add__(self, other: Count) -> Count:
        return Count(self.lo + other.lo, self.hi + other.hi)

    def __contains__(self, n: int) -> bool:
        return self.lo <= n <= self.hi

    def __str__(self) -> str:
        return str(self.lo) if self.exact else f"{self.lo}..{self.hi}"


ZERO = Count(0, 0)
ONE = Count(1, 1)
