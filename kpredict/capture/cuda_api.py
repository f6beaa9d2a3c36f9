"""`torch.cuda` as user code sees it on a machine with the target GPU: a table of stand-ins.

Queries answer from the target's row; streams, events and seeds do nothing; memory is free.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from kpredict.model import Target


class Stream:
    """A stream that orders nothing: every launch is recorded in program order."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.priority = priority
        self.stream_id = self.cuda_stream = 0
        self.device_index = 0
        self.device_type = 1

    def synchronize(self) -> None: ...
    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def record_event(self, event: Any = None) -> Any:
        return event if event is not None else Event()

    def query(self) -> bool:
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None: ...


class Event:
    """An event that has always happened; elapsed times are 1 ms."""

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def record(self, stream: Any = None) -> None: ...
    def wait(self, stream: Any = None) -> None: ...
    def synchronize(self) -> None: ...
    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Any) -> float:
        return 1.0


def properties(target: Target) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` returns on the target."""
    return SimpleNamespace(
        name=target.gpu, major=target.capability[0], minor=target.capability[1],
        multi_processor_count=target.sms, warp_size=32, regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=target.max_threads_per_sm, max_threads_per_block=1024,
        shared_memory_per_block=target.shared_per_block,
        shared_memory_per_block_optin=target.shared_optin,
        shared_memory_per_multiprocessor=target.shared_per_sm,
        total_memory=target.memory << 20, L2_cache_size=target.l2 << 20, gcnArchName="",
        is_integrated=0, is_multi_gpu_board=0, clock_rate=target.clock * 1000, uuid="",
        pci_bus_id=0, pci_device_id=0, pci_domain_id=0, memory_clock_rate=0, memory_bus_width=0,
    )  # fmt: skip


def _rng_state(*_: Any) -> torch.Tensor:
    return torch.zeros(16, dtype=torch.uint8)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


_NOTHING = (
    "_lazy_init init set_device manual_seed manual_seed_all seed seed_all empty_cache ipc_collect "
    "reset_peak_memory_stats reset_max_memory_allocated reset_accumulated_memory_stats "
    "set_rng_state set_rng_state_all set_stream _lazy_call set_sync_debug_mode "
    "set_per_process_memory_fraction check_error"
)


def _stand_ins(target: Target, on_sync: Callable[[str], None]) -> dict[str, Any]:
    gpu = properties(target)
    ampere = target.sm >= 80
    free = target.memory << 20
    stream = Stream()
    answers: dict[str, Any] = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "_is_compiled": True, "_exchange_device": 0, "_maybe_exchange_device": 0,
        "get_device_name": gpu.name, "get_device_capability": target.capability,
        "get_device_properties": gpu, "is_tf32_supported": ampere,
        "get_arch_list": [f"sm_{target.sm}"], "current_stream": stream, "default_stream": stream,
        "initial_seed": 0, "memory_allocated": 0, "max_memory_allocated": 0,
        "memory_reserved": 0, "max_memory_reserved": 0, "mem_get_info": (free, free),
        "memory_stats": {}, "memory_summary": "", "is_current_stream_capturing": False,
        "can_device_access_peer": False, "utilization": 0, "current_blas_handle": 0,
        "_get_device_properties": gpu,
    }  # fmt: skip
    functions: dict[str, Any] = {name: _constant(value) for name, value in answers.items()}
    functions |= dict.fromkeys(_NOTHING.split(), _nothing)
    # before Ampere bfloat16 is emulated, which counts unless the caller says otherwise
    functions["is_bf16_supported"] = lambda including_emulation=True: ampere or including_emulation
    functions["get_rng_state"] = _rng_state
    functions["get_rng_state_all"] = lambda: [_rng_state()]
    functions["synchronize"] = lambda *_: on_sync("torch.cuda.synchronize()")
    functions["stream"] = lambda s=None: contextlib.nullcontext(s)
    functions["Stream"] = Stream
    functions["Event"] = Event
    return functions


@contextmanager
def cuda_api(target: Target, on_sync: Callable[[str], None]) -> Iterator[None]:
    """Put the stand-ins in place; `on_sync` hears each explicit synchronize."""
    with ExitStack() as stack:
        for name, stand_in in _stand_ins(target, on_sync).items():
            if hasattr(torch.cuda, name):
                stack.enter_context(mock.patch.object(torch.cuda, name, stand_in))
        for name in ("nvtx.range_push", "nvtx.range_pop", "nvtx.mark"):
            stack.enter_context(mock.patch(f"torch.cuda.{name}", _nothing))
        yield
