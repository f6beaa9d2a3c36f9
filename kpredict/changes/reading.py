"""One function as read: its operations, each with what names hold there, and where names are used.

Made by `walking`, asked by the matchers and by `writing`. No torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kpredict.changes.expressions import Binding
from kpredict.changes.names import Def, Names
from kpredict.changes.terms import Term


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One operation of a function: its expression (or the whole `x *= y`), its statement, and what
    names hold right before it."""

    node: ast.expr | ast.AugAssign
    term: Term
    statement: ast.stmt
    env: Mapping[str, Binding]
    reading: Reading


@dataclass(slots=True, eq=False)
class Reading:
    """One function. `loads` are the names it reads with what they were bound to, `captured` those
    that functions inside it see too; `blocks` is the list a statement stands in, `contexts` are the
    `with` statements around it."""

    name: str
    node: Def
    owner: str
    text: str
    offsets: list[int]
    names: Names
    sites: list[Site] = field(default_factory=list)
    bindings: Mapping[ast.Name, Binding | None] = field(default_factory=dict)
    terms: Mapping[ast.expr, Term] = field(default_factory=dict)
    captured: set[str] = field(default_factory=set)
    blocks: dict[ast.stmt, list[ast.stmt]] = field(default_factory=dict)
    contexts: dict[ast.stmt, tuple[ast.stmt, ...]] = field(default_factory=dict)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """(start, end) of a node, in characters of the text."""
        return span(node, self.text, self.offsets)

    def segment(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def writes_in_place(self) -> bool:
        """Whether anything in it may change an array: then it matters who shares memory."""
        return any(
            isinstance(n, ast.AugAssign)
            or (isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
            or (isinstance(n, ast.Attribute) and is_inplace(n))
            or (isinstance(n, ast.keyword) and n.arg in ("inplace", "out"))
            for n in ast.walk(self.node)
        )


def span(node: ast.AST, text: str, offsets: list[int]) -> tuple[int, int]:
    def at(line: int, column: int) -> int:
        start = offsets[line - 1]
        if text.isascii():
            return start + column
        end = offsets[line] if line < len(offsets) else len(text)
        return start + len(text[start:end].encode()[:column].decode(errors="ignore"))

    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
    return at(first, getattr(node, "col_offset", 0)), at(last, getattr(node, "end_col_offset", 0))


def line_offsets(text: str) -> list[int]:
    """Where each line starts."""
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets


def is_inplace(method: ast.Attribute) -> bool:
    return method.attr.endswith("_") and not method.attr.endswith("__")


def definitions(
    body: Iterable[ast.stmt], prefix: str = "", owner: str = ""
) -> Iterator[tuple[str, str, Def]]:
    """(class, qualified name, def) of every function, in order."""
    for s in body:
        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef):
            yield owner, prefix + s.name, s
            yield from definitions(s.body, f"{prefix}{s.name}.", owner)
        elif isinstance(s, ast.ClassDef):
            yield from definitions(s.body, f"{prefix}{s.name}.", s.name)
        else:
            for block in ("body", "orelse", "finalbody"):
                yield from definitions(getattr(s, block, []), prefix, owner)
