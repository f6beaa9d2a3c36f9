"""What child and parent tell each other, and the Answer the parent gathers from it. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kpredict.model import Entry, Failure, Target


@dataclass(frozen=True, slots=True)
class Stage:
    """What the child is about to do: told beforehand, so that a crash has a place."""

    doing: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """Files that are no part of an installed package and were imported or opened."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Partial:
    """An entry with its eager plan, sent before the others are made: it stands if they are not."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Done:
    """The child's last word."""

    peak_mb: float


Message = Stage | Used | Partial | Done | Entry | Failure | Target


@dataclass(frozen=True, slots=True)
class Answer:
    """One file's results. `output` is what the user's code printed, `used` the files it rests on
    (None: nobody knows), `others` what a child other than the analyser found. `recalled` says that
    an earlier run gave it."""

    entries: tuple[Entry, ...] = ()
    errors: tuple[Failure, ...] = ()
    skipped: tuple[Failure, ...] = ()
    target: Target | None = None
    seconds: float = 0.0
    peak_mb: float = 0.0
    output: str = ""
    used: tuple[str, ...] | None = None
    others: tuple[Any, ...] = ()
    recalled: bool = False
