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

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from kpredict.capture.cuda_api import properties
from kpredict.capture.world import World
from kpredict.compiled.builder import Builder
from kpredict.compiled.constants import constants_on_cpu
from kpredict.compiled.fallbacks import fallbacks_on_cpu
from kpredict.compiled.graphs import graphs_stand_in
from kpredict.compiled.patching import Patches
from kpredict.compiled.region import Region
from kpredict.compiled.templates import templates_stand_in
from kpredict.compiled.timing import Timed, timings_are_absent
from kpredict.compiled.wrapper import CpuStandIn, StandIn
from kpredict.model import Target

_INDUCTOR = "torch._inductor"


@contextmanager
def inductor(
    world: World, regions: list[Region] | None = None, templates_win: bool = False
) -> Iterator[Timed]:
    """torch.compile under it decides for the world's target and runs on fake tensors.

    `regions` receives each compiled graph. What it would time is in the value given, and decided
    for the plain candidate, or with `templates_win` for Triton templates. Raises KpredictError when
    this torch keeps what we need elsewhere.
    """
    timed = Timed()
    builder = Builder(world, regions if regions is not None else [], timed)
    with ExitStack() as stack:
        patches = Patches(stack)
        _device_is_target(patches, world.target)
        _kernels_stand_in(patches)
        constants_on_cpu(patches)
        fallbacks_on_cpu(patches)
        templates_stand_in(patches)
        graphs_stand_in(patches, world.mode, builder.refused)
        timings_are_absent(patches, world.target, timed, templates_win)
        builder.listen(patches)
        for config, values in _SETTINGS.items():
            patches.configure(config, values)
        yield timed


def register_patterns(world: World) -> None:
    """Have Inductor register now what it else registers at its first graph (a third of a second):
    processes forked from this one need not do it again. The same for every target."""
    from torch._inductor.fx_passes import joint_graph, post_grad

    with inductor(world):
        joint_graph.lazy_init(torch.device("cuda", 0))
        post_grad.lazy_init()


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
    for module, names in _REMEMBERED.items():  # another target may have been asked before
        for name in names:
            patches.forget(f"{_INDUCTOR}.{module}", name)


_REMEMBERED = {
    "runtime.hints": ("DeviceProperties.create",),
    "utils": ("is_big_gpu", "get_max_num_sms"),
    "kernel.mm": ("_is_sm7x_or_older_gpu",),
    "codegen.cuda.cuda_env": ("get_cuda_arch", "is_datacenter_blackwell_arch"),
}
"""Answers about the device that Inductor keeps for the life of the process."""


def _tflops(target: Target, dtype: torch.dtype) -> float:
    if dtype in (torch.float16, torch.bfloat16):
        return target.fp16_tflops
    tf32 = torch.backends.cuda.matmul.allow_tf32
    return target.tf32_tflops if tf32 else target.fp32_tflops


def _kernels_stand_in(patches: Patches) -> None:
    compile_ = f"{_INDUCTOR}.async_compile"
    patches.set(
        compile_, "AsyncCompile.triton", lambda _, name, source, device_str="cuda": StandIn(name)
    )
    patches.set(compile_, "AsyncCompile.multi_kernel", lambda _, name, *__, **___: StandIn(name))
    for name in ("cpp", "cpp_pybinding"):
        patches.set(compile_, f"AsyncCompile.{name}", lambda *_: CpuStandIn())
    patches.set(compile_, "AsyncCompile.wait", lambda *_: None)
    for module in ("scheduler", "fx_passes.pad_mm"):
        patches.set(f"{_INDUCTOR}.{module}", "has_triton", lambda *_: True)
    patches.set("torch.utils._triton", "triton_hash_with_backend", lambda *_: "none")
