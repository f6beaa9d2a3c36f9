"""Answers of earlier runs, for files that did not change. Parent side: no torch.

In: a Request. Out: the Answer it had, when all that answer rested on is as it was: the Request and
its target, kpredict, Python and torch, what is installed, the environment, and every file of the
project that was imported or opened while it was made. Not seen: files that native code opens, the
clock, the network.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import re
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kpredict import model
from kpredict.cache import Cache, code_stamp, user_folder
from kpredict.request import Request
from kpredict.session.messages import Answer

_MOST_FILES = 5000
_HASHED = 4 << 20  # bytes; what is larger goes by size and time of change
_ENVIRONMENT = (
    "TORCH", "PYTORCH", "INDUCTOR", "TRITON", "CUDA", "CUBLAS", "CUDNN", "NVIDIA", "KPREDICT",
    "PYTHON", "HF_", "TRANSFORMERS", "LD_LIBRARY_PATH",
)  # fmt: skip
_READ_BY_NAME = re.compile(rb"""(?:environ(?:\.get)?|getenv)\s*[\[(]\s*["'](\w+)["']""")


@dataclass(frozen=True, slots=True)
class Remembered:
    """An answer, and what it rests on: fingerprints of files, values of environment variables."""

    answer: Answer
    files: Mapping[str, str]
    environment: Mapping[str, str | None]

    @property
    def holds(self) -> bool:
        """Whether all of it is as it was."""
        return all(os.environ.get(n) == v for n, v in self.environment.items()) and all(
            fingerprint(path) == mark for path, mark in self.files.items()
        )


class Memory:
    """Answers by request. What went wrong is not remembered: it may be mended elsewhere."""

    def __init__(self, cache: Cache | None = None) -> None:
        self._cache = cache or Cache(user_folder() / "answers")

    def recall(self, request: Request) -> Answer | None:
        data = self._cache.get(_key(request))
        found = None if data is None else _unpack(data)
        if found is None or not found.holds:
            return None
        return replace(found.answer, seconds=0.0, peak_mb=0.0, recalled=True)

    def keep(self, request: Request, answer: Answer, began: float) -> None:
        """Remember an answer whose making began at that time (`time.time()`), unless something it
        rests on changed since: nobody knows which state was read."""
        if answer.errors or answer.others or answer.used is None or not answer.entries:
            return
        paths = [os.path.abspath(request.file), *answer.used]
        if len(paths) > _MOST_FILES or any(_changed(path) >= began for path in paths):
            return
        found = Remembered(
            replace(answer, used=None), {p: fingerprint(p) for p in paths}, _environment(paths)
        )
        self._cache.put(_key(request), _pack(found))


def fingerprint(path: str) -> str:
    """The contents of a file, or its size and time of change; empty for what is not there."""
    try:
        stat = os.stat(path)
        if stat.st_size > _HASHED:
            return f"{stat.st_size} {stat.st_mtime_ns}"
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _environment(paths: Iterable[str]) -> dict[str, str | None]:
    """Variables that the sources among the files read by their names."""
    names: set[str] = set()
    for path in paths:
        if path.endswith(".py") and os.path.isfile(path):
            names |= {name.decode() for name in _READ_BY_NAME.findall(Path(path).read_bytes())}
    return {name: os.environ.get(name) for name in sorted(names)}


def _key(request: Request) -> str:
    """All that is known before anything runs. The time limit decides nothing in an answer."""
    environment = {
        name: value for name, value in sorted(os.environ.items())
        if name.startswith(_ENVIRONMENT) and name != "KPREDICT_CACHE_DIR"
    }  # fmt: skip
    parts = (
        code_stamp(), sys.version, sys.platform, sys.prefix, _installed(), _torch(), os.getcwd(),
        environment, replace(request, timeout=0.0),
    )  # fmt: skip
    return "\n".join(map(repr, parts))


def _installed() -> list[tuple[str, int]]:
    """Folders of installed packages with their time of change: installing anything changes it."""
    folders = [p for p in sys.path if p.rstrip(os.sep).endswith("-packages") and os.path.isdir(p)]
    return [(p, os.stat(p).st_mtime_ns) for p in folders]


def _torch() -> str:
    """Release, commit and CUDA of torch, which may be built from source in a folder of its own."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    return fingerprint(os.path.join(os.path.dirname(spec.origin), "version.py"))


def _pack(found: Remembered) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, protocol=5).dump(found)
    return zlib.compress(stream.getvalue(), 1)


def _unpack(data: bytes) -> Remembered | None:
    """None for what is damaged or was written by another version."""
    try:
        found = _Unpickler(io.BytesIO(zlib.decompress(data))).load()
    except Exception:
        return None
    return found if isinstance(found, Remembered) else None


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Enums by their value, so that reading them needs no `getattr`."""
        return (type(value), (value.value,)) if isinstance(value, Enum) else NotImplemented


class _Unpickler(pickle.Unpickler):
    """Knows our nouns and nothing else: a file that somebody tampered with runs no code."""

    def find_class(self, module: str, name: str) -> Any:
        found = _NOUNS.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is no noun of ours")
        return found


_NOUNS = {
    (c.__module__, c.__name__): c
    for c in (*vars(model).values(), Answer, Remembered)
    if isinstance(c, type) and c.__module__.startswith("kpredict.")
}
