"""Who may import whom: read from the imports, so that a stage cannot grow a hidden dependency."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "kpredict"

# Layers of the package, and what each may import of it besides itself. A name with a dot is a
# module; another is a module or a folder.
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "targets": {"model"},
    "plugins": {"model"},
    "request": {"model", "plugins"},
    "config": {"model", "targets"},
    "graph": {"model"},
    "bounds": {"model"},
    "sweep": {"model", "bounds"},
    "cache": set(),
    "source": {"model", "eager", "targets"},
    "eager": {"model", "graph"},
    "capture": {"model", "targets", "eager"},  # routes ask the rules which back end CUDA takes
    "compiled": {"model", "capture", "eager", "graph"},
    "plans": {"model", "capture", "eager", "compiled"},
    "report": {"model", "targets", "bounds"},
    "verify": {
        "config",
        "sweep",
        "model",
        "targets",
        "request",
        "plugins",
        "plans",
        "session",
        "source",
        "eager",
        "report",
        "capture",
    },
    "findings": {
        "model",
        "cache",
        "config",
        "source",
        "eager",
        "targets",
        "report",
        "graph",
        "verify",
    },
    "changes": {"model", "request", "session", "source", "bounds"},
    "session": {
        "model",
        "bounds",
        "cache",
        "sweep",
        "targets",
        "request",
        "plugins",
        "source",
        "plans",
        "capture",
        "eager",
        "graph",
        "compiled",
    },
    "api": {
        "model",
        "targets",
        "bounds",
        "capture",
        "plans",
        "eager",
        "compiled",
        "session",
        "report",
    },
}
TOP = {"cli", "commands", "__init__", "__main__", "testing", "pytest_plugin"}  # may import all

# Libraries that only some layers may import.
HOME: dict[str, set[str]] = {
    "torch": {"capture", "compiled", "plans", "verify", "session", "api", "testing"},
    "libcst": {"source"},
    "networkx": {"graph"},
    "click": {"cli", "commands"},
}
# Modules of those layers that must do without torch all the same: they answer when it is missing.
WITHOUT_TORCH = (
    "session/ask.py",
    "session/remember.py",
    "session/vary.py",
    "session/__init__.py",
    "session/paths.py",
    "session/load.py",
)


def layer(path: Path) -> str:
    """The first folder; renderers of findings stand beside the others but belong to findings."""
    if path.parent.name == "report" and path.name.startswith("findings_"):
        return "findings"
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path, *, deferred: bool = True) -> Iterator[str]:
    """Dotted names that a file imports; not those for type checkers only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only or (not deferred and id(node) in inside):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_layers(path: Path) -> set[str]:
    lazily = layer(path) != "model"  # a Report's methods may reach the renderers, when called
    names = {n.split(".")[1] for n in imports(path, deferred=lazily) if n.startswith("kpredict.")}
    known = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or p.is_dir()}
    return names & known


# The prelude is data: PyTorch's Python surface in Python, read by `infer` and never imported.
FILES = sorted(p for p in PACKAGE.rglob("*.py") if "prelude" not in p.parts)


def test_every_layer_is_in_the_table() -> None:
    assert {layer(p) for p in FILES} <= set(MAY_IMPORT) | TOP


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    at = layer(path)
    if at not in TOP:
        assert own_layers(path) - {at} <= MAY_IMPORT[at]
    used = {name.split(".")[0] for name in imports(path)}
    for library, homes in HOME.items():
        assert library not in used or at in homes, f"{library} belongs in {sorted(homes)}"


def test_the_table_has_no_circle() -> None:
    done: set[str] = set()
    while ready := {n for n, below in MAY_IMPORT.items() if n not in done and below <= done}:
        done |= ready
    assert done == set(MAY_IMPORT)


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_some_modules_do_without_torch(name: str) -> None:
    assert not [n for n in imports(PACKAGE / name) if n.split(".")[0] == "torch"]


def test_commands_import_nothing_heavy_at_their_top() -> None:
    heavy = ("torch", "libcst", "networkx", "kpredict.session", "kpredict.api", "kpredict.plans")
    for path in (PACKAGE / "commands").glob("*.py"):
        found = [n for n in imports(path, deferred=False) if n.startswith(heavy)]
        assert not found, f"{path.name} imports {found} before it is asked to run"
