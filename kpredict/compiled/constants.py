"""Constants of a graph that live on the GPU: computed for real on the CPU, shown as CUDA.

A tensor written into the code (`torch.tensor([1., 2.], device="cuda")`, `x[:, [0, -1]]`) is lifted
into the graph as a constant, and Inductor folds and inlines such constants by computing them. On a
GPU machine they are CUDA tensors; here they are fake CUDA tensors that carry CPU values.

Private API touched: `torch._inductor` constant_folding, fx_passes.joint_graph, graph, compile_fx;
`torch.fx.experimental.proxy_tensor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from kpredict.compiled.patching import Patches

_CPU, _CUDA = torch.device("cpu"), torch.device("cuda", 0)
_VALUE = "_kpredict_value"
_LIFTS = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
_MOVES = (torch.ops.prims.device_put.default, torch.ops.aten._to_copy.default)


class CudaConstant(torch.Tensor):
    """A CPU tensor with real values that says it is on cuda:0: what lowering reads."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return _CUDA

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True


class _OnCpu(TorchDispatchMode):
    """What is computed for real is computed on the CPU, the only device there is."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(
            *(_to_cpu(a) for a in args), **{k: _to_cpu(v) for k, v in (kwargs or {}).items()}
        )


def _to_cpu(value: Any) -> Any:
    return _CPU if isinstance(value, torch.device) and value.type == "cuda" else value


def constants_on_cpu(patches: Patches) -> None:
    """Every place where the compiler computes a constant for real does so on the CPU."""
    patches.wrap("torch._inductor.constant_folding", "ConstantFolder.run", _on_cpu)
    joint = "torch._inductor.fx_passes.joint_graph"
    patches.wrap(joint, "UniformValueConstantFolder._add_peephole_patterns", _on_cpu)
    patches.wrap(joint, "UniformValueConstantFolder._deduce_value", _skip_fakes)
    patches.wrap("torch.fx.experimental.proxy_tensor", "unset_fake_temporarily", _unset_on_cpu)
    patches.wrap("torch._inductor.graph", "GraphLowering.constant_name", _constant_name)
    patches.wrap("torch._inductor.graph", "GraphLowering.get_attr", _get_attr)
    patches.wrap("torch._inductor.compile_fx", "_recursive_joint_graph_passes", _after_lifting)


def _on_cpu(method: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*args: Any, **kwargs: Any) -> Any:
        with _OnCpu():
            return method(*args, **kwargs)

    return computed


def _unset_on_cpu(unset: Callable[..., Any]) -> Callable[..., Any]:
    """Tracing follows small constants by computing them beside the fake ones."""

    @contextmanager
    def unset_fake() -> Iterator[Any]:
        with unset() as mode, _OnCpu():
            yield mode

    return unset_fake


def _skip_fakes(deduce: Callable[..., Any]) -> Callable[..., Any]:
    """A constant that is fake has the value it carries, or none to fold."""

    def deduced(self: Any, node: Any) -> Any:
        result = deduce(self, node)
        if isinstance(result, FakeTensor):
            return getattr(result, _VALUE, self.unknown_value)
        return result

    return deduced


def _get_attr(original: Callable[..., Any]) -> Callable[..., Any]:
    """Lowering looks at a constant's values to inline small ones."""

    def get_attr(graph: Any, target: str, *args: Any) -> Any:
        owner, _, name = target.rpartition(".")
        module = graph.module.get_submodule(owner)
        fake = getattr(module, name)
        value = getattr(fake, _VALUE, None)
        if value is None:
            return original(graph, target, *args)
        setattr(module, name, value.as_subclass(CudaConstant))
        try:
            return original(graph, target, *args)
        finally:
            setattr(module, name, fake)

    return get_attr


def _constant_name(original: Callable[..., Any]) -> Callable[..., Any]:
    """A constant that is needed on another device than its own."""

    def constant_name(graph: Any, name: str, device: torch.device | None) -> Any:
        with _OnCpu():
            copied = original(graph, name, device)
        if device is not None and device.type == "cuda":
            graph.constants[copied] = graph.constants[copied].as_subclass(CudaConstant)
        return copied

    return constant_name


def _after_lifting(passes: Callable[..., Any]) -> Callable[..., Any]:
    def joint_graph_passes(gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        lift_on_cuda(gm)
        return passes(gm, *args, **kwargs)

    return joint_graph_passes


def lift_on_cuda(gm: torch.fx.GraphModule) -> None:
    """Constant made on the CPU, lifted, moved → constant on the GPU, lifted: as a GPU build traces.

    Without a GPU, fake tensors lift the CPU tensor first and trace its move afterwards. A move that
    the user wrote stays one.
    """
    for move in list(gm.graph.nodes):
        if move.op != "call_function" or move.target not in _MOVES:
            continue
        lift, value = move.args[0], move.meta.get("val")
        if not (
            isinstance(value, torch.Tensor)
            and value.device.type == "cuda"
            and isinstance(lift, torch.fx.Node)
            and lift.target in _LIFTS
            and isinstance(lift.args[0], torch.fx.Node)
            and lift.args[0].op == "get_attr"
            and lift.meta["val"].dtype == value.dtype
            and _one_call(lift, move)
        ):
            continue
        source = lift.args[0]
        name = f"{source.target}_cuda"
        constant = getattr(gm, str(source.target))
        if isinstance(constant, FakeTensor):
            continue
        with value.fake_mode:  # type: ignore[attr-defined]
            fake = torch.empty_strided(
                constant.size(), constant.stride(), dtype=constant.dtype, device=_CUDA
            )
        setattr(fake, _VALUE, constant)
        gm.register_buffer(name, fake, persistent=False)
        with gm.graph.inserting_before(move):
            attribute = gm.graph.get_attr(name)
            lifted = gm.graph.call_function(lift.target, (attribute,))
        attribute.meta.update(source.meta, val=value)
        lifted.meta.update(lift.meta, val=value)
        move.replace_all_uses_with(lifted)
        gm.graph.erase_node(move)
        for node in (lift, source):
            if not node.users:
                gm.graph.erase_node(node)
    gm.recompile()


def _one_call(lift: torch.fx.Node, move: torch.fx.Node) -> bool:
    """Whether one call in the code made both, like `torch.tensor(..., device="cuda")`."""
    key = "source_fn_stack"
    return lift.meta.get(key) == move.meta.get(key)
