"""Hears Inductor generate code, graph by graph, and writes a Region for each.

Private API touched: `torch._inductor` graph, scheduler, codegen.wrapper, codegen.common,
virtualized.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import torch

from kpredict.capture.world import World
from kpredict.compiled.patching import Patches
from kpredict.compiled.recompiles import variable_sizes
from kpredict.compiled.region import KernelCall, Node, Region
from kpredict.compiled.timing import Timed
from kpredict.compiled.wrapper import load
from kpredict.model import Phase, Span

_INDUCTOR = "torch._inductor"


class Builder:
    """Appends to `regions` as graphs are compiled."""

    def __init__(self, world: World, regions: list[Region], timed: Timed) -> None:
        self._world = world
        self._regions = regions
        self._open: list[Region] = []
        self._timed = timed
        self._calls: set[Any] = set()
        self._partials: set[str] = set()
        self._inplace: dict[str, str] = {}
        self._whys: dict[tuple[str, str], tuple[str, tuple[Any, ...]]] = {}

    def refused(self, why: str) -> None:
        """The region compiled last becomes no CUDA graph."""
        if self._regions:
            self._regions[-1].notes += (why,)

    def listen(self, patches: Patches) -> None:
        patches.wrap(f"{_INDUCTOR}.graph", "GraphLowering.compile_to_module", self._compile)
        patches.wrap(f"{_INDUCTOR}.scheduler", "Scheduler.enter_context", self._node)
        patches.wrap(
            f"{_INDUCTOR}.codegen.wrapper", "PythonWrapperCodegen.generate_kernel_call", self._call
        )
        patches.wrap(f"{_INDUCTOR}.codegen.common", "KernelArgs.make_inplace", self._make_inplace)
        patches.wrap(f"{_INDUCTOR}.scheduler", "WhyNoFuse.__call__", self._why)
        for reduction in ("Reduction", "WelfordReduction"):
            patches.wrap(f"{_INDUCTOR}.ir", f"{reduction}.create_multilayer", self._split)

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_to_module(graph: Any) -> Any:
            phase = Phase.BACKWARD if graph.is_backward else Phase.FORWARD
            region = Region(str(torch._guards.CompileContext.current_compile_id()), phase)
            self._open.append(region)
            self._inplace, self._whys = {}, {}
            try:
                code, _ = graph.codegen()
            finally:
                self._open.pop()
            region.nodes[:] = with_lines(region.nodes)
            region.notes, self._timed.notes = tuple(self._timed.notes), {}
            region.padding = self._timed.padding
            region.dynamic = variable_sizes(graph)
            region.partials, self._partials = frozenset(self._partials), set()
            region.why_not = _by_final_node(region.nodes, self._whys)
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
                if not nodes:
                    self._calls = call_origins(scheduler)
                nodes.append(describe(node, self._calls))
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
            read = 0 if inner.startswith("out_ptr") else reads.get(name, 0)
            written = 0 if inner.startswith("in_ptr") else node.writes.get(name, 0)
            arrays.append((name, read, written, _whole(name, 0)))
        return KernelCall(kernel, tuple(arrays))

    def _make_inplace(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def make_inplace(args: Any, input_name: str, output_name: str) -> Any:
            self._inplace[input_name] = output_name
            return original(args, input_name, output_name)

        return make_inplace

    def _why(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def why(reason: Any, text: str, *args: Any) -> Any:
            if self._open:
                self._whys[reason.name1, reason.name2] = text, args
            return original(reason, text, *args)

        return why

    def _split(self, original: Any) -> Any:
        """A reduction too long for one kernel: what is realized on the way are partial results."""

        def create_multilayer(cls: Any, *args: Any, **kwargs: Any) -> Any:
            from torch._inductor.virtualized import V

            before = len(V.graph.buffers)
            result = original.__func__(cls, *args, **kwargs)
            made = {b.get_name() for b in V.graph.buffers[before:]}
            results = result if isinstance(result, (list, tuple)) else (result,)
            self._partials |= made - {_buffer_of(r) for r in results}
            return result

        return classmethod(create_multilayer)


def _buffer_of(box: Any) -> str | None:
    """The name of the buffer that a result was realized in, if it was."""
    return getattr(getattr(getattr(box, "data", None), "data", None), "name", None)


def _by_final_node(
    nodes: list[Node], whys: dict[tuple[str, str], tuple[str, tuple[Any, ...]]]
) -> dict[tuple[str, str], str]:
    """Inductor's last word on each pair of final nodes that share an array.

    It spoke of the nodes as they were then: single ops, or ops fused so far, joined by "_".
    """
    final = {part: node for node in nodes for part in (*node.parts, node.name)}
    found: dict[tuple[str, str], str] = {}
    for names, (text, args) in whys.items():
        first, second = (final.get(n) or final.get(n.split("_", 1)[0]) for n in names)
        if first is None or second is None or first is second:
            continue
        if first.writes.keys() & second.reads.keys() or second.writes.keys() & first.reads.keys():
            found[first.name, second.name] = text % args if args else text
    return found


def _wrapper() -> Any:
    from torch._inductor.virtualized import V

    return V.graph.wrapper_code


def call_origins(scheduler: Any) -> set[Any]:
    """The fx nodes that the schedule's extern nodes call."""
    order = scheduler.origin_to_index
    return {
        max(origins, key=lambda o: order.get(o, 0))
        for node in scheduler.nodes
        if node.is_extern() and node.node is not None and (origins := node.node.get_origins())
    }


def describe(node: Any, calls: Collection[Any] = ()) -> Node:
    """A scheduler node as a value; `calls` are fx nodes that others of the schedule call."""
    parts = tuple(n.get_name() for n in node.get_nodes())
    order = node.scheduler.origin_to_index
    origins = sorted(
        {o for part in node.get_nodes() if part.node is not None for o in part.node.get_origins()},
        key=lambda origin: order.get(origin, 0),
    )
    if node.is_extern():  # what its inputs came from is theirs, not the call's
        origins = origins[-1:]
    else:  # and an input that is made for a call is not the call
        origins = [o for o in origins if o not in calls] or origins
    device = node.get_device()
    return Node(
        name=node.get_name(),
        kind=_kind(node),
        ops=tuple(dict.fromkeys(_op_name(o) for o in origins if o.op == "call_function")),
        lines=tuple(sorted({s for o in origins if (s := span_of(o))}, key=_place)),
        reads=_bytes(node, "reads"),
        writes=_bytes(node, "writes"),
        parts=parts,
        sizes=_sizes(node),
        is_reduction=bool(node.is_reduction()),
        device=device.type if device is not None else "",
        mutates=tuple(sorted(node.get_mutations())) if hasattr(node, "get_mutations") else (),
    )


def with_lines(nodes: Sequence[Node]) -> list[Node]:
    """What a pass of Inductor made has no line of its own: it gets those of what reads it."""
    readers: dict[str, tuple[Span, ...]] = {}
    placed: list[Node] = []
    for node in reversed(nodes):
        lines = node.lines or next((readers[b] for b in node.writes if b in readers), ())
        placed.append(node if lines == node.lines else replace(node, lines=lines))
        if lines:
            readers |= dict.fromkeys(node.reads, lines)
    return placed[::-1]


def _place(span: Span) -> tuple[str, int, str]:
    return span.file, span.line, span.function


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
    if "inductor_seed" in str(origin.target):  # made by a pass, for whatever op needs it
        original = None
    return str(original if original is not None else origin.target)


def _bytes(node: Any, direction: str) -> dict[str, int]:
    """Bytes by buffer: the sum over different accesses, at most the whole buffer.

    One part of a fused node touches at most as many elements as its loop has steps, however large
    the array is that it indexes into.
    """
    from torch._inductor.virtualized import V

    real = V.graph.scheduler.mutation_real_name
    outside = {dep.name for dep in getattr(node.read_writes, direction)}
    sizes: dict[Any, int] = {}
    for part in node.get_nodes():
        steps = _steps(part)
        for dep in getattr(part.read_writes, direction):
            if dep.name in outside:
                size = int(V.graph.get_dep_size_hint(dep))
                elements = int(V.graph.get_dep_size_hint(dep, count_bytes=False))
                if steps is not None and elements > steps:
                    size = size // elements * steps
                sizes[dep] = max(size, sizes.get(dep, 0))
    found: dict[str, int] = {}
    for dep, size in sizes.items():
        name = real.get(dep.name, dep.name)
        found[name] = found.get(name, 0) + size
    return {name: min(size, _whole(name, size)) for name, size in found.items()}


def _steps(part: Any) -> int | None:
    """How often the innermost statement of a generated loop runs."""
    from torch._inductor.virtualized import V

    ranges = getattr(part, "get_ranges", None)
    if ranges is None or part.is_extern():
        return None
    sizes = [V.graph.sizevars.optimization_hint(s) for group in ranges() for s in group]
    return math.prod(int(s) for s in sizes)


def _whole(name: str, default: int) -> int:
    """Bytes of the whole buffer, where Inductor knows it."""
    from torch._inductor.virtualized import V

    buffer: Any = V.graph.try_get_buffer(name)
    try:
        layout = buffer.get_layout()
        size = V.graph.sizevars.optimization_hint(layout.storage_size())
        return int(size) * int(buffer.get_dtype().itemsize)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return default


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
