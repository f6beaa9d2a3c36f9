"""Names of libraries: torch's own functions, the prelude, numpy, math, contextlib, optimizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpredict.source.infer.joining import arrays_in, knows, touches
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.shelf import prelude
from kpredict.source.infer.surface import packet
from kpredict.source.infer.torch_names import TRANSPARENT, TorchNames
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Bound,
    Class,
    Optimizer,
    Several,
    Symbol,
    Value,
)  # fmt: skip

_PRELUDES = ("composites", "functional", "nn")
_INITIALIZERS = "torch.nn.init."


class Library(TorchNames):
    """Calls to anything that is not in the user's files."""

    def library_class(self, path: str) -> Class | None:
        if path.endswith(".GradScaler"):
            scaler = prelude("optim").names["GradScaler"]
            return scaler if isinstance(scaler, Class) else None
        name = path.removeprefix("torch.nn.")
        for prefix in ("modules.", "module.", "parameter.", "functional."):
            if name.startswith(prefix):
                name = name.rsplit(".", 1)[-1] if prefix != "functional." else ""
        found = prelude("nn").names.get(name)
        return found if isinstance(found, Class) and not name.startswith("_") else None

    def library_call(self, path: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        top, _, name = path.partition(".")
        if top == "builtins":
            return self.builtin(name, args, kwargs)
        if top == "torch":
            return self._torch(path, name, args, kwargs)
        if top == "aten":
            return self.aten(name, *args, **kwargs)
        if top == "reader":
            return self._own(name, args, kwargs)
        if path in TRANSPARENT or top in ("typing", "abc"):
            return args[0] if args else Symbol("reader.identity")
        found = self.standard_call(path, args, kwargs)
        if found is not NotImplemented:
            return found
        if path == "einops.rearrange" and args and isinstance(args[0], Array):
            return self.perhaps(
                replace(args[0], shape=None, stride=None), lambda: self.aten("clone", args[0])
            )
        if top in ("numpy", "np"):
            for a in arrays_in(list(args)):
                if a.device == "cuda":
                    self.sync("numpy", a)
            return UNKNOWN
        quiet = top in _HARMLESS or path.startswith(("os.", "sys."))
        if not quiet and touches([*args, *kwargs.values()]):
            self.missing(path)
        return UNKNOWN

    # -- torch -----------------------------------------------------------------------------

    def _torch(
        self, path: str, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if kwargs.get("requires_grad") is True:
            rest = {k: v for k, v in kwargs.items() if k != "requires_grad"}
            made = self._torch(path, name, args, rest)
            return replace(made, requires_grad=True) if isinstance(made, Array) else made
        handled = self.special(path, name, args, kwargs)
        if handled is not NotImplemented:
            return handled
        if name.startswith("Tensor.") and args and isinstance(args[0], Array):
            return self.call(Bound(args[0], name.removeprefix("Tensor.")), args[1:], kwargs)
        if name.startswith("nn.functional."):
            return self.functional(name.removeprefix("nn.functional."), args, kwargs)
        if name.startswith("ops.aten."):
            return self.aten(name.removeprefix("ops.aten.").split(".")[0], *args, **kwargs)
        for space in ("linalg.", "fft.", "special."):
            if name.startswith(space):
                return self.torch_call(name.replace(".", "_"), args, kwargs)
        if "." not in name:
            return self.torch_call(name, args, kwargs)
        if name.startswith(_INITIALIZERS.removeprefix("torch.")):
            return args[0] if args else UNKNOWN
        if name.startswith("optim.") and "lr_scheduler" not in name and name[6:7].isupper():
            self.called("optimizer", name=name[6:], **kwargs)
            return Optimizer(name[6:], args[0] if args else UNKNOWN, dict(kwargs))
        if name in ("nn.Parameter", "nn.parameter.Parameter"):
            return self.call(prelude("nn").names["Parameter"], args, kwargs)
        if name in ("nn.utils.clip_grad_norm_", "nn.utils.clip_grad_value_"):
            parameters = self.iterate(args[0]) if args else Several(UNKNOWN)
            if not isinstance(parameters, Several) and all(
                isinstance(p, Array) for p in parameters
            ):
                return self.torch_call(name.rpartition(".")[2], (parameters, *args[1:]), kwargs)
            self.missing(name)
            return fresh((), "float32", "cuda")
        if name in ("utils.checkpoint.checkpoint",) and args:
            self.tangled = self.tangled or self.grad  # backward runs the block again
            return self.call(
                args[0],
                args[1:],
                {
                    k: v
                    for k, v in kwargs.items()
                    if k not in ("use_reentrant", "preserve_rng_state")
                },
            )
        made = self.transform(name, args, kwargs)
        if made is not NotImplemented:
            return made
        if name == "autograd.grad":
            names = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph")
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            return self.gradients(
                given.get("outputs"), given.get("inputs"), given.get("grad_outputs"),
                given.get("create_graph"),
            )  # fmt: skip
        if name == "autograd.backward" and args and isinstance(args[0], Array):
            self.backward(args[0])
            return None
        if arrays_in([*args, *kwargs.values()]):
            self.missing(path)
        return UNKNOWN

    def release(self) -> tuple[int, int]:
        """The torch that is read for."""
        raise NotImplementedError

    def transform(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        raise NotImplementedError

    def transformed(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        raise NotImplementedError

    def note_formula(self, name: str, args: Mapping[str, Value], result: Value) -> Value:
        raise NotImplementedError

    def gradients(
        self, outputs: Value, inputs: Value, grad_outputs: Value = None, create_graph: Value = False
    ) -> Value:
        raise NotImplementedError

    # -- the prelude's own names -----------------------------------------------------------

    def _own(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if name in ("vmap", "grad", "grad_and_value"):
            return self.transformed(name, args, kwargs)
        if name == "under":
            context, function, *rest = args
            grad, cast = (context.value, True) if context.kind == "grad" else (None, context.value)
            with self.mode(grad, cast):
                return self.call(function, rest, kwargs)
        if name == "release":
            return self.release()
        if name == "taped":
            return self.note_formula(*args)
        if name == "known":
            return knows(args[0])
        if name == "unknown":
            return UNKNOWN
        if name == "identity":
            return args[0] if args else UNKNOWN
        if name == "grad_enabled":
            return self.grad
        if name == "missing":
            self.missing(args[0])
            return self._like_tensor(args[1:])
        if name == "sync":
            if isinstance(args[1], Array) and args[1].device == "cuda":
                self.sync(args[0], args[1])
            return None
        if name in ("parameter", "buffer"):
            x = args[0]
            if not isinstance(x, Array):
                x = fresh(None, None, "cpu")
            grad = name == "parameter" and (len(args) < 2 or args[1] is not False)
            return replace(x, role=name, requires_grad=grad)
        if name == "several_of":
            n = args[0]
            return [args[1]] * n if isinstance(n, int) and 0 < n < 4096 else Several(args[1])
        if name == "attention_backend":
            return self.attention_backend(*args)
        if name == "one_call":
            found = packet(args[0].removeprefix("aten."))
            return self.dispatch(found[0], {"query": args[1], "key": args[2], "value": args[3]})[0]
        if name == "packed_buffer":
            total = [a.numel for a in arrays_in(args[0])]
            if None in total or not total:
                return UNKNOWN
            first = arrays_in(args[0])[0]
            return fresh((sum(n for n in total if n is not None),), first.dtype, first.device)
        return UNKNOWN

    def attention_backend(
        self,
        query: Value,
        key: Value,
        value: Value,
        mask: Value,
        dropout: Value,
        causal: Value,
        grouped: Value,
    ) -> Value:
        raise NotImplementedError


_HARMLESS = frozenset(
    "logging warnings os sys time json re random datetime pathlib typing collections copy "
    "argparse tqdm math string itertools functools inspect builtins operator".split()
)
