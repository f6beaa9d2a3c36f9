"""What was found before in a file of the same content: `.kpredict_cache/findings.json`.

The key covers the bytes, the path, the options and the versions, so that a stale answer cannot
come out. A damaged cache is an empty one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kpredict.cache import code_stamp, replace_whole
from kpredict.findings.check import Checked
from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Options

FOLDER = ".kpredict_cache"
MOST = 20_000
"""Files that are remembered."""


def stamp(options: Options) -> str:
    """The part of the key that is the same for all files of a run."""
    return f"{code_stamp()}\0{options.fingerprint}"


class Cache:
    """Answers by path; `get` only when the key is the same."""

    def __init__(self, folder: Path, run_stamp: str) -> None:
        self.folder = folder
        self.stamp = run_stamp
        self.rows: dict[str, Any] = {}
        self.changed = False
        self.imported: dict[str, str] = {}
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
        if not all(self._is_still(*p) for p in row.get("rests_on", ())):
            return None
        try:
            return _load(path, row)
        except (KeyError, TypeError, ValueError):
            return None

    def _is_still(self, path: str, digest: str) -> bool:
        """Whether an imported file is as it was. Read once in a run."""
        if path not in self.imported:
            try:
                self.imported[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            except OSError:
                self.imported[path] = ""
        return self.imported[path] == digest

    def put(self, checked: Checked, key: str) -> None:
        self.rows.pop(checked.path, None)
        self.rows[checked.path] = {"key": key, **_dump(checked)}
        self.changed = True

    def save(self) -> None:
        """Write it, whole or not at all. A folder that cannot be written is no error."""
        if not self.changed:
            return
        rows = dict(list(self.rows.items())[-MOST:])
        data = json.dumps({"rows": rows}).encode()
        replace_whole(self.folder, "findings.json", data)


def _dump(checked: Checked) -> dict[str, Any]:
    rows = [{k: v for k, v in asdict(f).items() if k != "path" and v is not None}
            for f in checked.findings]  # fmt: skip
    return {
        "findings": rows,
        "error": checked.error,
        "line": checked.line,
        "suppressed": checked.suppressed,
        "faults": checked.faults,
        "rests_on": checked.rests_on,
    }


def _load(path: str, row: dict[str, Any]) -> Checked:
    findings = tuple(
        replace(Finding(path, **{k: v for k, v in f.items() if k != "confidence"}),
                confidence=Confidence(f["confidence"]))
        for f in row["findings"]
    )  # fmt: skip
    rests_on = tuple((str(p), str(d)) for p, d in row.get("rests_on", ()))
    return Checked(
        path, findings, row["error"], row["line"], row["suppressed"], tuple(row["faults"]), rests_on
    )
