"""Attributes: of arrays, objects, classes, modules and `super()`, and the names of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kpredict.source.infer.arrays import dtype_named
from kpredict.source.infer.state import Frame
from kpredict.source.infer.statements import Statements
from kpredict.source.infer.surface import python_names
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Cursor,
    Device,
    DType,
    Function,
    Instance,
    Layout,
    Optimizer,
    Partial,
    Scope,
    Several,
    Super,
    Symbol,
    Value,
)  # fmt: skip

_LAYOUTS = {"channels_last", "channels_last_3d", "contiguous_format", "preserve_format", "strided",
            "sparse_coo"}  # fmt: skip


class Attributes(Statements):
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
            case str() | int() | float() if name == "value":  # a member of an Enum is its value
                return owner
            case Optimizer() if name == "param_groups":
                return [{"params": owner.parameters, **owner.kwargs}]
            case (
                str() | list() | dict() | set() | tuple() | Optimizer() | int() | float()
                | Several() | Cursor()
            ):  # fmt: skip
                return Bound(owner, name)
            case Function() if name == "__wrapped__":
                return replace(owner, wrapped=None)
            case Function() if name == "__name__":
                return owner.qualname.rpartition(".")[2]
            case Partial() if name in ("func", "args", "keywords"):
                return {"func": owner.function, "args": owner.args}.get(name, dict(owner.kwargs))
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
        if name == "__dict__":
            return o.attributes
        found, owner = o.cls.lookup(name)
        if owner is None:
            if self.has_module_method(o, name):
                return Bound(o, name)
            items = o.attributes.get("_items")
            if isinstance(items, dict) and name in items:
                return items[name]
            other = o.cls.find("__getattr__")
            if isinstance(other, Function) and not name.startswith("__"):
                return self.call_function(other, (o, name), {})
            return UNKNOWN
        value = self._bind(found, o, o.cls)
        if isinstance(found, Function) and found.is_cached:
            o.attributes[name] = value
        return value

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
        if name in ("__name__", "__qualname__"):
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
        if name == "__call__" and isinstance(s.instance, Instance):
            return self.attribute(s.instance, "forward")
        if name in ("__setattr__", "__enter__", "__exit__", "__init_subclass__"):
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
            if short in ("amp.GradScaler", "cuda.amp.GradScaler"):
                return self.library_class(path)
            if short in ("backends.cudnn.allow_tf32", "backends.cuda.matmul.allow_tf32"):
                return UNKNOWN
        elif path in _CONSTANTS:
            return _CONSTANTS[path]
        return Symbol(path)

    # -- what later layers give ------------------------------------------------------------

    def library_class(self, path: str) -> Class | None:
        raise NotImplementedError

    def has_module_method(self, o: Instance, name: str) -> bool:
        raise NotImplementedError

    def import_submodule(self, scope: Scope, name: str) -> Value:
        raise NotImplementedError


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
_CONSTANTS: dict[str, Value] = {
    "math.pi": 3.141592653589793, "math.e": 2.718281828459045, "math.inf": float("inf"),
    "math.nan": float("nan"), "numpy.pi": 3.141592653589793, "numpy.inf": float("inf"),
    "typing.TYPE_CHECKING": False, "sys.version_info": (3, 12, 0), "numpy.newaxis": None,
}  # fmt: skip
