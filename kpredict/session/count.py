"""How often each line of one file runs: a line in a loop or a function called many times."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any


class LineCounter:
    """Counts line events of `path`'s code only; other frames are passed by after one look."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._counts: Counter[int] = Counter()

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def per_run(self, runs: int) -> Mapping[int, int]:
        """Counts of one of `runs` equal runs."""
        return {line: max(n // runs, 1) for line, n in sorted(self._counts.items())}

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename == self._path else None

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._counts[frame.f_lineno] += 1
        return self._line
