"""A file's imports, constants and what its constructors make: what a name in a function stands for.

In: the file's tree. Out: a Names, that says which library path an expression is and how to spell
one; and what `self.attribute` was made of in `__init__`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Def = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONAL = "torch.nn.functional"


@dataclass(frozen=True, slots=True)
class Names:
    """`imports` maps a name to its dotted path, `constants` a name that is bound once at top level
    to its expression, `made` (class, attribute) to the one expression a constructor gives it."""

    imports: Mapping[str, str]
    constants: Mapping[str, ast.expr] = field(default_factory=dict)
    made: Mapping[tuple[str, str], ast.expr] = field(default_factory=dict)

    def path(self, node: ast.expr) -> str:
        """`torch.nn.functional.relu` of `F.relu`; "" for what does not start with an import."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        root = self.imports.get(node.id, "") if isinstance(node, ast.Name) else ""
        return ".".join([root, *reversed(parts)]) if root else ""

    def spell(self, path: str) -> str | None:
        """How this file says `torch.nn.functional.relu`: the shortest way; None if it cannot."""
        ways = [
            name + path[len(root) :]
            for name, root in self.imports.items()
            if path == root or path.startswith(root + ".")
        ]
        return min(ways, key=len, default=None)

    def functional(self, name: str) -> str | None:
        """How this file says `torch.nn.functional.NAME`; `torch.NAME` where both are one."""
        spelled = self.spell(f"{FUNCTIONAL}.{name}")
        short = self.spell(f"torch.{name}") if name in _ALSO_IN_TORCH else None
        if spelled is None or (short is not None and spelled.count(".") > 1):
            return short or spelled
        return spelled


_ALSO_IN_TORCH = frozenset(("softmax", "log_softmax", "sigmoid"))


def read_names(tree: ast.Module) -> Names:
    return Names(_imports(tree), _constants(tree), _made(tree))


def _imports(tree: ast.Module) -> dict[str, str]:
    """Imports of the whole file; a name that is imported as two things is left out."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                found.setdefault(alias.asname or first, set()).add(
                    alias.name if alias.asname else first
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, set()).add(
                    f"{node.module}.{alias.name}"
                )
    return {name: paths.pop() for name, paths in found.items() if len(paths) == 1}


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    stores = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_store(n)]
    return {
        s.targets[0].id: s.value
        for s in tree.body
        if isinstance(s, ast.Assign)
        and len(s.targets) == 1
        and isinstance(s.targets[0], ast.Name)
        and stores.count(s.targets[0].id) == 1
    }


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, (ast.Store, ast.Del))


def _made(tree: ast.Module) -> dict[tuple[str, str], ast.expr]:
    found: dict[tuple[str, str], list[ast.expr]] = {}
    for owner in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        for method in (m for m in owner.body if isinstance(m, ast.FunctionDef)):
            for attribute, value in _given(method):
                found.setdefault((owner.name, attribute), []).append(value)
    return {key: values[0] for key, values in found.items() if len(values) == 1}


def _given(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """`self.a = value` and `self.register_buffer("a", value)`."""
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            targets = [t for t in node.targets if isinstance(t, ast.Attribute)]
            yield from ((t.attr, node.value) for t in targets if is_self(t.value))
        match node:
            case ast.Call(
                func=ast.Attribute(attr="register_buffer"),
                args=[ast.Constant(value=name), value, *_],
            ):
                yield str(name), value


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")
