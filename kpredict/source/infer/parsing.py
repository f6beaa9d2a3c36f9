"""Text → tree, quietly: what Python warns of in a user's file is none of our output."""

from __future__ import annotations

import ast
import warnings


def parse(text: str) -> ast.Module:
    """Raises SyntaxError, ValueError, RecursionError or MemoryError, as `ast.parse` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
