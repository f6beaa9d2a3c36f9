"""The one place that touches Inductor's private API: let it decide for a GPU that is not there.

`inductor(world)` lets torch.compile's default backend run to the end of code generation for the
target, on a build without CUDA and Triton: every pass, lowering, scheduling and naming decision is
Inductor's own. Three things are exchanged: what it asks about the device (the target's row), the
compilation of kernels (a stand-in that tells its launch), and constant folding of CUDA constants
(done on the CPU).

Private API touched: `torch._inductor` compile_fx, graph, scheduler, async_compile, codegen.wrapper,
constant_folding, fx_passes; `torch._dynamo.device_interface`; `torch._functorch.config`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from kpredict.capture.cuda_api import properties
from kpredict.capture.world import World
from kpredict.compiled.constants import constants_on_cpu
from kpredict.compiled.patching import Patches, find
from kpredict.compiled.region import KernelCall, Node, Region
from kpredict.compiled.wrapper import CpuStandIn, StandIn, load
from kpredict.model import Phase, Span, Target

_INDUCTOR = "torch._inductor"


@contextmanager
def inductor(world: World, regions: list[Region] | None = None) -> Iterator[None]:
    """torch.compile under it decides for the world's target and runs on fake tensors.

    `regions` receives each compiled graph. Raises KpredictError when this torch keeps what we
    need elsewhere.
    """
    builder = _Builder(world, regions if regions is not None else [])
    with ExitStack() as stack:
        patches = Patches(stack)
        _device_is_target(patches, world.target)
        _kernels_stand_in(patches)
        constants_on_cpu(patches)
        _timings_are_absent(patches, builder)
        builder.listen(patches)
        for config, values in _SETTINGS.items():
            patches.configure(config, values)
        yield


_SETTINGS: dict[str, dict[str, Any]] = {
    "torch._inductor.config": {
        "fx_graph_cache": False, "fx_graph_remote_cache": False, "compile_threads": 1,
        "autotune_local_cache": False, "worker_suppress_logging": True,
    },
    "torch._functorch.config": {
        "enable_autograd_cache": False, "enable_remote_autograd_cache": False,
    },
    "torch._dynamo.config": {"automatic_dynamic_local_pgo": False},
}  # fmt: skip


def _device_is_target(patches: Patches, target: Target) -> None:
    gpu = properties(target)

    def answer(value: Any) -> Any:
        return staticmethod(lambda *_, **__: value)

    patches.set(
        "torch._subclasses.fake_tensor", "FakeTensorMode.avoid_device_init",
        property(lambda _: True),
    )  # fmt: skip
    interface = "torch._dynamo.device_interface"
    for name, value in {
        "current_device": 0, "device_count": 1, "get_device_properties": gpu, "is_available": True,
        "get_raw_stream": 0, "exchange_device": 0, "maybe_exchange_device": 0, "synchronize": None,
        "set_device": None, "is_bf16_supported": target.sm >= 80,
        "get_compute_capability": target.sm, "Worker.current_device": 0,
        "Worker.get_device_properties": gpu, "is_triton_capable": target.capability[0] >= 7,
    }.items():  # fmt: skip
        patches.set(interface, f"CudaInterface.{name}", answer(value))
    utils = f"{_INDUCTOR}.utils"
    patches.set(utils, "get_gpu_dram_gbps", lambda: target.bandwidth)
    patches.set(utils, "get_device_tflops", lambda dtype: _tflops(target, dtype))
    patches.set(utils, "get_gpu_shared_memory", lambda: target.shared_optin)
    hints, name = find(f"{_INDUCTOR}.runtime.hints", "DeviceProperties.create")
    getattr(hints, name).cache_clear()  # another target may have been asked before


def _tflops(target: Target, dtype: torch.dtype) -> float:
    if dtype in (torch.float16, torch.bfloat16):
        return target.fp16_tflops
    tf32 = torch.backends.cuda.matmul.allow_tf32
    return target.tf32_tflops if tf32 else target.fp32_tflops


def _timings_are_absent(patches: Patches, builder: _Builder) -> None:
    """Choices that Inductor makes by timing both ways on the GPU: keep the plain way and say so."""

    def should_pad(_: str) -> bool:
        builder.undecided.append("padding a matrix multiply to aligned sizes is chosen by timing")
        return False

    patches.set(f"{_INDUCTOR}.fx_passes.pad_mm", "get_cached_should_pad", should_pad)


def _kernels_stand_in(patches: Patches) -> None:
    compile_ = f"{_INDUCTOR}.async_compile"
    patches.set(
        compile_, "AsyncCompile.triton", lambda _, name, source, device_str="cuda": StandIn(name)
    )
    for name in ("cpp", "cpp_pybinding"):
        patches.set(compile_, f"AsyncCompile.{name}", lambda *_: CpuStandIn())
    patches.set(compile_, "AsyncCompile.wait", lambda *_: None)
    for module in ("scheduler", "fx_passes.pad_mm"):
        patches.set(f"{_INDUCTOR}.{module}", "has_triton", lambda *_: True)
    patches.set("torch.utils._triton", "triton_hash_with_backend", lambda *_: "none")


class _Builder:
    """Hears Inductor generate code, graph by graph, and writes a Region for each."""

    def __init__(self, world: World, regions: list[Region]) -> None:
        self._world = world
        self._regions = regions
        self._open: list[Region] = []
        self._inplace: dict[str, str] = {}
        self.undecided: list[str] = []

    def listen(self, patches: Patches) -> None:
        patches.wrap(f"{_INDUCTOR}.graph", "GraphLowering.compile_to_module", self._compile)
        patches.wrap(f"{_INDUCTOR}.scheduler", "Scheduler.enter_context", self._node)
        patches.wrap(
            f"{_INDUCTOR}.codegen.wrapper", "PythonWrapperCodegen.generate_kernel_call", self._call
        )
        patches.wrap(f"{_INDUCTOR}.codegen.common", "KernelArgs.make_inplace", self._make_inplace)
        patches.wrap(f"{_INDUCTOR}.scheduler", "WhyNoFuse.__call__", self._why)

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_to_module(graph: Any) -> Any:
            phase = Phase.BACKWARD if graph.is_backward else Phase.FORWARD
            region = Region(str(torch._guards.CompileContext.current_compile_id()), phase)
            self._open.append(region)
            self._inplace = {}
            try:
                code, _ = graph.codegen()
            finally:
                self._open.pop()
            region.code = code if isinstance(code, str) else code.value
            region.outputs = frozenset(graph.get_output_names())
            self._regions.append(region)
            constants = {**graph.constants, **graph.torchbind_constants}
            module = load(region, constants, self._world.mode)
            graph.cache_key, graph.cache_path, graph.cache_linemap = region.name, "", []
            return module

        return compile_to_module

    def _node(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter_context(scheduler: Any, node: Any) -> None:
            original(scheduler, node)
            if self._open:
                nodes = self._open[-1].nodes
                nodes.append(describe(node))
                _wrapper().writeline(f"_kpredict_reach({len(nodes) - 1})")

        return enter_context

    def _call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def generate_kernel_call(
            wrapper: Any, kernel_name: str, call_args: Any, **kwargs: Any
        ) -> Any:
            if self._open and kwargs.get("triton", True):
                region = self._open[-1]
                region.calls.append(self._arrays(region, kernel_name, call_args, kwargs))
                wrapper.writeline(f"_kpredict_call({len(region.calls) - 1})")
            return original(wrapper, kernel_name, call_args, **kwargs)

        return generate_kernel_call

    def _arrays(self, region: Region, kernel: str, args: Any, kwargs: dict[str, Any]) -> KernelCall:
        """Which arrays a call reads and writes: from the node's dependencies, else by argument."""
        node = region.nodes[-1]
        signature = list((kwargs.get("triton_meta") or {}).get("signature", {}))
        reads: dict[str, int] = {}
        for name, size in node.reads.items():
            while name not in args and name in self._inplace:
                name = self._inplace[name]
            reads[name] = max(size, reads.get(name, 0))
        arrays = []
        for i, name in enumerate(map(str, args)):
            inner = signature[i] if i < len(signature) else ""
            written = node.writes.get(name, 0) if "out_ptr" in inner or not inner else 0
            arrays.append((name, reads.get(name, 0) if "in" in inner or not inner else 0, written))
        return KernelCall(kernel, tuple(arrays))

    def _make_inplace(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def make_inplace(args: Any, input_name: str, output_name: str) -> Any:
            self._inplace[input_name] = output_name
            return original(args, input_name, output_name)

        return make_inplace

    def _why(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def why(reason: Any, text: str, *args: Any) -> Any:
            if self._open:
                pair = (reason.name1, reason.name2)
                self._open[-1].why_not[pair] = text % args if args else text
            return original(reason, text, *args)

        return why


def _wrapper() -> Any:
    from torch._inductor.virtualized import V

    return V.graph.wrapper_code


def describe(node: Any) -> Node:
    """A scheduler node as a value."""
    parts = tuple(n.get_name() for n in node.get_nodes())
    origins: dict[Any, None] = {}
    for part in node.get_nodes():
        if part.node is not None:
            origins.update(dict.fromkeys(part.node.get_origins()))
    device = node.get_device()
    return Node(
        name=node.get_name(),
        kind=_kind(node),
        ops=tuple(dict.fromkeys(_op_name(o) for o in origins if o.op == "call_function")),
        lines=tuple(sorted({s for o in origins if (s := span_of(o))}, key=lambda s: s.line)),
        reads=_bytes(node.read_writes.reads),
        writes=_bytes(node.read_writes.writes),
        parts=parts,
        sizes=_sizes(node),
        is_reduction=bool(node.is_reduction()),
        device=device.type if device is not None else "",
        mutates=tuple(sorted(node.get_mutations())) if hasattr(node, "get_mutations") else (),
    )


def _kind(node: Any) -> str:
    if node.is_extern():
        return "extern"
    if node.is_template():
        return "template"
    if node.is_foreach():
        return "foreach"
    return "nop" if type(node).__name__.startswith("Nop") else "generated"


def _op_name(origin: Any) -> str:
    original = origin.meta.get("original_aten")
    return str(original if original is not None else origin.target)


def _bytes(deps: Any) -> dict[str, int]:
    """Bytes by buffer: the sum over different accesses, at most the whole buffer."""
    from torch._inductor.virtualized import V

    found: dict[str, int] = {}
    for dep in deps:
        found[dep.name] = found.get(dep.name, 0) + int(V.graph.get_dep_size_hint(dep))
    return found


def _sizes(node: Any) -> tuple[str, ...]:
    group = getattr(node, "group", None)
    return tuple(str(s) for s in group[1]) if group and isinstance(group[1], tuple) else ()


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_TORCH = torch.__path__[0]


def span_of(origin: Any) -> Span | None:
    """The innermost line outside torch that made an fx node."""
    frames = _FRAME.findall(origin.meta.get("stack_trace") or "")
    for file, line, function in reversed(frames):
        if not file.startswith((_TORCH, "<")):
            return Span(file, int(line), function)
    return None
