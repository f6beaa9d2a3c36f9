"""Calls and attributes: functions, methods, classes and objects of the files we read."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpredict.source.infer.arrays import dtype_named
from kpredict.source.infer.operators import Frame
from kpredict.source.infer.statements import RAISE, Statements
from kpredict.source.infer.surface import python_names
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Context,
    Device,
    DType,
    Function,
    Instance,
    Layout,
    Optimizer,
    Scope,
    Several,
    Super,
    Symbol,
    Value,
    arrays_in,
    join,
)  # fmt: skip

DEEPEST = 40
"""Calls inside calls; a recursion ends here, unknown."""
_LAYOUTS = {"channels_last", "channels_last_3d", "contiguous_format", "preserve_format", "strided",
            "sparse_coo"}  # fmt: skip


class Calls(Statements):
    # -- attributes ------------------------------------------------------------------------

    def attribute(self, owner: Value, name: str) -> Value:
        match owner:
            case Array():
                return self._of_array(owner, name)
            case Instance():
                return self._of_instance(owner, name)
            case Class():
                return self._of_class(owner, name)
            case Symbol():
                return self.symbol(f"{owner.path}.{name}")
            case Scope():
                if name in owner.names:
                    return owner.names[name]
                return self.import_submodule(owner, name)
            case Super():
                return self._of_super(owner, name)
            case DType():
                return {
                    "is_floating_point": owner.name.startswith(("float", "bfloat")),
                    "is_complex": owner.name.startswith("complex"),
                }.get(name, UNKNOWN)
            case Device():
                return owner.type if name == "type" else None if name == "index" else UNKNOWN
            case tuple() if name in _FIELDS and len(owner) > _FIELDS[name]:
                return owner[_FIELDS[name]]
            case (
                str()
                | list()
                | dict()
                | set()
                | tuple()
                | Optimizer()
                | int()
                | float()
                | Several()
            ):
                return Bound(owner, name)
            case Function() if name == "__wrapped__":
                return owner
        return UNKNOWN

    def _of_array(self, a: Array, name: str) -> Value:
        if f"Tensor.{name}" in python_names() and name not in _ATTRIBUTES:
            return Bound(a, name)
        value = self.array_attribute(a, name)
        return Bound(a, name) if value is UNKNOWN and name not in _ATTRIBUTES else value

    def _of_instance(self, o: Instance, name: str) -> Value:
        if name in o.attributes:
            return o.attributes[name]
        if name == "__class__":
            return o.cls
        found, owner = o.cls.lookup(name)
        if owner is None:
            if self.has_module_method(o, name):
                return Bound(o, name)
            items = o.attributes.get("_items")
            if isinstance(items, dict) and name in items:
                return items[name]
            return UNKNOWN
        return self._bind(found, o, o.cls)

    def _bind(self, found: Value, o: Value, cls: Class) -> Value:
        if not isinstance(found, Function):
            return found
        if found.kind == "static":
            return found
        if found.kind == "class":
            return Bound(cls, found.qualname, found)
        if found.kind == "property":
            return self.call_function(found, (o,), {})
        return Bound(o, found.qualname, found)

    def _of_class(self, cls: Class, name: str) -> Value:
        if name == "__name__":
            return cls.name
        if name == "apply" and any(
            b.path.endswith("autograd.Function")
            for c in cls.lines()
            for b in c.bases
            if isinstance(b, Symbol)
        ):
            return Bound(cls, "apply")
        found, owner = cls.lookup(name)
        if owner is None:
            return UNKNOWN
        if isinstance(found, Function) and found.kind == "class":
            return Bound(cls, found.qualname, found)
        return found

    def _of_super(self, s: Super, name: str) -> Value:
        cls = s.instance.cls if isinstance(s.instance, Instance) else s.instance
        if not isinstance(cls, Class):
            return UNKNOWN
        lines = cls.lines()
        after = lines[lines.index(s.owner) + 1 :] if s.owner in lines else lines[1:]
        for c in after:
            if name in c.attributes:
                return self._bind(c.attributes[name], s.instance, cls)
        if isinstance(s.instance, Instance) and self.has_module_method(s.instance, name):
            return Bound(s.instance, name)
        if name == "__init__":
            if isinstance(s.instance, Instance):
                s.instance.open = s.instance.open or cls.has_unknown_base
            return Symbol("builtins.none")
        return UNKNOWN

    def super_of(self, frame: Frame, args: Sequence[Value] | None) -> Value:
        if args:
            return (
                Super(args[0], args[1]) if isinstance(args[0], Class) and len(args) > 1 else UNKNOWN
            )
        first = next(iter(frame.names.values()), UNKNOWN)
        return UNKNOWN if frame.owner is None else Super(frame.owner, first)

    def symbol(self, path: str) -> Value:
        """A name of a library: a dtype, a class of the prelude, else the bare Symbol."""
        if path.startswith("torch."):
            short = path.removeprefix("torch.")
            dtype = dtype_named(short)
            if dtype is not None:
                return dtype
            if short in _LAYOUTS:
                return Layout(short)
            if short.startswith("nn."):
                cls = self.library_class(path)
                if cls is not None:
                    return cls
            if short in ("backends.cudnn.allow_tf32", "backends.cuda.matmul.allow_tf32"):
                return UNKNOWN
        elif path in _CONSTANTS:
            return _CONSTANTS[path]
        return Symbol(path)

    # -- what the library layer gives ------------------------------------------------------

    def library_class(self, path: str) -> Class | None:
        raise NotImplementedError

    def library_call(self, path: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        raise NotImplementedError

    def has_module_method(self, o: Instance, name: str) -> bool:
        raise NotImplementedError

    def module_method(
        self, o: Instance, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError

    def value_method(
        self, owner: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        raise NotImplementedError

    def import_submodule(self, scope: Scope, name: str) -> Value:
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
            case Context() if args and isinstance(args[0], Function):  # `torch.no_grad()(f)`
                return replace(args[0], decorators=(*args[0].decorators, function))
        if arrays_in([*args, *kwargs.values()]):
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
        for name in ("__call__", "forward"):
            found, owner = o.cls.lookup(name)
            if isinstance(found, Function) and owner is not None:
                return self.call_function(found, (o, *args), kwargs)
        if arrays_in([*args, *kwargs.values()]):
            self.missing(f"{o.cls.name}.forward")
        return UNKNOWN

    def _apply(self, cls: Class, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """`autograd.Function`: its forward, without grad; what it returns requires grad again."""
        forward = cls.find("forward")
        if not isinstance(forward, Function):
            return UNKNOWN
        takes_ctx = "setup_context" not in cls.attributes
        with self.mode(grad=False):
            context = (
                (Instance(Class("ctx", (), dict(_CONTEXT), cls.scope), open=True),)
                if takes_ctx
                else ()
            )
            out = self.call_function(forward, (*context, *args), kwargs)
        if (
            isinstance(out, Array)
            and self.grad
            and any(a.requires_grad for a in arrays_in(list(args)))
        ):
            return replace(out, requires_grad=True)
        return out

    def call_function(
        self, f: Function, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if len(self.stack) > DEEPEST:
            self.missing(f.qualname)
            return UNKNOWN
        names = self.bind_parameters(f, args, kwargs)
        frame = Frame(f.scope, f.qualname, names, f.closure, f.owner)
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
        if _yields(f.node):
            frame.yielded = []
        end = self.execute(f.node.body, frame)
        if frame.yielded is not None:
            item: Value = frame.yielded[0] if frame.yielded else UNKNOWN
            for other in frame.yielded[1:]:
                item = join(item, other)
            return Several(item)
        if not frame.returned:
            return UNKNOWN if end == RAISE else None
        result = frame.returned[0]
        for other in frame.returned[1:]:
            result = join(result, other)
        return result

    def bind_parameters(
        self, f: Function, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Parameter names to values; those not given and without default are UNKNOWN."""
        a = f.node.args
        names: dict[str, Value] = {}
        positional = [p.arg for p in (*a.posonlyargs, *a.args)]
        left = dict(kwargs)
        for name, value in zip(positional, args, strict=False):
            names[name] = value
        for name in (*positional[len(args) :], *(p.arg for p in a.kwonlyargs)):
            if name in left:
                names[name] = left.pop(name)
            else:
                names[name] = f.defaults.get(name, UNKNOWN)
        if a.vararg:
            names[a.vararg.arg] = tuple(args[len(positional) :])
        if a.kwarg:
            names[a.kwarg.arg] = left
        return names

    def instantiate(self, cls: Class, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        o = Instance(cls)
        if cls.fields:
            values = {**dict(zip(cls.fields, args, strict=False)), **kwargs}
            for name in cls.fields:
                o.attributes[name] = values.get(name, cls.find(name))
            post = cls.find("__post_init__")
            if isinstance(post, Function):
                self.call_function(post, (o,), {})
            return o
        if cls.is_a("Module"):
            o.attributes["training"] = True
        init = cls.find("__init__")
        if isinstance(init, Function):
            self.call_function(init, (o, *args), kwargs)
        else:
            o.open = cls.has_unknown_base
        return o

    def method_named(self, cls: Class, name: str) -> Function | None:
        found = cls.find(name)
        return found if isinstance(found, Function) else None


_ATTRIBUTES = frozenset(
    "shape dtype device ndim data grad T mT H mH is_cuda requires_grad layout is_sparse is_nested "
    "is_quantized is_meta itemsize nbytes real imag is_leaf grad_fn names output_nr _version "
    "is_cpu is_mps is_xpu retains_grad".split()
)
_FIELDS = {
    "values": 0, "indices": 1, "sign": 0, "logabsdet": 1, "eigenvalues": 0, "eigenvectors": 1,
    "L": 0, "info": 1, "Q": 0, "R": 1, "U": 0, "S": 1, "Vh": 2, "solution": 0, "min": 0, "max": 1,
}  # fmt: skip
"""Names of torch.return_types, by their place."""
_CONTEXT = {
    n: Symbol("builtins.none")
    for n in ("save_for_backward", "mark_non_differentiable", "mark_dirty", "set_materialize_grads")
}
"""What `ctx` of an autograd.Function offers."""
_CONSTANTS: dict[str, Value] = {
    "math.pi": 3.141592653589793, "math.e": 2.718281828459045, "math.inf": float("inf"),
    "math.nan": float("nan"), "numpy.pi": 3.141592653589793, "numpy.inf": float("inf"),
    "typing.TYPE_CHECKING": False, "sys.version_info": (3, 12, 0), "numpy.newaxis": None,
}  # fmt: skip


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


def _yields(node: ast.AST) -> bool:
    """Whether a function body has a `yield` of its own. Noted on the node: it is asked per call."""
    known: bool | None = getattr(node, "kpredict_yields", None)
    if known is None:
        known = _has_yield(node)
        node.kpredict_yields = known  # type: ignore[attr-defined]
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
