"""Whole files: which functions to read, with which inputs, and what came out of each.

In: a file's text. Out: a Reading, with the trace of every function. Nothing is imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kpredict.model import Target
from kpredict.source.infer.comments import directives
from kpredict.source.infer.counting import total
from kpredict.source.infer.joining import arrays_in
from kpredict.source.infer.machine import Machine, is_main_guard
from kpredict.source.infer.modules import everything
from kpredict.source.infer.parameters import initial, parameters
from kpredict.source.infer.parsing import parse
from kpredict.source.infer.state import Exhausted, Frame
from kpredict.source.infer.trace import Interval, Item, Missing, Place
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Function,
    Instance,
    Scope,
    Value,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Read:
    """One function as read: its trace and what its inputs were taken to be."""

    name: str
    line: int
    items: tuple[Item, ...]
    inputs: tuple[tuple[str, str], ...] = ()
    complete: bool = True  # False: the reading was cut short
    returned: tuple[Array, ...] = ()
    fault: str = ""  # an exception of our own that cut it short

    def kernels(self, target: Target) -> Interval:
        found = total(self.items, target)
        return found if self.complete else Interval(found.lo, None)


def read_conventional(text: str, file: str, target: Target | None = None) -> Read | None:
    """The file's `Model` or `ENTRY`, with what `get_init_inputs()` and `get_inputs()` return;
    None when it has no such thing. Runs as capture would: a Model in eval mode without grad
    unless `MODE = "training"`."""
    scope_reader = Machine(fuel=5_000_000, target=target)
    scope = scope_reader.load(parse(text), file)
    names = scope.names
    entry = names.get("ENTRY") if isinstance(names.get("ENTRY"), str) else "Model"
    found = names.get(entry) if isinstance(entry, str) else None
    if not isinstance(found, (Function, Class)) or not isinstance(
        names.get("get_inputs"), Function
    ):
        return None
    assume = names.get("D2H_VALUE")
    reader = Machine(
        fuel=20_000_000, target=target, files=scope_reader.files,
        assume=int(assume) if isinstance(assume, (int, float)) else 0,
    )  # fmt: skip
    reader.hooked = scope_reader.hooked
    with reader.recording():
        inputs = reader.call(names["get_inputs"], (), {})
        kwargs = reader.call(names["get_kwargs"], (), {}) if "get_kwargs" in names else {}
    args = list(inputs) if isinstance(inputs, (list, tuple)) else [UNKNOWN]
    training = names.get("MODE") == "training"
    function: Value = found
    if isinstance(found, Class):
        with reader.recording():
            init = (
                reader.call(names["get_init_inputs"], (), {}) if "get_init_inputs" in names else []
            )
            function = reader.call(
                found, tuple(init) if isinstance(init, (list, tuple)) else (UNKNOWN,), {}
            )
            if isinstance(function, Instance):
                reader.module_method(function, "cuda", (), {})
                reader.module_method(function, "train" if training else "eval", (), {})
        reader.grad = training
    named = kwargs if isinstance(kwargs, dict) else {}
    # the first call fills what is kept between calls (caches, gradients); the next one counts
    reader.start_tape()
    run(reader, function, args, named, str(entry), found)
    reader.start_tape()
    return run(reader, function, args, named, str(entry), found)


FUEL = 40_000
"""What reading one function without known inputs may cost: some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class FileReading:
    """All functions of a file, each read on its own, and the file's names."""

    file: str
    text: str
    tree: ast.Module
    scope: Scope
    functions: tuple[Read, ...]
    rests_on: Mapping[str, str] = field(default_factory=dict)  # imported files and their hashes


def read_file(
    text: str, file: str, target: Target | None = None, *, follow: bool = False,
    files: dict[str, Scope] | None = None, tree: ast.Module | None = None,
    dims: Mapping[str, int] | None = None, given: Mapping[str, Mapping[str, Value]] | None = None,
) -> FileReading:  # fmt: skip
    """Read every function and method of a file with what is known of its parameters: `given`, else
    its directive, else what `get_inputs` or the file's own calls of it say.

    `follow` reads imported files of the same project too. Raises SyntaxError, ValueError,
    RecursionError or MemoryError for what Python itself cannot parse.
    """
    if tree is None:
        tree = parse(text)
    loader = Machine(fuel=20 * FUEL, target=target, files=files, follow=follow)
    scope = loader.load(tree, file)
    told: dict[str, Mapping[str, Value]] = {**called_in_script(tree, scope, loader)}
    told.update(_offered(scope, loader))
    told.update(directives(text, file, dims or {}))
    told.update(given or {})
    found: list[Read] = []
    for value in list(scope.names.values()):
        if (
            isinstance(value, Function)
            and value.scope is scope
            and not isinstance(value.node, ast.Lambda)
        ):
            found.append(_read_function(value, None, loader, told))
        elif isinstance(value, Class) and value.scope is scope:
            found += _read_class(value, loader, told)
    return FileReading(file, text, tree, scope, tuple(found), loader.rests_on)


def called_in_script(
    tree: ast.Module, scope: Scope, loader: Machine
) -> dict[str, Mapping[str, Value]]:
    """What the block under `if __name__ == "__main__"` first calls each function of the file with,
    where an array is among it."""
    blocks = [s.body for s in tree.body if isinstance(s, ast.If) and is_main_guard(s)]
    if not blocks:
        return {}
    reader = loader.again(FUEL)
    reader.watched = scope
    frame = Frame(scope, "<module>", dict(scope.names))
    try:
        with reader.recording():
            reader.execute([s for b in blocks for s in b], frame)
    except Exception:  # cut short, or odd: what was seen so far is right
        pass
    return reader.seen


def _offered(scope: Scope, loader: Machine) -> dict[str, dict[str, Value]]:
    """What `get_inputs()` gives the file's `Model` or `ENTRY`, by parameter."""
    offers = scope.names.get("get_inputs")
    entry = scope.names.get("ENTRY", "Model")
    found = scope.names.get(entry) if isinstance(entry, str) else None
    if isinstance(found, Class):
        found = found.attributes.get("forward")
    if not isinstance(offers, Function) or not isinstance(found, Function):
        return {}
    reader = loader.again(FUEL)
    try:
        with reader.recording():
            given = reader.call(offers, (), {})
    except Exception:  # cut short, or odd: no inputs are known then
        return {}
    if not isinstance(given, (list, tuple)):
        return {}
    names = [a.arg for a in (*found.node.args.posonlyargs, *found.node.args.args)]
    names = names[1:] if found.owner is not None else names
    return {found.qualname: dict(zip(names, given, strict=False))}


def _read_class(
    cls: Class, loader: Machine, told: Mapping[str, Mapping[str, Value]]
) -> Iterator[Read]:
    methods = [f for f in cls.attributes.values() if isinstance(f, Function) and f.owner is cls]
    if not methods:
        return
    o = _object(cls, loader, told.get(f"{cls.name}.__init__", {}))
    for f in methods:
        if f.qualname.rpartition(".")[2] not in ("__init__", "__repr__", "extra_repr"):
            yield _read_function(f, o, loader, told)


def _object(cls: Class, loader: Machine, given: Mapping[str, Value]) -> Instance:
    """An object as far as the source tells: a module is built, on the GPU; others are open."""
    o = Instance(cls, open=True)
    if not cls.is_a("Module"):
        return o
    reader = loader.again(FUEL)
    try:
        with reader.recording():
            offers = cls.scope.names.get("get_init_inputs")
            args: Value = ()
            if cls.name == "Model" and isinstance(offers, Function):
                args = reader.call(offers, (), {})
            known = isinstance(args, (list, tuple)) and bool(args)
            made = reader.instantiate(
                cls, tuple(args) if known else (), {} if known else {**initial(cls), **given}
            )
            if isinstance(made, Instance):
                o = made
                reader.module_method(o, "cuda", (), {})
    except Exception:  # cut short, or odd: an object that nothing is known of is right too
        pass
    o.open = True
    o.attributes["training"] = UNKNOWN
    for m in everything(o):
        if "training" in m.attributes:
            m.attributes["training"] = UNKNOWN
    return o


def _read_function(
    f: Function, o: Instance | None, loader: Machine, told: Mapping[str, Mapping[str, Value]]
) -> Read:
    reader = loader.again(FUEL)
    is_module = f.owner is not None and f.owner.is_a("Module")
    values, perhaps = parameters(f, forward=is_module and f.qualname.endswith(".forward"),
                                 given=told.get(f.qualname))  # fmt: skip
    reader.perhaps_arrays = perhaps
    call: Value = f
    if o is not None and f.kind != "static":
        call = Bound(o if f.kind != "class" else o.cls, f.qualname, f)
    return run(reader, call, (), values, f.qualname, f)


def run(
    reader: Machine, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value],
    name: str, defined: Function | Class,
) -> Read:  # fmt: skip
    """Call `function` and keep what it recorded."""
    line = defined.line if isinstance(defined, Class) else defined.node.lineno
    complete = True
    fault = ""
    result: Value = UNKNOWN
    with reader.recording() as items:
        try:
            result = reader.call(function, tuple(args), dict(kwargs))
        except (Exhausted, RecursionError):
            complete = False
        except Exception as error:  # one odd function must not cost a file its findings
            complete = False
            fault = f"{type(error).__name__}: {error}"
        if not complete:
            reader.missing("the rest")
    shown = tuple((str(i), str(a)) for i, v in enumerate(args) for a in arrays_in([v]))
    returned = tuple(arrays_in(_plain(result)))
    return Read(name, line, tuple(items), shown, complete, returned, fault)


def _plain(result: Value) -> Value:
    """An object that is returned, as the dict of its attributes."""
    return dict(result.attributes) if isinstance(result, Instance) else result


__all__ = ["Array", "Bound", "Missing", "Place", "Read", "Scope", "read_conventional", "run"]
