"""Which files of the user's an analysis rests on: imported, opened or asked for. Child side.

What is installed is left out: it changes as a whole, by installing.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

_ALWAYS_THERE = ("/dev/", "/proc/", "/sys/")


def files_used(asked_for: Iterable[str], scratch: Path) -> tuple[str, ...]:
    """Absolute paths, sorted: the modules that are loaded, and of what was `asked_for` the rest."""
    found = {os.path.abspath(path) for path in asked_for}
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str):
            found.add(os.path.abspath(file))
    left_out = (*_ALWAYS_THERE, os.path.join(scratch.parent, ""), *_installed())
    files = (p for p in found if not p.startswith(left_out) and f"{os.sep}__pycache__" not in p)
    return tuple(sorted(p for p in files if not os.path.isdir(p)))


def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {p for p in sys.path if p.rstrip(os.sep).endswith("-packages")}
    folders.add(str(Path(__file__).parents[1]))
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        folders.add(os.path.dirname(torch.__file__))
    return tuple(os.path.join(folder, "") for folder in folders)
