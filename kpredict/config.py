"""`[tool.kpredict]` of the nearest pyproject.toml → a frozen Config. Standard library only.

An unknown key or a value of the wrong kind is an error that names the nearest valid key. A flag
goes before the environment (`KPREDICT_CHECK_SELECT` and the like), the environment before the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kpredict.model import KpredictError


@dataclass(frozen=True, slots=True)
class EntryConfig:
    """One `[[tool.kpredict.entry]]`: inputs and budgets of `path` ("file.py::name")."""

    path: str
    inputs: tuple[str, ...] = ()
    max_eager: int | None = None
    max_compiled: int | None = None
    max_round_trips: int | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says; None or empty where it says nothing. `root` is the file's folder."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    target: str | None = None
    chain: int | None = None
    tiny: int | None = None
    round_trip_mb: float | None = None
    baseline: str | None = None
    jobs: int | None = None
    cache: bool | None = None
    plugins: tuple[str, ...] = ()
    entries: tuple[EntryConfig, ...] = ()
    rules: tuple[Mapping[str, Any], ...] = ()  # `[[tool.kpredict.rule]]`, read by eager.user_rules
    root: Path | None = None


_KINDS: Mapping[str, tuple[type, ...] | str] = {
    "select": "texts", "ignore": "texts", "exclude": "texts", "plugins": "texts",
    "target": (str,), "baseline": (str,), "chain": (int,), "tiny": (int,), "jobs": (int,),
    "round-trip-mb": (int, float), "cache": (bool,), "entry": "tables",
    "rule": "tables",
}  # fmt: skip
_ENTRY_KINDS: Mapping[str, tuple[type, ...] | str] = {
    "path": (str,), "inputs": "texts", "max-eager": (int,), "max-compiled": (int,),
    "max-round-trips": (int,),
}  # fmt: skip


def find_file(start: Path) -> Path | None:
    """The nearest pyproject.toml with a `[tool.kpredict]` table, from `start` upwards."""
    start = start.resolve()
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file() and "kpredict" in path.read_text("utf-8", errors="replace"):
            table = _table(path)
            if table is not None:
                return path
    return None


def load(path: Path | None) -> Config:
    """The configuration in a file; without one the empty Config. Raises KpredictError."""
    if path is None:
        return Config()
    table = _table(path)
    if table is None:
        raise KpredictError(
            f"{path.name} has no [tool.kpredict] table.", "Add one, or leave out --config."
        )
    return parse(table, path.parent)


def _table(path: Path) -> Mapping[str, Any] | None:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise KpredictError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KpredictError(f"{path} is not TOML: {error}.") from None
    tool = data.get("tool", {})
    found = tool.get("kpredict") if isinstance(tool, dict) else None
    return found if isinstance(found, dict) else None


def parse(table: Mapping[str, Any], root: Path | None = None) -> Config:
    """A `[tool.kpredict]` table as a Config. Raises KpredictError for what it does not know."""
    _expect(table, _KINDS, "[tool.kpredict]")
    entries = []
    for row in table.get("entry", ()):
        _expect(row, _ENTRY_KINDS, "[[tool.kpredict.entry]]")
        if "path" not in row:
            raise KpredictError(
                "A [[tool.kpredict.entry]] has no path.", 'Write path = "model.py::Model".'
            )
        entries.append(
            EntryConfig(
                row["path"], tuple(row.get("inputs", ())), row.get("max-eager"),
                row.get("max-compiled"), row.get("max-round-trips"),
            )
        )  # fmt: skip
    return Config(
        tuple(table.get("select", ())), tuple(table.get("ignore", ())),
        tuple(table.get("exclude", ())), table.get("target"), table.get("chain"),
        table.get("tiny"), table.get("round-trip-mb"), table.get("baseline"), table.get("jobs"),
        table.get("cache"), tuple(table.get("plugins", ())), tuple(entries),
        tuple(table.get("rule", ())), root,
    )  # fmt: skip


def _expect(
    table: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...] | str], where: str
) -> None:
    for key, value in table.items():
        if key not in kinds:
            near = get_close_matches(key, kinds, 1, 0.5)
            hint = (
                f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(sorted(kinds))}."
            )
            raise KpredictError(f"{where} has an unknown key {key!r}.", hint)
        kind = kinds[key]
        if kind == "texts":
            good = isinstance(value, list) and all(isinstance(v, str) for v in value)
            wanted = "a list of texts"
        elif kind == "tables":
            good = isinstance(value, list) and all(isinstance(v, dict) for v in value)
            wanted = f"tables: [[tool.kpredict.{key}]]"
        else:
            good = isinstance(value, kind) and (bool in kind or not isinstance(value, bool))  # type: ignore[arg-type]
            wanted = " or ".join(k.__name__ for k in kind)  # type: ignore[union-attr]
        if not good:
            raise KpredictError(f"{where}: {key} = {value!r} is not {wanted}.")


def first(*choices: Any) -> Any:
    """The first that is said: flag or environment, then file, then default."""
    return next((c for c in choices if c is not None and c != ()), None)


def split_codes(texts: Sequence[str], codes: Iterable[str]) -> tuple[str, ...]:
    """`["KP1,KP203", "KP3"]` → three prefixes, upper case. Raises KpredictError for what begins
    none of `codes`."""
    known = tuple(codes)
    out = tuple(p.strip().upper() for t in texts for p in t.split(",") if p.strip())
    for p in out:
        if p != "ALL" and not any(code.startswith(p) for code in known):
            near = get_close_matches(p, known, 1, 0.6)
            hint = f"Did you mean {near[0]}?" if near else "Codes look like KP1 or KP203."
            raise KpredictError(f"No rule has a code that begins with {p!r}.", hint)
    return out
