"""Which entry points of a loaded file to run.

In: what the file says (Source), what it defines (its namespace), what the user asks (Request), what
its script was seen to pass. Out: for each entry a Chosen, or a Failure that says what is missing.
Inputs come from `--input`, then the directive, `get_inputs()`, annotations, the script's calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch

from kpredict.model import Failure
from kpredict.plans import Call
from kpredict.request import Request
from kpredict.session.arguments import (
    Loaded,
    look_up,
    make_call,
    needs_object,
    owner_of,
    seen_module,
)
from kpredict.session.told import (
    candidates,
    init_parameters,
    init_specs,
    is_meant,
    known_without_running,
    lacking,
    missing,
)
from kpredict.source.nouns import EntryKind, EntryPoint, Parameter

__all__ = ["Chosen", "Loaded", "choose", "known_without_running"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """An entry to run. `make` builds its arguments and module: it runs the user's code."""

    name: str
    line: int
    make: Callable[[], tuple[Call, tuple[str, ...]]]


def choose(loaded: Loaded, request: Request) -> Iterator[Chosen | Failure]:
    """The entries in source order: those asked for, else every one whose inputs can be known."""
    if not request.names:
        yield from _choose_all(loaded, request)
        return
    for name in request.names:
        yield _choose_named(loaded, request, name)


def _choose_named(loaded: Loaded, request: Request, name: str) -> Chosen | Failure:
    """An entry by its name, be it a def of the file or anything callable that it binds."""
    entry = loaded.source.find(name)
    if entry is None:
        value = look_up(loaded.namespace, name)
        if not callable(value):
            return _no_such(loaded, request, name)
        entry = _entry_of(name, value, loaded.path)
    return _choose_one(loaded, request, entry)


def _choose_all(loaded: Loaded, request: Request) -> Iterator[Chosen | Failure]:
    source = loaded.source
    if source.conventional and source.find(source.conventional) is None:
        yield _choose_named(loaded, request, source.conventional)
    for entry in candidates(source):
        wanted = (
            entry.name == source.conventional
            or entry.name in loaded.seen
            or is_meant(entry, request)
        )
        if not wanted and (source.conventional or entry.kind is EntryKind.METHOD):
            continue
        if not wanted and not any(p.required for p in entry.parameters):
            continue
        yield _choose_one(loaded, request, entry, unasked=not wanted)


def _choose_one(
    loaded: Loaded, request: Request, entry: EntryPoint, unasked: bool = False
) -> Chosen | Failure:
    def failure(message: str, hint: str) -> Failure:
        return Failure(request.file, message, hint, entry.name, entry.line, unasked)

    conventional = entry.name == loaded.source.conventional
    seen = loaded.seen.get(entry.name)
    names = lacking(entry, request)
    if names and not conventional and seen is None:
        return failure(*missing(entry, names, request))
    if needs_object(loaded, entry) and seen_module(seen) is None:
        owner = owner_of(entry)
        told = init_specs(loaded.source, entry, owner, request)
        needs = [p.name for p in init_parameters(loaded.source, owner) if p.required]
        names = tuple(n for n in needs if n not in told)
        if names and not (conventional and "get_init_inputs" in loaded.source.defines):
            line = ", ".join(f"{n}=..." for n in names)
            return failure(
                f"{owner}.__init__ needs {', '.join(names)}.",
                f"Write above the class: # kpredict: {line}",
            )
    return Chosen(entry.name, entry.line, lambda: make_call(loaded, request, entry))


def _no_such(loaded: Loaded, request: Request, name: str) -> Failure:
    known = [e.name for e in candidates(loaded.source)]
    near = get_close_matches(name, known, 1, 0.5)
    hint = f"Did you mean {near[0]}?" if near else f"Entry points: {', '.join(known) or 'none'}."
    return Failure(request.file, f"It has no entry point called {name}.", hint, name)


_KINDS: Mapping[Any, str] = {
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}


def _entry_of(name: str, value: Any, path: str) -> EntryPoint:
    """An entry for a callable whose kind only its value tells: an instance, a class, an import."""
    is_class = inspect.isclass(value) and issubclass(value, torch.nn.Module)
    is_module = is_class or isinstance(value, torch.nn.Module)
    parameters = _parameters_of(value.forward if is_module else value)
    return EntryPoint(
        name,
        EntryKind.MODULE if is_module else EntryKind.FUNCTION,
        _line_of(type(value) if is_module and not is_class else value, path),
        0,
        parameters[1:] if is_class else parameters,
        _parameters_of(value.__init__)[1:] if is_class else (),
    )


def _parameters_of(target: Any) -> tuple[Parameter, ...]:
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(
        Parameter(p.name, _KINDS.get(p.kind, "positional"), p.default is not p.empty)
        for p in parameters
    )


def _line_of(value: Any, path: str) -> int:
    """Where the file defines it; 0 when another file does."""
    try:
        if inspect.getsourcefile(value) == path:
            return inspect.getsourcelines(value)[1]
    except (OSError, TypeError):
        pass
    return 0
