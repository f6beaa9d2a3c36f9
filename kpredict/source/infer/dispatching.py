"""How an ATen op gets into the trace: what it returns, what autocast casts, what the tape notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kpredict.source.infer.joining import arrays_in
from kpredict.source.infer.shapes.indexing import placed
from kpredict.source.infer.shapes.pointwise import category, pointwise
from kpredict.source.infer.shapes.registry import Unclear, device_of, fresh, shape_function
from kpredict.source.infer.state import State
from kpredict.source.infer.surface import Schema, choose
from kpredict.source.infer.trace import Step
from kpredict.source.infer.values import UNKNOWN, Array, DType, Several, Value

LOWER = frozenset("mm bmm addmm baddbmm addbmm convolution _thnn_fused_gru_cell".split())
"""Ops that autocast runs in the lower precision (autocast_mode.h, the `lower_precision_fp` list),
as they are dispatched after their composites are opened."""

FLOAT32 = frozenset(
    "pow exp log log2 log10 log1p rsqrt reciprocal erfinv acos asin cosh sinh tan _softmax "
    "_log_softmax prod cumsum cumprod nll_loss_forward mse_loss smooth_l1_loss huber_loss "
    "native_layer_norm native_group_norm norm _cdist_forward renorm sum logsumexp softplus "
    "binary_cross_entropy_with_logits kl_div cosine_similarity".split()
)
"""Ops that autocast runs in float32 (the `fp32` list)."""

_NO_GRADIENT = frozenset(
    "detach ones_like zeros_like full_like rand_like randn_like empty_like new_zeros new_ones "
    "new_full new_empty bernoulli multinomial nonzero _local_scalar_dense argmax argmin".split()
)
"""Ops whose results require no grad whatever they are given."""


class Dispatching(State):
    def aten(self, name: str, *args: Value, **kwargs: Value) -> Value:
        """Dispatch `aten.<name>` and return what it returns; unknown to us: UNKNOWN, said so."""
        found = choose(name, args, kwargs)
        if found is None:
            if arrays_in([*args, *kwargs.values()]):
                self.missing(f"aten.{name}")
                return self._like_tensor(args)
            return UNKNOWN
        return self.dispatch(*found)

    def _like_tensor(self, args: Sequence[Value]) -> Value:
        arrays = arrays_in(list(args))
        return fresh(None, None, device_of(arrays)) if arrays else UNKNOWN

    def dispatch(self, schema: Schema, bound: dict[str, Value]) -> Value:
        self.burn(5)
        name = schema.name.split(".")[1]
        plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        if self.autocast and plain in LOWER | FLOAT32:
            bound = self._autocast(plain, bound)
        outputs = self._outputs(plain, schema, bound)
        written = next((bound[p.name] for p in schema.parameters if p.written), None)
        if written is not None and isinstance(written, Array):
            outputs = written
        differentiable = self.grad and plain not in _NO_GRADIENT and any(
            a.requires_grad for a in arrays_in(list(bound.values()))
        )  # fmt: skip
        if differentiable and not isinstance(written, Array):
            outputs = _requiring(outputs)
        flat = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        if isinstance(outputs, Several):
            flat = (outputs.item,)
        if plain == "all" and isinstance(outputs, Array):
            self.checks.add(outputs.key)
        step = Step(schema.name, bound, tuple(flat), self.here, tuple(reversed(self.stack)),
                    schema.tags, self.grad, self.opened == 0)  # fmt: skip
        self.record(step)
        if differentiable:
            self._note(step, written)
        return outputs

    def _note(self, step: Step, written: Value) -> None:
        """Put a differentiable op on the tape. What is written in place must be a whole result of
        the tape; a view, a leaf or a plain buffer would change what others see."""
        if isinstance(written, Array):
            if not written.requires_grad or written.key not in self.produced:
                self.tangled = True
        elif "view" not in step.tags:
            self.produced |= {a.key for a in step.results}
        self.tape.append(step)

    def start_tape(self) -> None:
        """Forget what was taped: what ran so far is not part of the reading."""
        self.tape.clear()
        self.produced.clear()
        self.tangled = False

    def _outputs(self, plain: str, schema: Schema, bound: Mapping[str, Value]) -> Any:
        if plain.startswith("_foreach_"):
            return _foreach(plain, bound)
        function = shape_function(plain)
        arrays = arrays_in(list(bound.values()))
        if self.assume is not None:
            supposed = self._supposed(plain, bound)
            if supposed is not None:
                return supposed
        try:
            if function is not None:
                return function(bound)
            if "pointwise" in schema.tags:
                return pointwise(bound, plain)
        except (Unclear, KeyError, TypeError, ValueError, IndexError, ZeroDivisionError,
                AttributeError, AssertionError):  # fmt: skip
            pass
        dtype = arrays[0].dtype if arrays else None
        if "pointwise" not in schema.tags and function is None:
            dtype = None
        device = device_of(arrays) if arrays else placed(bound) if "device" in bound else "cuda"
        if dtype is not None and category(dtype) < 2:
            dtype = None
        if schema.returns_list:
            if "view" in schema.tags and arrays:
                return Several(replace(arrays[0], shape=None, stride=None, role=""))
            return UNKNOWN
        if schema.returns == 1:
            if "view" in schema.tags and arrays:
                return replace(arrays[0], shape=None, stride=None, role="")
            return fresh(None, dtype, device)
        return tuple(fresh(None, dtype if i == 0 else None, device) for i in range(schema.returns))

    def _supposed(self, plain: str, bound: Mapping[str, Value]) -> Any:
        """Results whose size only the device knows, with the size that the user stated."""
        n = self.assume
        x = bound.get("self")
        if not isinstance(x, Array) or x.shape is None:
            return None
        if plain == "nonzero":
            return fresh((n, len(x.shape)), "int64", x.device)
        if plain == "masked_select":
            return fresh((n,), x.dtype, x.device)
        if plain == "_unique2":
            return (fresh((n,), x.dtype, x.device), fresh(x.shape, "int64", x.device),
                    fresh((n,), "int64", x.device))  # fmt: skip
        if plain == "unique_consecutive":
            return (fresh((n,), x.dtype, x.device), fresh((0,), "int64", x.device),
                    fresh((n,), "int64", x.device))  # fmt: skip
        if plain == "bincount":
            return fresh((max((n or 0) + 1, bound.get("minlength") or 0),), "int64", x.device)
        if plain == "index":
            masks = [i for i in bound["indices"] if isinstance(i, Array) and i.dtype == "bool"]
            if len(masks) == 1 and len(bound["indices"]) == 1 and masks[0].shape is not None:
                return fresh((n, *x.shape[len(masks[0].shape) :]), x.dtype, x.device)
        return None

    def _autocast(self, plain: str, bound: dict[str, Value]) -> dict[str, Value]:
        """The casts autocast inserts; a parameter's cast is kept and made once."""
        target = self.autocast if plain in LOWER else "float32"
        assert target is not None

        def cast(v: Value) -> Value:
            if isinstance(v, tuple):
                return tuple(cast(x) for x in v)
            if not isinstance(v, Array) or v.device != "cuda" or v.dtype is None:
                return v
            if v.dtype == target or category(v.dtype) != 2 or v.dtype == "float64":
                return v
            key = (v.storage, target)
            keep = v.role == "parameter" or (v.requires_grad and plain in LOWER)
            if keep and key in self._casts:
                cached = self._casts[key]
                return replace(cached, shape=v.shape, stride=v.stride)
            before, self.autocast = self.autocast, None
            out = self.aten("_to_copy", v, dtype=DType(target))
            self.autocast = before
            if keep and isinstance(out, Array):
                self._casts[key] = out
            return out

        return {k: cast(v) for k, v in bound.items()}


def _foreach(plain: str, bound: Mapping[str, Value]) -> Any:
    """A list op returns one array for each of its first list; norms are scalars."""
    first = bound.get("self")
    if not isinstance(first, (tuple, list)) or not all(isinstance(a, Array) for a in first):
        return UNKNOWN
    shapes = [() if plain == "_foreach_norm" else a.shape for a in first]
    return [fresh(s, a.dtype, a.device) for s, a in zip(shapes, first, strict=True)]


def _requiring(outputs: Any) -> Any:
    """Floating results of a differentiable op require grad."""
    if isinstance(outputs, Array):
        if outputs.dtype is None or category(outputs.dtype) >= 2:
            return replace(outputs, requires_grad=True)
        return outputs
    if isinstance(outputs, (tuple, list)):
        return type(outputs)(_requiring(o) for o in outputs)
    return outputs
