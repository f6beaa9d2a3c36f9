"""Text → tree, quietly: what Python warns of in a user's file is none of our output."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache
from hashlib import sha256
from pathlib import Path


def parse(text: str) -> ast.Module:
    """Raises SyntaxError, ValueError, RecursionError or MemoryError, as `ast.parse` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    lines = enumerate(text.split("\n"), 1) if "yield" in text else ()
    tree.kpredict_yields = tuple(  # type: ignore[attr-defined]
        n for n, line in lines if "yield" in line
    )
    return tree


def yielding(tree: ast.Module) -> tuple[int, ...] | None:
    """The lines that have the word `yield`, where `parse` made the tree."""
    found: tuple[int, ...] | None = getattr(tree, "kpredict_yields", None)
    return found


@lru_cache(64)
def parsed(path: str, changed: int) -> tuple[ast.Module, str]:
    """The tree of an imported file and the hash of its bytes; `changed` tells its versions apart.
    Raises OSError beside what `parse` raises."""
    data = Path(path).read_bytes()
    return parse(data.decode("utf-8", errors="replace")), sha256(data).hexdigest()
