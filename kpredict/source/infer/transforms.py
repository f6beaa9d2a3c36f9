"""`torch.func`: functions made of functions. `grad` runs the tape; `vmap` reads one example.

Under vmap an op runs once for all examples. One example's pointwise ops, views, reductions and
products are as many launches as the batch's, so the body is read with the batch dim taken away;
any other op has a batching rule of its own, and how many launches that is stays open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpredict.source.infer.joining import arrays_in
from kpredict.source.infer.optimizers import Optimizers
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.trace import steps
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Instance,
    Partial,
    Symbol,
    Value,
)  # fmt: skip

_ONE_FOR_ALL = frozenset(
    "sum mean mm mv dot bmm addmm amax amin linalg_vector_norm max min _softmax _log_softmax var "
    "std argmax argmin prod logsumexp clone _to_copy ones_like zeros_like".split()
)
_MAKES = frozenset("vmap func.vmap func.grad func.grad_and_value _vmap_internals.vmap".split())


class Transforms(Optimizers):
    def transform(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls of `torch.func.*`. Returns NotImplemented for all that is not read here."""
        if name in _MAKES and args:
            return Partial(
                Symbol(f"reader.{name.rpartition('.')[2]}"), (args[0], tuple(args[1:]), kwargs), {}
            )
        if name in ("func.functional_call", "nn.utils.stateless.functional_call"):
            return self._functional(*args, **kwargs)
        return NotImplemented

    def transformed(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The call of what `transform` made: function, options, then the caller's arguments."""
        function, given, options, *rest = args
        if name == "vmap":
            names = ("in_dims", "out_dims", "randomness", "chunk_size")
            told = {**dict(zip(names, given, strict=False)), **options}
            return self._mapped(function, rest, kwargs, told)
        told = {**dict(zip(("argnums", "has_aux"), given, strict=False)), **options}
        return self._graded(name, function, rest, kwargs, told)

    def _mapped(
        self, f: Value, args: Sequence[Value], kwargs: Mapping[str, Value],
        told: Mapping[str, Value],
    ) -> Value:  # fmt: skip
        dims = told.get("in_dims", 0)
        each = dims if isinstance(dims, (tuple, list)) else (dims,) * len(args)
        size: list[int | None] = []
        taken = [_without(a, d, size) for a, d in zip(args, each, strict=False)]
        batch = next((n for n in size if n is not None), None)
        with self.recording() as inside:
            out = self.call(f, taken, {k: _without(v, 0, size) for k, v in kwargs.items()})
        self.items += inside
        if any(
            s.short not in _ONE_FOR_ALL and not s.tags & {"pointwise", "view"}
            for s in steps(inside)
        ):
            self.missing("vmap")
        return _with(out, batch, told.get("out_dims", 0))

    def _graded(
        self, name: str, f: Value, args: Sequence[Value], kwargs: Mapping[str, Value],
        told: Mapping[str, Value],
    ) -> Value:  # fmt: skip
        which = told.get("argnums", 0)
        numbers = which if isinstance(which, (tuple, list)) else (which,)
        given = list(args)
        for i in numbers:
            if isinstance(i, int) and i < len(given):
                given[i] = _requiring(given[i])
        with self.mode(grad=True):
            out = self.call(f, given, kwargs)
        aux = None
        if told.get("has_aux") is True and isinstance(out, (tuple, list)) and len(out) == 2:
            out, aux = out
        if not isinstance(out, Array):
            self.missing("grad")
            return UNKNOWN
        wanted = [given[i] for i in numbers if isinstance(i, int) and i < len(given)]
        found = self.gradients(out, [a for w in wanted for a in arrays_in(w)])
        grads = [_shaped(w, found) for w in wanted] if isinstance(found, tuple) else [UNKNOWN]
        result: Value = grads[0] if not isinstance(which, (tuple, list)) else tuple(grads)
        if name == "grad_and_value":
            return result, (out, aux) if aux is not None else out
        return (result, aux) if aux is not None else result

    def _functional(
        self, module: Value, parameters: Value = None, args: Value = (), kwargs: Value = None,
        **rest: Value,
    ) -> Value:  # fmt: skip
        """A module's forward with other parameters."""
        if not isinstance(module, Instance) or not isinstance(parameters, dict):
            self.missing("functional_call")
            return UNKNOWN
        undo: list[tuple[Instance, str, Value]] = []
        for path, value in parameters.items():
            *owners, last = str(path).split(".")
            o: Value = module
            for part in owners:
                o = self.attribute(o, part)
                if part.isdigit() and not isinstance(o, Instance):
                    o = self.item(module, int(part))
            if isinstance(o, Instance):
                undo.append((o, last, o.attributes.get(last)))
                o.attributes[last] = value
        given = args if isinstance(args, (tuple, list)) else (args,)
        out = self.call(module, tuple(given), kwargs if isinstance(kwargs, dict) else {})
        for o, last, before in reversed(undo):
            o.attributes[last] = before
        return out


def _without(value: Value, dim: Value, sizes: list[int | None]) -> Value:
    """One example of a batch."""
    if dim is None:
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(_without(v, dim, sizes) for v in value)
    if isinstance(value, dict):
        return {k: _without(v, dim, sizes) for k, v in value.items()}
    if not isinstance(value, Array) or not value.shape or not isinstance(dim, int):
        return value
    d = dim % len(value.shape)
    sizes.append(value.shape[d])
    stride = value.stride
    return replace(
        value,
        shape=(*value.shape[:d], *value.shape[d + 1 :]),
        stride=None if stride is None else (*stride[:d], *stride[d + 1 :]),
    )


def _with(value: Value, batch: int | None, dim: Value) -> Value:
    if isinstance(value, (tuple, list)):
        dims = dim if isinstance(dim, (tuple, list)) else (dim,) * len(value)
        return tuple(_with(v, batch, d) for v, d in zip(value, dims, strict=False))
    if isinstance(value, dict):
        return {k: _with(v, batch, dim) for k, v in value.items()}
    if not isinstance(value, Array) or value.shape is None:
        return value
    out = fresh((batch, *value.shape), value.dtype, value.device)
    if dim == 0 or not isinstance(dim, int) or out.shape is None or out.stride is None:
        return out
    at = dim % len(out.shape)
    order = [*range(1, at + 1), 0, *range(at + 1, len(out.shape))]
    return replace(
        out, shape=tuple(out.shape[i] for i in order), stride=tuple(out.stride[i] for i in order)
    )


def _requiring(value: Value) -> Value:
    if isinstance(value, Array):
        return replace(value, requires_grad=True)
    if isinstance(value, (tuple, list)):
        return type(value)(_requiring(v) for v in value)
    if isinstance(value, dict):
        return {k: _requiring(v) for k, v in value.items()}
    return value


def _shaped(like: Value, found: Sequence[Value]) -> Value:
    """The gradients in the containers that their arrays came in."""
    left = list(found)

    def fill(v: Value) -> Value:
        if isinstance(v, Array):
            return left.pop(0) if left else UNKNOWN
        if isinstance(v, (tuple, list)):
            return type(v)(fill(x) for x in v)
        if isinstance(v, dict):
            return {k: fill(x) for k, x in v.items()}
        return v

    return fill(like)
