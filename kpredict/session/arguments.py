"""An entry of a loaded file → the Call: its module built, its arguments made, its phases decided.

Runs the user's code: `get_inputs()`, constructors, `make_optimizer`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from kpredict.compiled.options import Noted, merge
from kpredict.model import Phase
from kpredict.plans import Again, Call
from kpredict.request import FORWARD, TRAINING, Request
from kpredict.session.build import build, describe
from kpredict.session.observe import Seen
from kpredict.session.told import init_specs, lacking, specs
from kpredict.source.inputs import InputSpec
from kpredict.source.nouns import EntryKind, EntryPoint, Source


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file that was imported: its source, its namespace, the calls seen while it ran (the
    first of each function, and those with other inputs), and what its own torch.compile calls ask
    for."""

    source: Source
    namespace: Mapping[str, Any]
    seen: Mapping[str, Seen]
    path: str
    noted: Noted = field(default_factory=Noted)
    repeats: Mapping[str, Sequence[Seen]] = field(default_factory=dict)


def owner_of(entry: EntryPoint) -> str:
    """The class of a method; a module is its own."""
    return entry.name.rpartition(".")[0] if entry.kind is EntryKind.METHOD else entry.name


def needs_object(loaded: Loaded, entry: EntryPoint) -> bool:
    """Whether an object must be made before it can be called."""
    if entry.kind is not EntryKind.METHOD:
        return entry.kind is EntryKind.MODULE
    owner, _, method = entry.name.rpartition(".")
    found = inspect.getattr_static(look_up(loaded.namespace, owner), method, None)
    return not isinstance(found, staticmethod | classmethod)


def seen_module(seen: Seen | None) -> torch.nn.Module | None:
    """The module that the script called, if it was one."""
    return (
        seen.receiver if seen is not None and isinstance(seen.receiver, torch.nn.Module) else None
    )


def make_call(loaded: Loaded, request: Request, entry: EntryPoint) -> tuple[Call, tuple[str, ...]]:
    """What to run, and its inputs in words."""
    fn = _callable(loaded, request, entry)
    args, kwargs = _base_arguments(loaded, request, entry)
    told = {name: build(spec) for name, spec in specs(entry, request).items()}
    args, kwargs = overlay(fn, args, kwargs, told)
    call = _call(loaded, request, entry, fn, args, kwargs)
    if not told:
        call = replace(call, more=tuple(_more(loaded, request, entry, fn)))
    return call, tuple(_described(fn, args, kwargs))


def _more(
    loaded: Loaded, request: Request, entry: EntryPoint, fn: Callable[..., Any]
) -> Iterator[Again]:
    """The script's calls of the same callable, where its first is taken and others differ."""
    first = loaded.seen.get(entry.name)
    if first is None or entry.name == loaded.source.conventional or not lacking(entry, request):
        return
    same = [s for s in loaded.repeats.get(entry.name, ()) if s.receiver is first.receiver]
    if same:
        for seen in (first, *same):
            words = tuple(_described(fn, seen.args, seen.kwargs))
            yield Again(seen.args, seen.kwargs, seen.number, seen.line or None, words)


def _callable(loaded: Loaded, request: Request, entry: EntryPoint) -> Callable[..., Any]:
    """The function, the module on the GPU, or the method bound to a fresh object."""
    if not needs_object(loaded, entry):
        function: Callable[..., Any] = look_up(loaded.namespace, entry.name)
        return _exhausted(function) if inspect.isgeneratorfunction(function) else function
    made: Any = seen_module(loaded.seen.get(entry.name))
    if made is None:
        owner = owner_of(entry)
        made = look_up(loaded.namespace, owner)
        if inspect.isclass(made):
            args, kwargs = _init_arguments(loaded, request, entry, owner)
            made = made(*args, **kwargs)
        if isinstance(made, torch.nn.Module):
            made = made.cuda()
    method = entry.name.rpartition(".")[2] if entry.kind is EntryKind.METHOD else ""
    bound: Callable[..., Any] = getattr(made, method) if method else made
    return bound


def _exhausted(generator: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function as one that runs to its end: calling it alone does nothing."""

    @functools.wraps(generator)
    def run(*args: Any, **kwargs: Any) -> list[Any]:
        return list(generator(*args, **kwargs))

    return run


def _init_arguments(
    loaded: Loaded, request: Request, entry: EntryPoint, owner: str
) -> tuple[Sequence[Any], dict[str, Any]]:
    found: Mapping[str, InputSpec] = init_specs(loaded.source, entry, owner, request)
    told = {name: build(spec) for name, spec in found.items()}
    get = loaded.namespace.get("get_init_inputs")
    if get is None or owner != loaded.source.conventional.partition(".")[0]:
        return (), told
    given = get()
    if isinstance(given, Mapping):
        return (), dict(given) | told
    return overlay(loaded.namespace[owner], tuple(given), {}, told)


def _base_arguments(
    loaded: Loaded, request: Request, entry: EntryPoint
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Arguments before specs are laid over them: `get_inputs()`, else what the script passed."""
    if entry.name == loaded.source.conventional:
        given = loaded.namespace["get_inputs"]()
        get_kwargs = loaded.namespace.get("get_kwargs")
        kwargs = dict(get_kwargs()) if get_kwargs is not None else {}
        if isinstance(given, Mapping):
            return (), dict(given) | kwargs
        return (given,) if isinstance(given, torch.Tensor) else tuple(given), kwargs
    seen = loaded.seen.get(entry.name)
    if seen is not None and lacking(entry, request):
        return seen.args, dict(seen.kwargs)
    return (), {}


def overlay(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], told: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Replace or add arguments by name."""
    if not told:
        return args, kwargs
    signature = inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    bound = signature.bind_partial(*args, **kwargs)
    known = {n: v for n, v in told.items() if n in signature.parameters}
    extra = {n: v for n, v in told.items() if n not in known}
    bound.arguments.update(known)
    ordered = {n: bound.arguments[n] for n in signature.parameters if n in bound.arguments}
    bound.arguments = ordered
    positional = [
        n
        for n, p in signature.parameters.items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    hole = next((i for i, n in enumerate(positional) if n not in ordered), None)
    if hole is None:
        return bound.args, bound.kwargs | extra
    # what stands behind a parameter left at its default is passed by name
    behind = {n: ordered[n] for n in positional[hole:] if n in ordered}
    return [ordered[n] for n in positional[:hole]], behind | bound.kwargs | extra


def _call(
    loaded: Loaded, request: Request, entry: EntryPoint, fn: Callable[..., Any],
    args: Sequence[Any], kwargs: Mapping[str, Any],
) -> Call:  # fmt: skip
    """Phases, train or eval, gradients and the optimizer, by the file's and the user's word."""
    receiver = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    module = receiver if isinstance(receiver, torch.nn.Module) else None
    phases = request.phases or (TRAINING if loaded.source.training else FORWARD)
    training = Phase.BACKWARD in phases
    seen = loaded.seen.get(entry.name)
    grad, optimizer = request.grad, None
    if module is not None:
        module.train(training if request.train is None else request.train)
        grad = training if grad is None else grad
        make = loaded.namespace.get("make_optimizer")
        if Phase.STEP in phases and make is not None:
            optimizer = make(module)
    elif grad is None and seen is not None and not training:
        grad = seen.grad
    if optimizer is None:
        phases = tuple(p for p in phases if p is not Phase.STEP)
    return Call(
        fn, args, kwargs, phases, optimizer, request.compile_optimizer, grad,
        stated_values(loaded.source, request), module, loaded.path,
        compiles=compiles(loaded.source),
        compile_options=merge(loaded.noted.of(fn), request.compile_options),
    )  # fmt: skip


def compiles(source: Source) -> bool:
    """Whether the file's text compiles something itself."""
    return "torch.compile" in source.text or ".compile(" in source.text


def stated_values(source: Source, request: Request) -> dict[int | str, float]:
    """Values of device reads: as asked, else for all what the file's D2H_VALUE says."""
    values = dict(request.stated)
    if source.stated is not None:
        values.setdefault("*", source.stated)
    return values


def _described(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[str]:
    target = fn.forward if isinstance(fn, torch.nn.Module) else fn
    try:
        bound = inspect.signature(target).bind(*args, **kwargs)
    except (TypeError, ValueError):
        yield from (describe(a) for a in args)
        return
    for name, value in bound.arguments.items():
        yield f"{name}={describe(value)}"


def look_up(namespace: Mapping[str, Any], name: str) -> Any:
    """The value of a dotted name; None when there is none."""
    head, *rest = name.split(".")
    value = namespace.get(head)
    for part in rest:
        value = getattr(value, part, None)
    return value
