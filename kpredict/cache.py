"""Answers kept between runs: a folder of files, each replaced whole, the oldest dropped.

A folder that cannot be read or written is an empty one: nobody's work depends on it. Whoever keeps
something decides what makes it valid; here are the parts of that which all have in common.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kpredict import __version__

TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder was made by kpredict. See https://bford.info/cachedir/\n"
)
MOST_BYTES = 256 << 20


def user_folder() -> Path:
    """KPREDICT_CACHE_DIR, else `kpredict` where this system keeps caches of its user."""
    told = os.environ.get("KPREDICT_CACHE_DIR")
    if told:
        return Path(told)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "kpredict"


@cache
def code_stamp() -> str:
    """The version and the newest change of any of our files, so that a version under development
    does not answer from an older one."""
    files = [p.stat().st_mtime_ns for p in Path(__file__).parent.rglob("*.py")]
    return f"{__version__} {len(files)} {max(files, default=0)}"


def replace_whole(folder: Path, name: str, data: bytes) -> bool:
    """Write a file of a folder that is made if need be, whole or not at all; whether it worked."""
    beside = folder / f"{name}.{os.getpid()}.tmp"
    try:
        if not (folder / "CACHEDIR.TAG").exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / "CACHEDIR.TAG").write_text(TAG)
            (folder / ".gitignore").write_text("*\n")
        beside.write_bytes(data)
        beside.replace(folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        return False
    return True


@dataclass(frozen=True, slots=True)
class Cache:
    """Bytes by key, `most` of them in all: those not asked for the longest go first."""

    folder: Path
    most: int = MOST_BYTES

    def get(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return data

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        if len(data) <= self.most and replace_whole(self.folder, path.name, data):
            self._drop_oldest()

    def _path(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.answer"

    def _drop_oldest(self) -> None:
        found: list[tuple[int, int, Path]] = []
        with contextlib.suppress(OSError):
            for path in self.folder.glob("*.answer"):
                with contextlib.suppress(OSError):  # another run drops too
                    stat = path.stat()
                    found.append((stat.st_mtime_ns, stat.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.most:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
