"""Where a file's own project is: which imports are its modules, and whether it is small enough.

The root is the first folder above a file that is no package. Imports are followed inside it only.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

MOST_FILES = 300
"""Python files of a project whose imports a check follows; a larger one takes too long."""


@lru_cache(4096)
def root_of(folder: str) -> str:
    """The first folder, from `folder` on, without `__init__.py`."""
    here = Path(folder or ".").resolve()
    while (here / "__init__.py").is_file() and here.parent != here:
        here = here.parent
    return str(here)


@lru_cache(256)
def is_small(root: str) -> bool:
    """Whether a project has few enough files to follow its imports. Hidden folders and
    environments are none of it."""
    found = seen = 0
    for _, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "__")) and f not in _NOT_OURS]
        if "pyvenv.cfg" in files:
            folders[:] = []
            continue
        found += sum(f.endswith(".py") for f in files)
        seen += 1
        if found > MOST_FILES or seen > 10 * MOST_FILES:
            return False
    return True


_NOT_OURS = frozenset("node_modules site-packages dist build".split())
