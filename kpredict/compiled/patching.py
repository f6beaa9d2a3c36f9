"""Replacing private attributes for a while, with a clear error when a release has lost one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch

from kpredict.model import KpredictError

OLDEST, NEWEST = (2, 11), (2, 14)
"""The releases of torch whose private names and decisions the compiled plan was held against."""


def check_release() -> None:
    """Raise KpredictError for a release of torch that nothing is known of."""
    major, minor = (int(n) for n in torch.__version__.split(".")[:2])
    if not OLDEST <= (major, minor) <= NEWEST:
        raise KpredictError(f"torch {torch.__version__} is not known to the compiled plan.", _HINT)


_HINT = (
    "The eager plan is not affected. Use torch "
    f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]} for the compiled one."
)


def find(module: str, path: str) -> tuple[Any, str]:
    """(owner, attribute) of a private name; KpredictError naming the release when it is gone."""
    try:
        owner: Any = importlib.import_module(module)
        *parents, name = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        getattr(owner, name)
    except (ImportError, AttributeError) as error:
        raise KpredictError(
            f"torch {torch.__version__} has no {module}.{path}, which the compiled plan needs.",
            _HINT,
        ) from error
    return owner, name


class Patches:
    """Replacements that are undone together when `stack` closes."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def set(self, module: str, path: str, value: Any) -> None:
        owner, name = find(module, path)
        self._stack.enter_context(mock.patch.object(owner, name, value))

    def wrap(self, module: str, path: str, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the place of the original."""
        owner, name = find(module, path)
        self.set(module, path, make(getattr(owner, name)))

    def create(self, module: str, name: str, value: Any) -> None:
        """Set an attribute that a CPU build lacks."""
        owner = importlib.import_module(module)
        self._stack.enter_context(mock.patch.object(owner, name, value, create=True))

    def forget(self, module: str, path: str) -> None:
        """Empty a function's cache, now and at the end; a release may lack the function."""
        try:
            owner, name = find(module, path)
        except KpredictError:
            return
        clear = getattr(getattr(owner, name), "cache_clear", lambda: None)
        clear()
        self._stack.callback(clear)

    def configure(self, module: str, values: Mapping[str, Any]) -> None:
        """Set the options of a torch config module that this release knows."""
        config = importlib.import_module(module)
        known = {key: value for key, value in values.items() if hasattr(config, key)}
        self._stack.enter_context(config.patch(known))
