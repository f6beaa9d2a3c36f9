"""Functions of torch as user code names them: ops, composites, and what is none of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpredict.source.infer.joining import arrays_in
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.shelf import prelude
from kpredict.source.infer.standard import Standard
from kpredict.source.infer.surface import choose, packet, python_names
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Context,
    Device,
    DType,
    Function,
    Symbol,
    Value,
)  # fmt: skip

TRANSPARENT = frozenset(
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


class TorchNames(Standard):
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

    def special(
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
        if path in TRANSPARENT:
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
