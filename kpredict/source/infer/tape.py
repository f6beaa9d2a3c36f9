"""Backward inside a function: the tape of ops that require grad, and the engine that runs it.

What an op's gradient dispatches is written in the prelude's `derivatives`. As in PyTorch, a
gradient is summed to the shape of its input and cast to its dtype; several gradients of one array
are added; a leaf keeps its first gradient as it is where the layouts agree, else a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kpredict.source.infer.joining import arrays_in
from kpredict.source.infer.library import Library
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.shelf import prelude
from kpredict.source.infer.trace import Place, Step
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Class,
    Function,
    Instance,
    Value,
)  # fmt: skip

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Custom:
    """A call of an `autograd.Function`."""

    cls: Class
    context: Instance
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    place: Place
    stack: tuple[Place, ...]


class Tape(Library):
    # -- what user code calls --------------------------------------------------------------

    def backward(self, root: Array, seed: Value = None, create_graph: Value = False) -> None:
        """`root.backward()`: gradients of all leaves, accumulated."""
        with self.inside():
            leaves = self._run_back([root], [seed], None, create_graph is True)
            if leaves is None:
                self.missing("backward")
                return
            for leaf, gradient in leaves:
                self._accumulate(leaf, gradient)

    def gradients(
        self, outputs: Value, inputs: Value, grad_outputs: Value = None, create_graph: Value = False
    ) -> Value:
        """`torch.autograd.grad`: a tuple, one for each input."""
        roots, wanted = arrays_in(outputs), arrays_in(inputs)
        seeds: list[Value] = [*arrays_in(grad_outputs)] or [None] * len(roots)
        found = None
        if len(seeds) == len(roots):
            with self.inside():
                found = self._run_back(roots, seeds, wanted, create_graph is True)
        if found is None:
            self.missing("autograd.grad")
            return tuple(fresh(a.shape, a.dtype, a.device) for a in wanted)
        by_key = {a.key: g for a, g in found}
        return tuple(by_key.get(a.key) for a in wanted)

    def gradient_of(self, a: Array) -> Value:
        """`a.grad`."""
        if a.key in self.accumulated:
            return self.accumulated[a.key]
        return fresh(a.shape, a.dtype, a.device) if a.shape is not None else UNKNOWN

    def forget_gradients(
        self, arrays: Sequence[Array], to_none: bool, together: bool = False
    ) -> None:
        """`zero_grad`: gradients are dropped, or filled with zeros."""
        kept = [self.accumulated[a.key] for a in arrays if a.key in self.accumulated]
        if to_none:
            for a in arrays:
                self.accumulated.pop(a.key, None)
        elif together and kept:
            self.aten("_foreach_zero_", kept)
        else:
            for gradient in kept:
                self.aten("zero_", gradient)

    # -- autograd.Function -----------------------------------------------------------------

    def context_of(self, cls: Class) -> Instance:
        kind = prelude("derivatives").names["Context"]
        return Instance(kind, {"needs_input_grad": UNKNOWN}, open=True)

    def note_custom(
        self, cls: Class, context: Instance, inputs: Sequence[Value], out: Value
    ) -> None:
        outputs = tuple(arrays_in(out))
        self.produced |= {a.key for a in outputs}
        self.tape.append(
            Custom(cls, context, tuple(inputs), outputs, self.here, tuple(reversed(self.stack)))
        )

    def note_formula(self, name: str, args: Mapping[str, Value], result: Value) -> Value:
        """Tape a composite that has a gradient of its own; its ops ran without the tape."""
        if not self.grad or not isinstance(result, Array) or not any(
            a.requires_grad for a in arrays_in(list(args.values()))
        ):  # fmt: skip
            return result
        out = replace(result, requires_grad=True)
        stack = tuple(reversed(self.stack))
        self.tape.append(Step(f"aten.{name}.default", dict(args), (out,), self.here, stack))
        self.produced.add(out.key)
        return out

    # -- the engine ------------------------------------------------------------------------

    def _run_back(
        self, roots: Sequence[Array], seeds: Sequence[Value], wanted: Sequence[Array] | None,
        create_graph: bool,
    ) -> list[tuple[Array, Array]] | None:  # fmt: skip
        """The gradients of the leaves, or of `wanted`; None when the tape does not tell."""
        if self.tangled or self.hooked or not roots:
            return None
        here, stack = self.here, self.stack
        grads: dict[Key, Array] = {}
        for root, seed in zip(roots, seeds, strict=True):
            given = seed if isinstance(seed, Array) else self.aten("ones_like", root)
            grads[root.key] = given
        useful = None if wanted is None else self._leading_to(wanted)
        targets = {a.key: a for a in wanted or ()}
        found: list[tuple[Array, Array]] = []
        leaves: dict[Key, Array] = {}
        taped = len(self.tape)
        with self.mode(grad=create_graph, autocast=None):
            for node in reversed(list(self.tape)):
                outs = arrays_in(list(node.outputs))
                if not any(o.key in grads for o in outs):
                    continue
                for o in outs:
                    if o.key in targets and o.key in grads:
                        found.append((targets.pop(o.key), grads[o.key]))
                given_ = [grads.pop(o.key, None) for o in outs]
                # what a backward taped has no line of its own: it is the caller's
                self.here = node.place if node.place.line else here
                self.stack = list(reversed(node.stack))
                for x, gradient in self._through(node, given_, useful):
                    leaves[x.key] = x
                    if x.key in grads:
                        gradient = self.aten("add", grads[x.key], gradient)
                    grads[x.key] = gradient
        self.here, self.stack = here, stack
        self.tape[taped:] = [
            replace(node, place=Place(node.place.file, 0, 0, node.place.function))
            for node in self.tape[taped:]
        ]
        if wanted is not None:
            return found + [(a, grads[k]) for k, a in targets.items() if k in grads]
        return [(leaves[k], g) for k, g in grads.items() if k in leaves]

    def _leading_to(self, wanted: Sequence[Array]) -> set[Key]:
        useful = {a.key for a in wanted}
        for node in self.tape:
            inputs = node.args.values() if isinstance(node, Step) else node.inputs
            if any(a.key in useful for a in arrays_in(list(inputs))):
                useful |= {o.key for o in arrays_in(list(node.outputs))}
        return useful

    def _through(
        self, node: Step | Custom, grads: Sequence[Array | None], useful: set[Key] | None
    ) -> list[tuple[Array, Array]]:
        """What one node hands to its inputs."""

        def needed(a: Value) -> bool:
            return isinstance(a, Array) and a.requires_grad and (
                useful is None or a.key in useful)  # fmt: skip

        if isinstance(node, Custom):
            return self._through_custom(node, grads, needed)
        args = node.args
        needs = tuple(
            n for n, v in args.items()
            if needed(v) or (isinstance(v, (tuple, list)) and any(needed(x) for x in v))
        )  # fmt: skip
        if not needs:
            return []
        formula = prelude("derivatives").names.get(node.short)
        handed: Value = UNKNOWN
        if isinstance(formula, Function):
            result = node.outputs[0] if len(node.outputs) == 1 else tuple(node.outputs)
            many = "grads" in [p.arg for p in formula.node.args.args]
            grad: Value = list(grads) if many else next((g for g in grads if g is not None), None)
            handed = self.call_function(
                formula, (), {**_plain(args), "grads" if many else "grad": grad,
                              "needs": needs, "result": result})  # fmt: skip
        if not isinstance(handed, dict):
            self.missing(f"backward of {node.short}")
            handed = {}
        out: list[tuple[Array, Array]] = []
        for name in needs:
            value, gradient = args[name], handed.get(name)
            if isinstance(value, Array):
                out.append((value, self._fitted(value, gradient)))
            elif isinstance(value, (tuple, list)):
                parts = gradient if isinstance(gradient, (tuple, list)) else [None] * len(value)
                out += [
                    (x, self._fitted(x, g))
                    for x, g in zip(value, parts, strict=False) if needed(x)
                ]  # fmt: skip
        return out

    def _through_custom(
        self, node: Custom, grads: Sequence[Array | None], needed: Any
    ) -> list[tuple[Array, Array]]:
        function = node.cls.find("backward")
        if not isinstance(function, Function):
            self.missing(f"backward of {node.cls.name}")
            return []
        handed = self.call_function(function, (node.context, *grads), {})
        parts = handed if isinstance(handed, (tuple, list)) else (handed,)
        return [
            (x, self._fitted(x, g))
            for x, g in zip(node.inputs, parts, strict=False)
            if needed(x) and isinstance(g, Array)
        ]

    def _fitted(self, x: Array, handed: Value) -> Array:
        """`validate_outputs`: summed to the input's shape, cast to its dtype."""
        if not isinstance(handed, Array):
            return fresh(x.shape, x.dtype, x.device)
        gradient: Array = handed
        if gradient.shape is None and x.shape is not None:
            gradient = fresh(x.shape, gradient.dtype or x.dtype, x.device)
        have, want = gradient.sizes, x.sizes
        if want is not None and have is not None and want != have:
            extra = len(have) - len(want)
            wide = [i + extra for i, n in enumerate(want) if n == 1 and have[i + extra] != 1]
            over = [*range(extra), *wide]
            if over:
                gradient = self.aten("sum", gradient, tuple(over), True)
            gradient = self.aten("view", gradient, want)
        if x.dtype is not None and gradient.dtype is not None and x.dtype != gradient.dtype:
            return self.cast(gradient, x.dtype)
        return gradient

    def _accumulate(self, leaf: Array, gradient: Array) -> None:
        k = leaf.key
        if k in self.accumulated:
            self.aten("add_", self.accumulated[k], gradient)
            return
        if leaf.sizes is not None and _steps(gradient) != _steps(leaf):
            gradient = self.aten("clone", gradient)
            gradient = replace(gradient, stride=leaf.stride)
        self.accumulated[k] = replace(gradient, requires_grad=False)


def _plain(args: Mapping[str, Value]) -> dict[str, Value]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in args.items()}


def _steps(a: Array) -> tuple[int, ...] | None:
    """The strides that matter: those of dims longer than one."""
    if a.stride is None or a.sizes is None:
        return None
    return tuple(s for s, n in zip(a.stride, a.sizes, strict=True) if n != 1)
