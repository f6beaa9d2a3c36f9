"""Names of libraries: torch's own functions, the prelude, numpy, math, contextlib, optimizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from kpredict.source.infer.joining import arrays_in, knows, touches
from kpredict.source.infer.operators import Frame
from kpredict.source.infer.parsing import parse
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.shelf import part
from kpredict.source.infer.standard import Standard
from kpredict.source.infer.surface import choose, packet, python_names
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
    Optimizer,
    Scope,
    Several,
    Symbol,
    Value,
)  # fmt: skip

_PRELUDES = ("composites", "functional", "nn")
_TRANSPARENT = frozenset(
    "torch.compile torch.jit.script torch.jit.ignore torch.jit.export torch.jit.unused "
    "torch.fx.wrap "
    "torch._dynamo.disable torch.compiler.disable functools.wraps functools.cache "
    "functools.lru_cache dataclasses.dataclass torch.no_grad_ "
    "typing.cast functools.cached_property torch.nn.parallel.DataParallel "
    "torch.nn.parallel.DistributedDataParallel torch.nn.DataParallel "
    "torch.compiler.allow_in_graph torch.jit.trace contextlib.contextmanager".split()
)
_EAGER_NOTHING = frozenset(
    "torch.manual_seed torch.cuda.manual_seed torch.cuda.manual_seed_all "
    "torch.set_float32_matmul_precision "
    "torch.set_default_dtype torch.set_default_device torch.use_deterministic_algorithms "
    "torch.set_printoptions torch.save torch.set_num_threads torch._check torch._check_value "
    "torch.autograd.set_detect_anomaly torch.cuda.set_device torch.jit.annotate".split()
)
_INITIALIZERS = "torch.nn.init."


class Library(Standard):
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
        if path in _TRANSPARENT or top in ("typing", "abc"):
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
        handled = self._special(path, name, args, kwargs)
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

    def torch_call(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        function = prelude("composites").names.get(name)
        if isinstance(function, Function) and "out" not in kwargs:
            return self.call_function(function, args, kwargs)
        found = choose(name, args, kwargs)
        if found is not None and not found[0].composite:
            return self.dispatch(*found)
        inplace = prelude("composites").names.get(name.removesuffix("_"))
        if name.endswith("_") and isinstance(inplace, Function) and args:
            out = self.call_function(inplace, args, kwargs)
            return replace(args[0], storage=args[0].storage) if isinstance(args[0], Array) else out
        if name in ("tensor_split", "unsafe_chunk", "unsafe_split"):
            return self.torch_call(name.removeprefix("unsafe_"), args, kwargs)
        if packet(name) or f"torch.{name}" in python_names() or f"Tensor.{name}" in python_names():
            if arrays_in([*args, *kwargs.values()]):
                self.missing(f"torch.{name}")
                return self._like_tensor(args)
        elif arrays_in([*args, *kwargs.values()]):
            self.missing(f"torch.{name}")
        return UNKNOWN

    def functional(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        function = prelude("functional").names.get(name)
        if isinstance(function, Function):
            return self.call_function(function, args, kwargs)
        return self.torch_call(name, args, kwargs)

    def _special(
        self, path: str, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if name in ("tensor", "as_tensor", "asarray", "from_numpy"):
            return self._tensor(name, args, kwargs)
        if name in ("no_grad", "inference_mode", "enable_grad", "set_grad_enabled"):
            return self._grad_mode(name, args)
        if name in ("autocast", "amp.autocast", "cuda.amp.autocast", "autocast_mode.autocast"):
            return self._autocast_context(path, args, kwargs)
        if name == "device":
            return (
                Device(args[0].split(":")[0])
                if args and isinstance(args[0], str)
                else (args[0] if args and isinstance(args[0], Device) else Device("cuda"))
            )
        if path in _TRANSPARENT:
            return args[0] if args else Symbol("reader.identity")
        if path in _EAGER_NOTHING:
            return None
        if name in ("is_tensor",):
            return isinstance(args[0], Array) if args and args[0] is not UNKNOWN else UNKNOWN
        if name.startswith("overrides.has_torch_function"):
            return False
        if name in ("is_grad_enabled",):
            return self.grad
        if name in ("is_autocast_enabled", "is_autocast_cpu_enabled"):
            return self.autocast is not None
        if name in ("cuda.is_available", "cuda.is_bf16_supported"):
            return True
        if name == "cuda.device_count":
            return 1
        if name in (
            "compiler.is_compiling",
            "jit.is_scripting",
            "jit.is_tracing",
            "onnx.is_in_onnx_export",
            "_dynamo.is_compiling",
            "is_inference_mode_enabled",
        ):
            return False
        if (
            name in ("numel", "is_floating_point", "is_complex")
            and args
            and isinstance(args[0], Array)
        ):
            return self.array_method(args[0], name, (), {})
        if name in ("reshape", "flatten") and args and isinstance(args[0], Array):
            return self.array_method(args[0], name, args[1:], kwargs)
        if name in (
            "cuda.synchronize",
            "cuda.empty_cache",
            "cuda.Event",
            "cuda.Stream",
            "cuda.current_stream",
            "cuda.reset_peak_memory_stats",
        ):
            self.called(name)
            if name == "cuda.synchronize":
                self.sync("synchronize")
            return UNKNOWN
        if name in ("Size",):
            return self.builtin("tuple", args, {})
        if name in ("get_default_dtype",):
            return DType("float32")
        if name in ("finfo", "iinfo", "Generator", "load"):
            return UNKNOWN
        if name in (
            "zeros_like",
            "ones_like",
            "empty_like",
            "rand_like",
            "randn_like",
            "full_like",
        ) and (args and args[0] is UNKNOWN):
            return fresh(None, None, "cuda")
        return NotImplemented

    def _tensor(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """A tensor of Python data: made on the CPU, then copied to the device if one is given."""
        data = args[0] if args else kwargs.get("data", UNKNOWN)
        dtype, device = kwargs.get("dtype"), kwargs.get("device")
        if isinstance(data, Array):
            if name in ("as_tensor", "asarray", "from_numpy"):
                return self._moved(data, "to", (), kwargs)
            return self.aten("clone", data)
        for v in args[1:2]:
            dtype = v if isinstance(v, DType) else dtype
        shape, inferred = _of_data(data)
        for a in arrays_in([data]):  # elements that live on the GPU are read one by one
            self.read(a, "item")
        made = fresh(shape, dtype.name if isinstance(dtype, DType) else inferred, "cpu")
        self.called("tensor", device=device, data=data)
        where = (
            device.type
            if isinstance(device, Device)
            else (
                device.split(":")[0]
                if isinstance(device, str)
                else "cuda"
                if device is UNKNOWN
                else "cpu"
            )
        )
        if where == "cuda":
            return self.aten("_to_copy", made, device="cuda")
        return made

    def _grad_mode(self, name: str, args: Sequence[Value]) -> Value:
        if args and isinstance(args[0], Function):  # used as a bare decorator
            return replace(args[0], decorators=(*args[0].decorators, Symbol("torch.no_grad")))
        if name == "set_grad_enabled":
            return Context("grad", args[0] if args and isinstance(args[0], bool) else self.grad)
        if name == "inference_mode" and args and args[0] is False:
            return Context("")
        return Context("grad", name == "enable_grad")

    def _autocast_context(
        self, path: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Context:
        device = kwargs.get("device_type", args[0] if args else "cuda")
        if kwargs.get("enabled") is False or device == "cpu":
            return Context("autocast", None)
        if kwargs.get("enabled") is UNKNOWN:
            return Context("")
        dtype = kwargs.get("dtype", next((a for a in args if isinstance(a, DType)), None))
        return Context("autocast", dtype.name if isinstance(dtype, DType) else "float16")

    # -- the prelude's own names -----------------------------------------------------------

    def _own(self, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if name in ("vmap", "grad", "grad_and_value"):
            return self.transformed(name, args, kwargs)
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


def _of_data(data: Value) -> tuple[tuple[int, ...] | None, str | None]:
    """Shape and dtype that `torch.tensor(data)` would have."""
    if isinstance(data, bool):
        return (), "bool"
    if isinstance(data, int):
        return (), "int64"
    if isinstance(data, float):
        return (), "float32"
    if isinstance(data, complex):
        return (), "complex64"
    if isinstance(data, Array):
        return (), data.dtype
    if isinstance(data, (list, tuple, range)):
        if not data:
            return (0,), "float32"
        inner = [_of_data(v) for v in data]
        shape = inner[0][0]
        kinds = {d for _, d in inner}
        dtype = next((k for k in ("complex64", "float32", "int64", "bool") if k in kinds), None)
        return (None if shape is None else (len(data), *shape)), None if None in kinds else dtype
    return None, None


@cache
def prelude(name: str) -> Scope:
    """The names of one part of the prelude: composites, functional, nn."""
    from kpredict.source.infer.machine import Machine

    reader = Machine()

    def read(text: str, scope: Scope) -> None:
        reader.fuel = 1_000_000
        reader.execute(parse(text).body, Frame(scope, "<module>", scope.names))

    return part(name, read)


__all__ = ["Instance", "Library", "prelude"]
