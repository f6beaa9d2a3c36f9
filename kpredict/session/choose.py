"""Which entry points of a loaded file to run, with which arguments.

In: what the file says (Source), what it defines (its namespace), what the user asks (Request), what
its script was seen to pass. Out: for each entry a Chosen, or a Failure that says what is missing.
Inputs come from `--input`, then the directive, `get_inputs()`, annotations, the script's calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch

from kpredict.model import Failure, KpredictError, Phase
from kpredict.plans import Call
from kpredict.request import FORWARD, TRAINING, Request
from kpredict.session.build import build, describe
from kpredict.session.observe import Seen
from kpredict.source.inputs import InputSpec, join, parse_input, resolve, unknown_dims
from kpredict.source.nouns import EntryKind, EntryPoint, Parameter, Source


@dataclass(frozen=True, slots=True)
class Chosen:
    """An entry to run. `make` builds its arguments and module: it runs the user's code."""

    name: str
    line: int
    make: Callable[[], tuple[Call, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file that was imported: its source, its namespace, the calls seen while it ran."""

    source: Source
    namespace: Mapping[str, Any]
    seen: Mapping[str, Seen]
    path: str


def known_without_running(source: Source, request: Request) -> bool:
    """Whether the text alone says the inputs of what is asked for, so no script need run."""
    told = _told(request)
    wanted = [source.find(name) for name in request.names]
    if not request.names:
        return bool(source.conventional) or any(
            not _lacks(e, _specs(e, told, request.dims)) and (_is_told(e, told, request.dims))
            for e in _candidates(source)
        )
    return all(
        e is not None
        and (e.name == source.conventional or not _lacks(e, _specs(e, told, request.dims)))
        for e in wanted
    )


def choose(loaded: Loaded, request: Request) -> Iterator[Chosen | Failure]:
    """The entries in source order: those asked for, else every one whose inputs can be known."""
    source, told = loaded.source, _told(request)
    names = request.names
    if not names:
        yield from _choose_all(loaded, request, told)
        return
    for name in names:
        entry = source.find(name)
        if entry is None:
            value = _look_up(loaded.namespace, name)
            if not callable(value):
                yield _no_such(loaded, request, name)
                continue
            entry = _entry_of(name, value, loaded.path)
        chosen = _choose_one(loaded, request, entry, told)
        yield chosen if isinstance(chosen, Chosen) else _failure(request, entry, *chosen)


def _choose_all(
    loaded: Loaded, request: Request, told: Mapping[str, InputSpec]
) -> Iterator[Chosen | Failure]:
    source = loaded.source
    conventional = source.conventional
    if conventional and source.find(conventional) is None:
        value = _look_up(loaded.namespace, conventional)
        if not callable(value):
            yield _no_such(loaded, request, conventional)
            return
        entry = _entry_of(conventional, value, loaded.path)
        chosen = _choose_one(loaded, request, entry, told)
        yield chosen if isinstance(chosen, Chosen) else _failure(request, entry, *chosen)
    for entry in _candidates(source):
        wanted = (
            entry.name == conventional
            or entry.name in loaded.seen
            or _is_told(entry, told, request.dims)
        )
        if not wanted and (conventional or entry.kind is EntryKind.METHOD):
            continue
        if not wanted and not any(p.required for p in entry.parameters):
            continue
        chosen = _choose_one(loaded, request, entry, told)
        if isinstance(chosen, Chosen):
            yield chosen
        else:
            yield _failure(request, entry, *chosen, skipped=not wanted)


def _candidates(source: Source) -> list[EntryPoint]:
    """What may be run unasked: no dunder methods, no `forward` of a module, no conventions."""
    modules = {e.name for e in source.entries if e.kind is EntryKind.MODULE}
    conventions = {"get_inputs", "get_init_inputs", "get_kwargs", "make_optimizer"}
    return [
        e
        for e in source.entries
        if e.name not in conventions
        and not e.name.rsplit(".", 1)[-1].startswith("__")
        and not (e.name.endswith(".forward") and e.name.removesuffix(".forward") in modules)
    ]


def _is_told(entry: EntryPoint, told: Mapping[str, InputSpec], dims: Mapping[str, int]) -> bool:
    """Something says that this entry is meant: a directive, an input, known annotations."""
    if entry.has_directive or any(entry.parameter(name) for name in told):
        return True
    annotated = [p for p in entry.parameters if p.annotated is not None]
    return bool(annotated) and not any(
        unknown_dims(p.annotated, dims) for p in annotated if p.annotated and p.required
    )


def _told(request: Request) -> dict[str, InputSpec]:
    return join(parse_input(text) for text in request.inputs)


def _specs(
    entry: EntryPoint, told: Mapping[str, InputSpec], dims: Mapping[str, int]
) -> dict[str, InputSpec]:
    """What `--input`, the directive and annotations say, by parameter; sizes all known."""
    any_keyword = any(p.kind == "kwargs" for p in entry.parameters)
    specs: dict[str, InputSpec] = {}
    for p in entry.parameters:
        if p.annotated is not None and not unknown_dims(p.annotated, dims):
            specs[p.name] = resolve(p.annotated, dims)
    init = {p.name for p in entry.init}
    for source in (entry.directive, told):
        for name, spec in source.items():
            own = entry.parameter(name) is not None
            if (own or (any_keyword and name not in init)) and not unknown_dims(spec, dims):
                specs[name] = resolve(spec, dims)
    return specs


def _lacks(entry: EntryPoint, specs: Mapping[str, InputSpec]) -> tuple[str, ...]:
    return tuple(p.name for p in entry.parameters if p.required and p.name not in specs)


def _choose_one(
    loaded: Loaded, request: Request, entry: EntryPoint, told: Mapping[str, InputSpec]
) -> Chosen | tuple[str, str]:
    """A Chosen, or (what is missing, what to do)."""
    specs = _specs(entry, told, request.dims)
    lacking = _lacks(entry, specs)
    conventional = entry.name == loaded.source.conventional
    seen = loaded.seen.get(entry.name)
    if lacking and not conventional and seen is None:
        return _missing(entry, lacking, request)
    owner = entry.name.rpartition(".")[0] if entry.kind is EntryKind.METHOD else entry.name
    needs_object = entry.kind is EntryKind.MODULE or (
        entry.kind is EntryKind.METHOD and not _is_static(loaded.namespace, entry.name)
    )
    init = _init_specs(loaded.source, entry, owner, told, request.dims)
    if needs_object and (seen is None or not isinstance(seen.receiver, torch.nn.Module)):
        lacking = tuple(p.name for p in _init_parameters(loaded.source, owner) if p.required)
        lacking = tuple(n for n in lacking if n not in init)
        if lacking and not (conventional and "get_init_inputs" in loaded.source.defines):
            return (
                f"{owner}.__init__ needs {_list(lacking)}.",
                f"Write above the class: # kpredict: {', '.join(f'{n}=...' for n in lacking)}",
            )

    def make() -> tuple[Call, tuple[str, ...]]:
        fn = _callable(loaded, entry, owner, needs_object, init, seen)
        args, kwargs = _base_arguments(loaded, conventional, seen if lacking_inputs else None)
        args, kwargs = _overlay(fn, args, kwargs, {n: build(s) for n, s in specs.items()})
        return _call(loaded, request, entry, fn, args, kwargs, seen)

    lacking_inputs = bool(_lacks(entry, specs))
    return Chosen(entry.name, entry.line, make)


def _callable(
    loaded: Loaded, entry: EntryPoint, owner: str, needs_object: bool,
    init: Mapping[str, InputSpec], seen: Seen | None,
) -> Callable[..., Any]:  # fmt: skip
    """The function, the module on the GPU, or the method bound to a fresh object."""
    if not needs_object:
        function: Callable[..., Any] = _look_up(loaded.namespace, entry.name)
        return function
    if seen is not None and isinstance(seen.receiver, torch.nn.Module):
        made: Any = seen.receiver
    else:
        cls = _look_up(loaded.namespace, owner)
        args, kwargs = _init_arguments(loaded, owner, init)
        made = cls(*args, **kwargs) if inspect.isclass(cls) else cls
        if isinstance(made, torch.nn.Module):
            made = made.cuda()
    method = entry.name.rpartition(".")[2] if entry.kind is EntryKind.METHOD else ""
    bound: Callable[..., Any] = getattr(made, method) if method else made
    return bound


def _init_arguments(
    loaded: Loaded, owner: str, init: Mapping[str, InputSpec]
) -> tuple[Sequence[Any], dict[str, Any]]:
    told = {n: build(s) for n, s in init.items()}
    get = loaded.namespace.get("get_init_inputs")
    conventional = loaded.source.conventional
    if get is None or owner != conventional.partition(".")[0]:
        return (), told
    given = get()
    if isinstance(given, Mapping):
        return (), dict(given) | told
    return _overlay(loaded.namespace[owner], tuple(given), {}, told)


def _base_arguments(
    loaded: Loaded, conventional: bool, seen: Seen | None
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Arguments before specs are laid over them: `get_inputs()`, else what the script passed."""
    if conventional:
        given = loaded.namespace["get_inputs"]()
        get_kwargs = loaded.namespace.get("get_kwargs")
        kwargs = dict(get_kwargs()) if get_kwargs is not None else {}
        if isinstance(given, Mapping):
            return (), dict(given) | kwargs
        return (given,) if isinstance(given, torch.Tensor) else tuple(given), kwargs
    if seen is not None:
        return seen.args, dict(seen.kwargs)
    return (), {}


def _overlay(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], told: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Replace arguments by name."""
    if not told:
        return args, kwargs
    target = fn.forward if isinstance(fn, torch.nn.Module) else fn
    signature = inspect.signature(target)
    bound = signature.bind_partial(*args, **kwargs)
    known = {n: v for n, v in told.items() if n in signature.parameters}
    bound.arguments.update(known)
    ordered = {n: bound.arguments[n] for n in signature.parameters if n in bound.arguments}
    bound.arguments = ordered
    positional = [
        n
        for n, p in signature.parameters.items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    holes = [n for n in positional if n not in ordered]
    extra = {n: v for n, v in told.items() if n not in known}
    if not holes:
        return bound.args, bound.kwargs | extra
    first = positional.index(holes[0])
    return (
        [ordered[n] for n in positional[:first]],
        {n: ordered[n] for n in positional[first:] if n in ordered} | bound.kwargs | extra,
    )


def _call(
    loaded: Loaded, request: Request, entry: EntryPoint, fn: Callable[..., Any],
    args: Sequence[Any], kwargs: Mapping[str, Any], seen: Seen | None,
) -> tuple[Call, tuple[str, ...]]:  # fmt: skip
    module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    module = module if isinstance(module, torch.nn.Module) else None
    by_file = TRAINING if loaded.source.training else FORWARD
    phases = request.phases or by_file
    training = Phase.BACKWARD in phases
    grad = request.grad
    optimizer = None
    if module is not None:
        module.train(training if request.train is None else request.train)
        if grad is None:
            grad = training
        make = loaded.namespace.get("make_optimizer")
        if Phase.STEP in phases and make is not None:
            optimizer = make(module)
    elif grad is None and seen is not None and not training:
        grad = seen.grad
    if optimizer is None:
        phases = tuple(p for p in phases if p is not Phase.STEP)
    stated = dict(request.stated)
    if loaded.source.stated is not None:
        stated.setdefault("*", loaded.source.stated)
    call = Call(
        fn, args, kwargs, phases, optimizer, request.compile_optimizer, grad, stated, module,
        loaded.path, compiles="torch.compile" in loaded.source.text,
    )  # fmt: skip
    return call, tuple(_described(fn, args, kwargs))


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


def _init_parameters(source: Source, owner: str) -> tuple[Any, ...]:
    entry = source.find(owner)
    if entry is not None and entry.kind is EntryKind.MODULE:
        return entry.init
    constructor = source.find(f"{owner}.__init__")
    return constructor.parameters if constructor is not None else ()


def _init_specs(
    source: Source, entry: EntryPoint, owner: str, told: Mapping[str, InputSpec],
    dims: Mapping[str, int],
) -> dict[str, InputSpec]:  # fmt: skip
    names = {p.name for p in _init_parameters(source, owner)}
    forward = {p.name for p in entry.parameters}
    owning = source.find(owner)
    constructor = source.find(f"{owner}.__init__")
    specs: dict[str, InputSpec] = {}
    for found in (constructor, owning):
        if found is not None:
            specs |= {n: s for n, s in found.directive.items() if n in names}
    specs |= {n: s for n, s in told.items() if n in names and n not in forward}
    return {n: resolve(s, dims) for n, s in specs.items()}


def _look_up(namespace: Mapping[str, Any], name: str) -> Any:
    head, *rest = name.split(".")
    value = namespace.get(head)
    for part in rest:
        value = getattr(value, part, None)
    return value


def _is_static(namespace: Mapping[str, Any], name: str) -> bool:
    owner, _, method = name.rpartition(".")
    found = inspect.getattr_static(_look_up(namespace, owner), method, None)
    return isinstance(found, (staticmethod, classmethod))


_KINDS: Mapping[Any, str] = {
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}


def _entry_of(name: str, value: Any, path: str) -> EntryPoint:
    """An entry for a callable whose kind only its value tells: an instance, a class, an import."""
    is_class = inspect.isclass(value) and issubclass(value, torch.nn.Module)
    is_module = is_class or isinstance(value, torch.nn.Module)
    init = _parameters_of(value.__init__)[1:] if is_class else ()
    target = value.forward if is_module else value
    return EntryPoint(
        name,
        EntryKind.MODULE if is_module else EntryKind.FUNCTION,
        _line_of(type(value) if is_module and not is_class else value, path),
        0,
        _parameters_of(target)[1:] if is_class else _parameters_of(target),
        init,
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


def _missing(entry: EntryPoint, lacking: Sequence[str], request: Request) -> tuple[str, str]:
    dims = [
        n
        for p in entry.parameters
        for spec in (entry.directive.get(p.name) or p.annotated,)
        if spec is not None and p.name in lacking
        for n in unknown_dims(spec, request.dims)
    ]
    unannotated = [
        n
        for n in lacking
        if n not in entry.directive and (p := entry.parameter(n)) and p.annotated is None
    ]
    message = f"No inputs are known for {_list(lacking)} of {entry.name}."
    if dims and not unannotated:
        return message, f"Give --dim {','.join(f'{n}=64' for n in dict.fromkeys(dims))}"
    line = ", ".join(f"{n}=f32[64,128]" for n in lacking)
    return message, f"Write above it, with your own dtypes and shapes: # kpredict: {line}"


def _failure(
    request: Request, entry: EntryPoint, message: str, hint: str, *, skipped: bool = False
) -> Failure:
    return Failure(request.file, message, hint, entry.name, entry.line, skipped)


def _no_such(loaded: Loaded, request: Request, name: str) -> Failure:
    known = [e.name for e in _candidates(loaded.source)]
    near = get_close_matches(name, known, 1, 0.5)
    hint = f"Did you mean {near[0]}?" if near else f"Entry points: {', '.join(known) or 'none'}."
    return Failure(request.file, f"It has no entry point called {name}.", hint, name)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


def check_inputs(source: Source, request: Request) -> None:
    """Raise KpredictError for an `--input` whose name no entry point has."""
    known = {p.name for e in source.entries for p in (*e.parameters, *e.init)}
    if any(p.kind == "kwargs" for e in source.entries for p in e.parameters):
        return
    for name in _told(request):
        if name not in known:
            near = get_close_matches(name, known, 1, 0.5)
            hint = f"Did you mean {near[0]}?" if near else ""
            raise KpredictError(f"No entry point has a parameter called {name}.", hint)
