"""What is told of an entry's inputs without running anything: flags, directives, annotations.

In: an EntryPoint and the Request. Out: specs by parameter with all sizes known, and what they lack.
No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from kpredict.model import KpredictError
from kpredict.request import Request
from kpredict.source.inputs import InputSpec, join, parse_input, resolve, unknown_dims
from kpredict.source.nouns import EntryKind, EntryPoint, Parameter, Source

_CONVENTIONS = {"get_inputs", "get_init_inputs", "get_kwargs", "make_optimizer"}


def asked(request: Request, name: str) -> dict[str, InputSpec]:
    """The inputs given from outside for the entry `name`: the file's configuration, then flags."""
    own = request.entry_inputs.get(name, ())
    return join(parse_input(text) for text in (*own, *request.inputs))


def specs(entry: EntryPoint, request: Request) -> dict[str, InputSpec]:
    """Inputs by parameter: annotations, over them the directive, over it what is asked."""
    any_keyword = any(p.kind == "kwargs" for p in entry.parameters)
    found: dict[str, InputSpec] = {}
    for p in entry.parameters:
        if p.annotated is not None and not unknown_dims(p.annotated, request.dims):
            found[p.name] = resolve(p.annotated, request.dims)
    init = {p.name for p in entry.init}
    for told in (entry.directive, asked(request, entry.name)):
        for name, spec in told.items():
            own = entry.parameter(name) is not None
            if (own or (any_keyword and name not in init)) and not unknown_dims(spec, request.dims):
                found[name] = resolve(spec, request.dims)
    return found


def lacking(entry: EntryPoint, request: Request) -> tuple[str, ...]:
    """The required parameters that nothing is told of."""
    known = specs(entry, request)
    return tuple(p.name for p in entry.parameters if p.required and p.name not in known)


def named_dims(source: Source, request: Request) -> frozenset[str]:
    """Every dimension that an annotation, a directive or an input of the file calls by a name."""
    found: list[InputSpec] = []
    for entry in source.entries:
        found += [p.annotated for p in entry.parameters if p.annotated is not None]
        found += [*entry.directive.values(), *asked(request, entry.name).values()]
    return frozenset(name for spec in found for name in unknown_dims(spec, {}))


def init_parameters(source: Source, owner: str) -> tuple[Parameter, ...]:
    """What the constructor of the class `owner` takes."""
    entry = source.find(owner)
    if entry is not None and entry.kind is EntryKind.MODULE:
        return entry.init
    constructor = source.find(f"{owner}.__init__")
    return constructor.parameters if constructor is not None else ()


def init_specs(
    source: Source, entry: EntryPoint, owner: str, request: Request
) -> dict[str, InputSpec]:
    """Arguments of the constructor; a name that is a parameter of both is the entry's."""
    names = {p.name for p in init_parameters(source, owner)}
    found: dict[str, InputSpec] = {}
    for place in (source.find(f"{owner}.__init__"), source.find(owner)):
        if place is not None:
            found |= {n: s for n, s in place.directive.items() if n in names}
    forward = {p.name for p in entry.parameters}
    told = asked(request, entry.name)
    found |= {n: s for n, s in told.items() if n in names and n not in forward}
    return {n: resolve(s, request.dims) for n, s in found.items()}


def is_meant(entry: EntryPoint, request: Request) -> bool:
    """Something says that this entry is to be run: a directive, an input, known annotations."""
    given = asked(request, entry.name)
    if entry.has_directive or any(entry.parameter(name) for name in given):
        return True
    annotated = [p for p in entry.parameters if p.annotated is not None]
    return bool(annotated) and not any(
        unknown_dims(p.annotated, request.dims) for p in annotated if p.annotated and p.required
    )


def candidates(source: Source) -> list[EntryPoint]:
    """What may be run unasked: no dunder methods, no `forward` of a module, no conventions."""
    modules = {e.name for e in source.entries if e.kind is EntryKind.MODULE}
    return [
        e
        for e in source.entries
        if e.name not in _CONVENTIONS
        and not e.name.rsplit(".", 1)[-1].startswith("__")
        and not (e.name.endswith(".forward") and e.name.removesuffix(".forward") in modules)
    ]


def known_without_running(source: Source, request: Request) -> bool:
    """Whether the text alone says the inputs of what is asked for, so no script need run."""
    if not request.names:
        return bool(source.conventional) or any(
            not lacking(e, request) and is_meant(e, request) for e in candidates(source)
        )
    wanted = [source.find(name) for name in request.names]
    return all(
        e is not None and (e.name == source.conventional or not lacking(e, request)) for e in wanted
    )


def missing(entry: EntryPoint, names: Sequence[str], request: Request) -> tuple[str, str]:
    """What to say of parameters that nothing is known of: the fault, and a line to paste."""
    dims: dict[str, None] = {}
    only_dims = True
    for name in names:
        p = entry.parameter(name)
        spec = entry.directive.get(name) or (p.annotated if p is not None else None)
        if spec is None:
            only_dims = False
        else:
            dims |= dict.fromkeys(unknown_dims(spec, request.dims))
    message = f"No inputs are known for {', '.join(names)} of {entry.name}."
    if dims and only_dims:
        return message, f"Give --dim {','.join(f'{n}=64' for n in dims)}"
    line = ", ".join(f"{n}=f32[64,128]" for n in names)
    return message, f"Write above it, with your own dtypes and shapes: # kpredict: {line}"


def check_inputs(source: Source, request: Request) -> None:
    """Raise KpredictError for an `--input` whose name no entry point has."""
    known = {p.name for e in source.entries for p in (*e.parameters, *e.init)}
    if any(p.kind == "kwargs" for e in source.entries for p in e.parameters):
        return
    if any(source.find(name) is None for name in request.names):
        return  # bound without a def: its parameters are known when it is loaded
    for name in asked(request, ""):
        if name not in known:
            near = get_close_matches(name, known, 1, 0.5)
            hint = f"Did you mean {near[0]}?" if near else ""
            raise KpredictError(f"No entry point has a parameter called {name}.", hint)
