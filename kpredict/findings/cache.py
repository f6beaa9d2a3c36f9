"""What was found before in a file of the same content: `.kpredict_cache/findings.json`.

The key covers the bytes, the path, the options and the versions, so that a stale answer cannot
come out. A damaged cache is an empty one.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kpredict import __version__
from kpredict.findings.check import Checked
from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Options

FOLDER = ".kpredict_cache"
TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder was made by kpredict. See https://bford.info/cachedir/\n"
)
MOST = 20_000
"""Files that are remembered."""


def _code() -> str:
    """The state of the rules themselves: newest change of any of our files, so that a development
    version does not answer from an older one."""
    root = Path(__file__).parents[1]
    newest = max(
        (
            p.stat().st_mtime_ns
            for d in ("findings", "source", "eager")
            for p in (root / d).rglob("*.py")
        ),
        default=0,
    )
    return str(newest)


_stamp: list[str] = []


def stamp(options: Options) -> str:
    """The part of the key that is the same for all files of a run."""
    if not _stamp:
        _stamp.append(_code())
    return f"{__version__}\0{_stamp[0]}\0{options.fingerprint}"


class Cache:
    """Answers by path; `get` only when the key is the same."""

    def __init__(self, folder: Path, run_stamp: str) -> None:
        self.folder = folder
        self.stamp = run_stamp
        self.rows: dict[str, Any] = {}
        self.changed = False
        try:
            data = json.loads((folder / "findings.json").read_text("utf-8"))
            if isinstance(data, dict) and isinstance(data.get("rows"), dict):
                self.rows = data["rows"]
        except (OSError, ValueError):
            pass

    def key(self, data: bytes) -> str:
        return hashlib.sha256(self.stamp.encode() + b"\0" + data).hexdigest()

    def get(self, path: str, key: str) -> Checked | None:
        row = self.rows.get(path)
        if not isinstance(row, dict) or row.get("key") != key:
            return None
        try:
            return _load(path, row)
        except (KeyError, TypeError, ValueError):
            return None

    def put(self, checked: Checked, key: str) -> None:
        self.rows.pop(checked.path, None)
        self.rows[checked.path] = {"key": key, **_dump(checked)}
        self.changed = True

    def save(self) -> None:
        """Write it, whole or not at all. A folder that cannot be written is no error."""
        if not self.changed:
            return
        rows = dict(list(self.rows.items())[-MOST:])
        try:
            self.folder.mkdir(exist_ok=True)
            (self.folder / "CACHEDIR.TAG").write_text(TAG)
            (self.folder / ".gitignore").write_text("*\n")
            beside = self.folder / f"findings.{os.getpid()}.tmp"
            beside.write_text(json.dumps({"rows": rows}), "utf-8")
            beside.replace(self.folder / "findings.json")
        except OSError:
            return


def _dump(checked: Checked) -> dict[str, Any]:
    rows = [{k: v for k, v in asdict(f).items() if k != "path" and v is not None}
            for f in checked.findings]  # fmt: skip
    return {
        "findings": rows,
        "error": checked.error,
        "line": checked.line,
        "suppressed": checked.suppressed,
    }


def _load(path: str, row: dict[str, Any]) -> Checked:
    findings = tuple(
        replace(Finding(path, **{k: v for k, v in f.items() if k != "confidence"}),
                confidence=Confidence(f["confidence"]))
        for f in row["findings"]
    )  # fmt: skip
    return Checked(path, findings, row["error"], row["line"], row["suppressed"])
