"""Whatever goes wrong in user code → a Failure of one clear line. No torch."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kpredict.model import Failure, KpredictError, Mode
from kpredict.request import Request


def failure(request: Request, error: BaseException) -> Failure:
    """One clear line for anything that can go wrong in user code."""
    line = _line(request, error)
    hint = ""
    match error:
        case KpredictError():
            message, hint = error.message, error.hint
        case SystemExit():
            message = f"The file called sys.exit({error.code!r})."
        case KeyboardInterrupt():
            message = "The file raised KeyboardInterrupt."
        case MemoryError():
            message = "Out of memory."
        case ModuleNotFoundError():
            message = f"{error}."
            hint = "Run kpredict with the Python that has the file's own dependencies."
        case SyntaxError():
            message = f"Syntax error: {error}."
        case _:
            first = next(iter(str(error).strip().splitlines()), "")
            message = f"{type(error).__name__}: {first[:300]}".rstrip(": ")
    return Failure(request.file, message, hint, line=line)


def _line(request: Request, error: BaseException) -> int:
    """The innermost line of the user's file in the traceback; 0 if there is none."""
    path = str(Path(request.file).resolve())
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename == path), 0)


def mode_failures(
    request: Request, name: str, line: int, failures: Mapping[Mode, Exception], worked: bool
) -> Iterator[Failure]:
    """One Failure for modes that failed alike; it names them when others worked."""
    alike: dict[Failure, list[Mode]] = {}
    for mode, error in failures.items():
        alike.setdefault(failure(request, error), []).append(mode)
    for found, modes in alike.items():
        where = "" if not worked and len(alike) == 1 else f"{', '.join(modes)}: "
        at = found.line or line
        yield replace(found, message=where + found.message, name=name, line=at)
