"""A file on disk → its text → its Source. No torch."""

from __future__ import annotations

import tokenize

from kpredict.model import KpredictError
from kpredict.source.nouns import Source


def read_source(file: str, text: str | None = None) -> Source:
    """What the file, or `text` in its place, says of itself; without libcst by the reader that
    needs none."""
    try:
        from kpredict.source.entries import read_source as read
    except ImportError:
        from kpredict.source.plain import read_source as read
    return read(file, read_text(file) if text is None else text)


def read_text(file: str) -> str:
    """The file as Python reads it: encoding declarations and byte-order marks are heeded."""
    try:
        with tokenize.open(file) as stream:
            return stream.read()
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise KpredictError(f"It is not Python text: {error}.") from None
    except OSError as error:
        raise KpredictError(f"It cannot be read: {error.strerror}.") from None
