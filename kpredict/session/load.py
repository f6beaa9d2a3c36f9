"""Import the user's file: under a stable name, or as `__main__` when it is run as a script."""

from __future__ import annotations

import linecache
import os
import sys
import types
from importlib.util import find_spec
from pathlib import Path


def module_name(path: Path) -> tuple[str, Path]:
    """(name, folder for sys.path): the name an ordinary import would use.

    A file in a package gets its dotted name, so relative imports work. A name that is not an
    identifier, or that would hide another module, gets a prefix.
    """
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    if len(parts) > 1:
        return ".".join(parts), folder
    name = path.stem if path.stem.isidentifier() else f"file_{_identifier(path.stem)}"
    if name in sys.stdlib_module_names or name in sys.modules or _hides(name, path):
        name = f"file_{name}"
    return name, folder


def prepare(path: Path) -> types.ModuleType:
    """An empty module for the file, known to `sys.modules`, its folder on `sys.path`."""
    name, folder = module_name(path)
    sys.path.insert(0, str(folder))
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    package, _, _ = name.rpartition(".")
    if package:
        __import__(package)
    module = types.ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = package
    sys.modules[name] = module
    sys.argv = [str(path)]
    return module


def execute(module: types.ModuleType, text: str, as_main: bool = False) -> None:
    """Run the file's top-level code in `module`; as `__main__` if asked. Whoever asks for the
    file's lines (tracebacks, `inspect`) gets those of `text`."""
    path = str(module.__file__)
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    if as_main:
        module.__name__ = "__main__"
        sys.modules["__main__"] = module
    code = compile(text, path, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _identifier(stem: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in stem)


def _hides(name: str, path: Path) -> bool:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin) != path
