"""Names with dots, as the source spells them."""

from __future__ import annotations

import ast


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a chain of attributes on a name, else ""."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""
