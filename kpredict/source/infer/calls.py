"""Calls: of functions, methods, classes and objects of the files we read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kpredict.source.infer.attributes import Attributes
from kpredict.source.infer.choices import RAISE
from kpredict.source.infer.expressions import ANY
from kpredict.source.infer.joining import arrays_in, common, touches
from kpredict.source.infer.shapes.pointwise import category
from kpredict.source.infer.state import Frame
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Context,
    Cursor,
    Function,
    Instance,
    Managed,
    Partial,
    Several,
    Symbol,
    Value,
)  # fmt: skip

DEEPEST = 40
"""Calls inside calls; a recursion ends here, unknown."""


class Calls(Attributes):
    # -- what the library layer gives ------------------------------------------------------

    def library_call(self, path: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        raise NotImplementedError

    def module_method(
        self, o: Instance, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError

    def value_method(
        self, owner: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError

    # -- calls -----------------------------------------------------------------------------

    def call(self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        self.burn(3)
        match function:
            case Function():
                return self.call_function(function, args, kwargs)
            case Bound(owner=Array() as owner, name=name):
                return self._array_call(owner, name, args, kwargs)
            case Bound(owner=owner, function=Function() as method):
                return self.call_function(method, (owner, *args), kwargs)
            case Bound(owner=Class() as cls, name="apply"):
                return self._apply(cls, args, kwargs)
            case Bound(owner=Instance() as owner, name=name):
                return self.module_method(owner, name, args, kwargs)
            case Bound(owner=owner, name=name):
                return self.value_method(owner, name, args, kwargs)
            case Class():
                return self.instantiate(function, args, kwargs)
            case Symbol():
                return self.library_call(function.path, args, kwargs)
            case Instance():
                return self._call_instance(function, args, kwargs)
            case Several():
                return self.call(function.item, args, kwargs)
            case Partial():
                return self.call(
                    function.function, (*function.args, *args), {**function.kwargs, **kwargs}
                )
            case Context() if args and isinstance(args[0], Function):  # `torch.no_grad()(f)`
                return replace(args[0], decorators=(*args[0].decorators, function))
            case Context() if args and function.kind in ("grad", "autocast"):
                return Partial(Symbol("reader.under"), (function, args[0]), {})
        if touches([*args, *kwargs.values()]):
            self.missing("a call of something unknown")
        return UNKNOWN

    def _array_call(
        self, a: Array, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        result = self.array_method(a, name, args, kwargs)
        if result is NotImplemented:
            return self.torch_call(name, (a, *args), kwargs)
        return result

    def _call_instance(
        self, o: Instance, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        kept = o.attributes.get("_hooks", ())
        hooks = kept if isinstance(kept, tuple) else ()
        for when, hook in hooks:
            if when == "before":
                changed = self.call(hook, (o, tuple(args)), {})
                if changed is not None and changed is not UNKNOWN:
                    args = changed if isinstance(changed, tuple) else (changed,)
        out = self._forward(o, args, kwargs)
        for when, hook in hooks:
            if when == "after":
                changed = self.call(hook, (o, tuple(args), out), {})
                out = changed if changed is not None and changed is not UNKNOWN else out
        return out

    def _forward(self, o: Instance, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        for name in ("__call__", "forward"):
            found, owner = o.cls.lookup(name)
            if name in o.attributes:  # `self.forward = …`
                return self.call(o.attributes[name], args, kwargs)
            if isinstance(found, Function) and owner is not None:
                return self.call_function(found, (o, *args), kwargs)
        if touches([*args, *kwargs.values()]):
            self.missing(f"{o.cls.name}.forward")
        return UNKNOWN

    def _apply(self, cls: Class, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """`autograd.Function`: its forward, without grad; what it returns requires grad again."""
        forward = cls.find("forward")
        if not isinstance(forward, Function):
            return UNKNOWN
        context = self.context_of(cls)
        setup = cls.find("setup_context")
        with self.mode(grad=False):
            if isinstance(setup, Function):
                out = self.call_function(forward, args, kwargs)
                self.call_function(setup, (context, tuple(args), out), {})
            else:
                out = self.call_function(forward, (context, *args), kwargs)
        if self.grad and any(a.requires_grad for a in arrays_in(list(args))):
            out = requiring(out)
            self.note_custom(cls, context, args, out)
        return out

    def context_of(self, cls: Class) -> Instance:
        """The `ctx` of an `autograd.Function`."""
        raise NotImplementedError

    def note_custom(
        self, cls: Class, context: Instance, inputs: Sequence[Value], out: Value
    ) -> None:
        """Put a call of an `autograd.Function` on the tape."""
        raise NotImplementedError

    def call_function(
        self, f: Function, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if f.wrapped is not None:
            return self.call(f.wrapped, args, kwargs)
        if _is_manager(f):
            return Managed(f, tuple(args), kwargs)
        return self._called(f, args, kwargs, None)

    def run_generator(self, call: Managed, consume: Callable[[Value], None]) -> None:
        self._called(call.function, call.args, call.kwargs, consume)

    def _called(
        self, f: Function, args: Sequence[Value], kwargs: Mapping[str, Value],
        consume: Callable[[Value], None] | None,
    ) -> Value:  # fmt: skip
        if len(self.stack) > DEEPEST:
            self.missing(f.qualname)
            return UNKNOWN
        names = self.bind_parameters(f, args, kwargs)
        frame = Frame(f.scope, f.qualname, names, f.closure, f.owner, consume=consume)
        if f.scope is self.watched and f.qualname not in self.seen and arrays_in(names, 2):
            self.seen[f.qualname] = _given(f, names)
        if self.perhaps_arrays:
            frame.perhaps, self.perhaps_arrays = self.perhaps_arrays, {}
        here = self.here
        users = not f.scope.library
        opened = self.opened
        self.opened = 0 if users else opened + 1
        if users:
            self.stack.append(here)
        try:
            with self.mode(*_modes(f)):
                return self._run(f, frame)
        finally:
            self.opened = opened
            if users:
                self.stack.pop()
            self.here = here

    def _run(self, f: Function, frame: Frame) -> Value:
        if isinstance(f.node, ast.Lambda):
            return self.evaluate(f.node.body, frame)
        if _yields(f.node, f.scope.yields) and frame.consume is None:
            frame.yielded = []
        end = self.execute(f.node.body, frame)
        if frame.yielded is not None:
            if frame.whole:
                return Cursor(frame.yielded)
            return Several(common(frame.yielded) if frame.yielded else UNKNOWN)
        if not frame.returned:
            return UNKNOWN if end == RAISE else None
        return common(frame.returned)

    def bind_parameters(
        self, f: Function, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Parameter names to values; those not given and without default are UNKNOWN."""
        a = f.node.args
        names: dict[str, Value] = {}
        positional = [p.arg for p in (*a.posonlyargs, *a.args)]
        left = dict(kwargs)
        perhaps_given = ANY in left
        left.pop(ANY, None)
        for name, value in zip(positional, args, strict=False):
            names[name] = value
        for name in (*positional[len(args) :], *(p.arg for p in a.kwonlyargs)):
            if name in left:
                names[name] = left.pop(name)
            else:
                names[name] = UNKNOWN if perhaps_given else f.defaults.get(name, UNKNOWN)
        if a.vararg:
            names[a.vararg.arg] = tuple(args[len(positional) :])
        if a.kwarg:
            names[a.kwarg.arg] = UNKNOWN if perhaps_given else left
        return names

    def instantiate(self, cls: Class, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if args and any(isinstance(b, Symbol) and b.path.startswith("enum.")
                        for c in cls.lines() for b in c.bases):  # fmt: skip
            return args[0]
        o = Instance(cls)
        init, owner = cls.lookup("__init__")
        if cls.fields and owner is None:
            self._fill(o, args, kwargs)
            return o
        if cls.is_a("Module"):
            o.attributes["training"] = True
        if isinstance(init, Function):
            self.call_function(init, (o, *args), kwargs)
        else:
            o.open = cls.has_unknown_base
            o.attributes.update({k: v for k, v in kwargs.items() if k != ANY})
        return o

    def _fill(self, o: Instance, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
        """The fields of a dataclass or named tuple."""
        values = {**dict(zip(o.cls.fields, args, strict=False)), **kwargs}
        for name in o.cls.fields:
            if name in values or ANY in values:
                o.attributes[name] = values.get(name, UNKNOWN)
                continue
            default = o.cls.find(name)
            if isinstance(default, Partial) and default.function == Symbol("dataclasses.field"):
                factory = default.kwargs.get("default_factory")
                default = (
                    default.kwargs.get("default", UNKNOWN)
                    if factory is None
                    else self.call(factory, (), {})
                )
            o.attributes[name] = default
        post = o.cls.find("__post_init__")
        if isinstance(post, Function):
            self.call_function(post, (o,), {})


def _given(f: Function, names: Mapping[str, Value]) -> Mapping[str, Value]:
    """The arguments of a call, without the object it is a method of."""
    first = [*f.node.args.posonlyargs, *f.node.args.args][:1]
    method = f.owner is not None and f.kind != "static"
    return {n: v for n, v in names.items() if not (method and first and n == first[0].arg)}


def requiring(value: Value) -> Value:
    """Floating results of a differentiable function require grad."""
    if isinstance(value, Array):
        whole = value.dtype is not None and category(value.dtype) < 2
        return value if whole else replace(value, requires_grad=True)
    if isinstance(value, (tuple, list)):
        return type(value)(requiring(v) for v in value)
    return value


def _is_manager(f: Function) -> bool:
    return any(
        isinstance(d, Symbol) and d.name in ("contextmanager", "asynccontextmanager")
        for d in f.decorators
    )


def _modes(f: Function) -> tuple[bool | None, str | bool | None]:
    """(grad, autocast) that the decorators of a function turn on."""
    grad: bool | None = None
    autocast: str | bool | None = True
    for d in f.decorators:
        kind, value = getattr(d, "kind", None), getattr(d, "value", None)
        if isinstance(d, Symbol) and d.name in ("no_grad", "inference_mode"):
            grad = False
        elif kind == "grad":
            grad = value
        elif kind == "autocast":
            autocast = value
    return grad, autocast


def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: tuple[int, ...] | None) -> bool:
    """Whether a function body has a `yield` of its own. Noted on the node: it is asked per call.
    Few files have the word at all, so its lines are asked before the tree is walked."""
    known: bool | None = getattr(node, "kpredict_yields", None)
    if known is None:
        inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        known = (lines is None or any(n in inside for n in lines)) and _has_yield(node)
        node.kpredict_yields = known  # type: ignore[union-attr]
    return known


def _has_yield(node: ast.AST) -> bool:
    todo = list(getattr(node, "body", []))
    while todo:
        n = todo.pop()
        if isinstance(n, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(n)
    return False
