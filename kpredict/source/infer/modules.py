"""`nn.Module` itself: what its methods do to the parameters, buffers and children of an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from kpredict.source.infer.joining import arrays_in
from kpredict.source.infer.shapes.pointwise import category, channels_last
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.transforms import Transforms
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Device,
    DType,
    Instance,
    Layout,
    Several,
    Value,
)  # fmt: skip

_METHODS = frozenset(
    "parameters named_parameters buffers named_buffers children named_children modules "
    "named_modules to cuda cpu half float double bfloat16 eval train requires_grad_ "
    "register_buffer register_parameter add_module register_module apply zero_grad state_dict "
    "load_state_dict compile get_submodule type share_memory register_forward_hook "
    "register_forward_pre_hook register_full_backward_hook _get_name extra_repr".split()
)


_HOOKS = {"register_forward_hook": "after", "register_forward_pre_hook": "before"}


def children(o: Instance) -> Iterator[Instance]:
    """The objects one level below, in the order they were set; those in lists and dicts too."""
    for value in o.attributes.values():
        yield from _objects(value)


def _objects(value: Value) -> Iterator[Instance]:
    if isinstance(value, Instance):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _objects(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _objects(v)
    elif isinstance(value, Several):
        yield from _objects(value.item)


def everything(o: Instance) -> list[Instance]:
    """It and all objects below it, each once."""
    found: list[Instance] = []
    todo = [o]
    while todo:
        one = todo.pop()
        if any(one is f for f in found):
            continue
        found.append(one)
        todo += children(one)
    return found


def named_children(o: Instance) -> Iterator[tuple[str, Instance]]:
    """The modules one level below with their names; those in plain lists are none."""
    for key, value in o.attributes.items():
        if isinstance(value, Instance) and value.cls.is_a("Module"):
            yield key, value
        elif key == "_items" and isinstance(value, (list, dict)):
            pairs = enumerate(value) if isinstance(value, list) else value.items()
            yield from ((str(k), m) for k, m in pairs if isinstance(m, Instance))


def named_modules(o: Instance, name: str = "") -> Iterator[tuple[str, Instance]]:
    """It and all modules below it, each once, in PyTorch's order with dotted names."""
    seen: list[Instance] = []

    def walk(one: Instance, path: str) -> Iterator[tuple[str, Instance]]:
        if any(one is s for s in seen):
            return
        seen.append(one)
        yield path, one
        for key, child in named_children(one):
            yield from walk(child, f"{path}.{key}" if path else key)

    yield from walk(o, name)


def convert(o: Instance, change: Callable[[Array], Array]) -> None:
    """Replace every parameter and buffer; arrays that shared memory share it afterwards."""
    done: dict[int, Array] = {}

    def one(value: Value) -> Value:
        if isinstance(value, Array) and value.role:
            if value.storage not in done:
                done[value.storage] = change(value)
            return replace(done[value.storage], role=value.role, requires_grad=value.requires_grad)
        if isinstance(value, list):
            return [one(v) for v in value]
        if isinstance(value, dict):
            return {k: one(v) for k, v in value.items()}
        if isinstance(value, Several):
            return Several(one(value.item))
        return value

    for m in everything(o):
        for key in list(m.attributes):
            m.attributes[key] = one(m.attributes[key])


class Modules(Transforms):
    def has_module_method(self, o: Instance, name: str) -> bool:
        if o.cls.is_tuple:
            return name in ("_replace", "_asdict")
        return name in _METHODS and (o.cls.is_a("Module") or o.open)

    def module_method(
        self, o: Instance, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if name in ("parameters", "named_parameters", "buffers", "named_buffers"):
            return self._leaves(o, name)
        if name in ("children", "modules", "named_children", "named_modules"):
            found = list(named_children(o)) if "children" in name else list(named_modules(o))
            return found if name.startswith("named") else [m for _, m in found]
        if name in ("train", "eval"):
            on = name == "train" and (not args or args[0] is True)
            for m in everything(o):
                m.attributes["training"] = on
            return o
        if name in ("to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type"):
            self._converted(o, name, args, kwargs)
            return o
        if name == "requires_grad_":
            on = not args or args[0] is True
            for m in everything(o):
                for key, v in m.attributes.items():
                    if isinstance(v, Array) and v.role == "parameter":
                        m.attributes[key] = replace(v, requires_grad=on)
            return o
        if (
            name in ("register_buffer", "register_parameter", "add_module", "register_module")
            and args
        ):
            value = args[1] if len(args) > 1 else next(iter(kwargs.values()), None)
            if name == "register_buffer" and isinstance(value, Array):
                value = replace(value, role="buffer")
            if isinstance(args[0], str):
                o.attributes[args[0]] = value
            return None
        if name in _HOOKS and args:
            kept = o.attributes.get("_hooks", ())
            before = kept if isinstance(kept, tuple) else ()
            o.attributes["_hooks"] = (*before, (_HOOKS[name], args[0]))
            return UNKNOWN
        if "backward" in name and name.startswith("register_"):
            self.hooked = True
            return UNKNOWN
        if name == "_replace":
            return Instance(o.cls, {**o.attributes, **kwargs})
        if name == "_asdict":
            return dict(o.attributes)
        if name == "apply" or name.startswith("register_") or name in ("compile", "share_memory"):
            return o
        if name == "zero_grad":
            self.called("zero_grad", **kwargs)
            leaves = arrays_in(self._leaves(o, "parameters"))
            self.forget_gradients(leaves, kwargs.get("set_to_none") is not False)
            return None
        return UNKNOWN

    def _leaves(self, o: Instance, name: str) -> Value:
        role = "parameter" if "parameters" in name else "buffer"
        out: list[Value] = []
        whole = True
        seen: set[int] = set()
        paths = {id(m): path for path, m in named_modules(o)}
        ordered = [m for _, m in named_modules(o)]
        for m in [*ordered, *(x for x in everything(o) if id(x) not in paths)]:
            whole = whole and not m.open and not m.cls.has_unknown_base
            for key, value in m.attributes.items():
                path = f"{paths[id(m)]}.{key}" if paths.get(id(m)) else key
                parts: list[tuple[str, Value]] = [(path, value)]
                if key == "_items" and isinstance(value, (list, dict)):
                    pairs = enumerate(value) if isinstance(value, list) else value.items()
                    parts = [(f"{path.removesuffix('_items')}{k}", v) for k, v in pairs]
                for found, held in parts:
                    if isinstance(held, Array) and held.role == role and held.storage not in seen:
                        seen.add(held.storage)
                        out.append((found, held) if name.startswith("named") else held)
                whole = whole and not isinstance(value, Several)
        return out if whole else Several(out[0] if out else UNKNOWN)

    def _converted(
        self, o: Instance, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> None:
        dtype: str | None = {"half": "float16", "float": "float32", "double": "float64",
                             "bfloat16": "bfloat16"}.get(name)  # fmt: skip
        device: str | None = name if name in ("cuda", "cpu") else None
        last = kwargs.get("memory_format") == Layout("channels_last")
        for v in (*args, kwargs.get("dtype"), kwargs.get("device")):
            if name not in ("to", "type"):
                break
            if isinstance(v, DType):
                dtype = v.name
            elif isinstance(v, Device):
                device = v.type
            elif isinstance(v, str):
                device = v.split(":")[0]
            elif isinstance(v, Array):
                dtype, device = v.dtype, v.device
            elif v is UNKNOWN:
                device = "cuda"

        def change(a: Array) -> Array:
            floating = a.dtype is not None and category(a.dtype) >= 2
            stride = a.stride
            if last and a.sizes is not None and len(a.sizes) == 4:
                stride = channels_last(a.sizes)
            new = fresh(a.shape, dtype if dtype and floating else a.dtype, device or a.device)
            return replace(new, stride=stride)

        convert(o, change)
