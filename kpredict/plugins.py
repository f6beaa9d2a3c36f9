"""The user's own rules as modules: `plugins = ["my_rules"]` in `[tool.kpredict]`.

A plugin is imported, nothing more; importing it registers what it decorates: `@kpredict.rule` says
what an op launches, `@kpredict.finding_rule` adds a finding. It is looked for among the entry
points in the group `kpredict.plugins`, beside pyproject.toml, and among installed packages.

A plugin is code of the user's. `check --static` promises to run none, so there only a plugin that
an installed distribution declares as an entry point is imported: whoever installed it chose it.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from traceback import extract_tb

from kpredict.model import KpredictError

GROUP = "kpredict.plugins"
ERROR_HINT = 'plugins = ["…"] in [tool.kpredict] names it; --no-plugins leaves plugins out.'


@dataclass(frozen=True, slots=True)
class Plugins:
    """Names as the configuration has them, and the folder of the file that holds it."""

    names: tuple[str, ...] = ()
    root: str = ""


NONE = Plugins()


def load(plugins: Plugins, *, static: bool = False) -> str:
    """Import every plugin; the answer changes when the code that came with them does.

    Raises KpredictError for one that is not there, that fails, or that `static` does not allow.
    """
    if not plugins.names:
        return ""
    before = set(sys.modules)
    with _looked_for(plugins.root, static):
        declared = {
            word: point.module for point in entry_points(group=GROUP)
            for word in (point.name, point.module)
        }  # fmt: skip
        for name in plugins.names:
            if static and name not in declared:
                raise KpredictError(
                    f"The plugin {name!r} is code of this project, and --static runs none.",
                    f"Install it as a package with an entry point in the group {GROUP}, or give "
                    "--no-plugins.",
                )
            _import(declared.get(name, name), plugins.root)
    return _fingerprint(sorted(set(sys.modules) - before))


@contextmanager
def _looked_for(root: str, static: bool) -> Iterator[None]:
    """`sys.path` for the search. The project's folder comes last, so that it hides nothing; for
    `static` it is left out, as is the current folder, which `python -m` puts first."""
    saved = list(sys.path)
    if static:
        if sys.path and not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
            del sys.path[0]
    elif root not in sys.path:
        sys.path.append(root)
        saved.append(root)  # what a plugin imports later is found too
    try:
        yield
    finally:
        sys.path[:] = saved


def _import(module: str, root: str) -> None:
    try:
        there = find_spec(module) is not None
    except ModuleNotFoundError:  # the package of a dotted name
        there = False
    except ValueError:
        there = module in sys.modules
    if not there:
        raise KpredictError(
            f"There is no plugin {module!r}, neither beside pyproject.toml nor installed.",
            f"Looked for {module.replace('.', '/')}.py in {root or os.getcwd()}. {ERROR_HINT}",
        )
    try:
        importlib.import_module(module)
    except KpredictError:
        raise
    except Exception as error:
        last = extract_tb(error.__traceback__)[-1]
        raise KpredictError(
            f"The plugin {module!r} cannot be imported: {type(error).__name__}: {error} "
            f"({os.path.basename(last.filename)}, line {last.lineno}).",
            ERROR_HINT,
        ) from error


def _fingerprint(names: Sequence[str]) -> str:
    """Of the files that the imports brought in, by name, size and time of change."""
    mark = hashlib.sha256()
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and os.path.exists(file):
            stat = os.stat(file)
            mark.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return mark.hexdigest()
