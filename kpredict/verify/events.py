"""Chrome trace file → events, one at a time: memory does not grow with the file.

In: a path to JSON or gzipped JSON, `{"traceEvents": [...], …}` or a bare list of events.
Out: event dicts in file order, and the other top-level values (device properties, versions).
Errors: KpredictError for a file that is empty, cut short, damaged, or not a trace.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from json import JSONDecodeError
from pathlib import Path
from typing import IO, Any, cast

from kpredict.model import KpredictError

CHUNK = 1 << 20
_LONGEST_VALUE = 64 << 20  # no event or header value is longer; what is, is damaged or no trace
_NOT_SPACE = re.compile(r"[^ \t\n\r]")
_NUMBER_GOES_ON = re.compile(r"[\d.eE+-]*\Z")  # up to the buffer's end, perhaps beyond it
_AGAIN = "Record the trace again, or copy the whole file."
_WANTED = "kpredict reads what torch.profiler writes with export_chrome_trace()."


class EventFile:
    """Iterate once over the events; `header` then holds every other top-level value.

    Events are decoded by the standard library's scanner from a buffer of about one chunk. The
    decoder accepts NaN, and control characters inside strings, since profilers write both.
    """

    def __init__(self, path: str | Path, chunk: int = CHUNK) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.count = 0
        self._chunk = chunk
        self._scan = json.JSONDecoder(strict=False).raw_decode
        self._buffer = ""
        self._at = 0  # where in the buffer the next token starts
        self._passed = 0  # characters dropped in front of the buffer
        self._ended = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with _opened(self.path) as self._file:
            first = self._peek()
            if first == "":
                raise KpredictError(f"{self.path} is empty.", _WANTED)
            if first == "[":
                yield from self._array()
            elif first == "{":
                yield from self._object()
            else:
                raise KpredictError(f"{self.path} is not JSON.", _WANTED)
            if self._peek() != "":
                raise self._damaged("more text after the end")

    def _object(self) -> Iterator[dict[str, Any]]:
        self._expect("{")
        found = False
        if self._peek() == "}":
            self._at += 1
        else:
            while True:
                key = self._value()
                if not isinstance(key, str):
                    raise self._damaged("a key is not a string")
                self._expect(":")
                if key == "traceEvents" and self._peek() == "[":
                    found = True
                    yield from self._array()
                else:
                    self.header[key] = self._value()
                if self._expect(",", "}") == "}":
                    break
        if not found:
            raise KpredictError(f"{self.path} is JSON but has no list of trace events.", _WANTED)

    def _array(self) -> Iterator[dict[str, Any]]:
        self._expect("[")
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            event = self._value()
            if isinstance(event, dict):
                self.count += 1
                yield event
            elif event is not None:
                raise KpredictError(
                    f"{self.path} is JSON, but its list does not hold trace events.", _WANTED
                )
            if self._expect(",", "]") == "]":
                return

    def _value(self) -> Any:
        """Decode one JSON value, reading on while it is cut by the end of the buffer."""
        self._peek()
        while True:
            try:
                value, end = self._scan(self._buffer, self._at)
            except JSONDecodeError as error:
                if len(self._buffer) - self._at > _LONGEST_VALUE:
                    raise self._damaged(error.msg, error.pos) from None
                if not self._read_more():
                    raise self._cut_or_damaged(error) from None
                continue
            except RecursionError:
                raise self._damaged("nested too deeply") from None
            cut = isinstance(value, int | float) and _NUMBER_GOES_ON.match(self._buffer, end)
            if not cut or not self._read_more():
                self._at = end
                return value

    def _peek(self) -> str:
        """The next character that is not white space, "" at the end; `_at` moves to it."""
        while True:
            match = _NOT_SPACE.search(self._buffer, self._at)
            if match:
                self._at = match.start()
                return match.group()
            self._at = len(self._buffer)
            if not self._read_more():
                return ""

    def _expect(self, *allowed: str) -> str:
        found = self._peek()
        if found in allowed:
            self._at += 1
            return found
        if found == "":
            raise self._cut()
        raise self._damaged(f"expected {' or '.join(allowed)}, found {found!r}")

    def _read_more(self) -> bool:
        """Drop what is behind, append a chunk (a bigger one to a long value); False at the end."""
        if self._ended:
            return False
        try:
            text = self._file.read(max(self._chunk, len(self._buffer) - self._at))
        except EOFError:
            raise self._cut() from None
        except (OSError, zlib.error) as error:
            raise KpredictError(f"{self.path} cannot be read: {error}.", _AGAIN) from None
        if text == "":
            self._ended = True
            return False
        self._passed += self._at
        self._buffer, self._at = self._buffer[self._at :] + text, 0
        return True

    def _cut_or_damaged(self, error: JSONDecodeError) -> KpredictError:
        """A value cut by the file's end fails at that end, or in a string that never closes."""
        at_end = error.pos >= len(self._buffer.rstrip()) or error.msg.startswith("Unterminated")
        return self._cut() if at_end else self._damaged(error.msg, error.pos)

    def _cut(self) -> KpredictError:
        return KpredictError(
            f"{self.path} is cut short: it ends after {self.count:,} events.", _AGAIN
        )

    def _damaged(self, what: str, at: int | None = None) -> KpredictError:
        place = self._passed + (self._at if at is None else at)
        return KpredictError(
            f"{self.path} is damaged at character {place:,}, "
            f"after {self.count:,} events: {what[:1].lower()}{what[1:]}.",
            _AGAIN,
        )


def _opened(path: Path) -> IO[str]:
    """The file as text; gzip is known by its first bytes, not by its name."""
    try:
        with path.open("rb") as raw:
            gzipped = raw.read(2) == b"\x1f\x8b"
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise KpredictError(f"{path} cannot be opened: {reason}.", "Check the path.") from None
    opening = gzip.open if gzipped else open
    return cast(IO[str], opening(path, "rt", encoding="utf-8-sig", errors="replace"))
