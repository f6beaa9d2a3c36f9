"""What a command says on stderr while files are analysed one after the other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kpredict.request import Request

if TYPE_CHECKING:
    from kpredict.session.messages import Answer


class Progress:
    """What is under way, on a line of the terminal that the next one writes over; with -v what the
    user's code printed."""

    def __init__(self, asked: Sequence[Request], verbose: bool) -> None:
        self._files = [request.file for request in asked]
        self._verbose = verbose
        self._on_terminal = sys.stderr.isatty()
        self._changed = False  # of changed programs nothing is repeated

    def begun(self, request: Request) -> None:
        self._changed = request.text is not None
        if self._on_terminal:
            at, of = self._files.index(request.file) + 1, len(self._files)
            several = f" ({at} of {of})" if of > 1 else ""
            for_what = f" for {request.target}" if request.target else ""
            for_what += ", changed" if self._changed else ""
            sizes = "".join(f", {name}={size:,}" for name, size in request.dims.items())
            sys.stderr.write(f"\r\x1b[Kanalysing {request.file}{several}{for_what}{sizes}")
            sys.stderr.flush()

    def heard(self, answer: Answer) -> None:
        if self._on_terminal:
            sys.stderr.write("\r\x1b[K")
        if not self._verbose or self._changed:
            return
        sys.stderr.write(answer.output)
        if answer.recalled:
            sys.stderr.write("kpredict: nothing has changed: the answer of an earlier run\n")
