"""Triton kernels of the user's own: each call is one launch, told and not run.

Where Triton is installed, its launcher would compile for a device that is not there. The compiler
itself needs none: it only asks which GPU to aim at, and is told the target's.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from kpredict.model import Target

Heard = Callable[[str, Sequence[torch.Tensor], Sequence[torch.Tensor]], None]
"""Told the kernel's name, the arrays it reads and those it writes."""


@contextmanager
def triton_kernels(target: Target, heard: Heard) -> Iterator[None]:
    """While entered, `kernel[grid](...)` tells its launch."""
    if importlib.util.find_spec("triton") is None:
        yield
        return
    driver = importlib.import_module("triton.runtime").driver
    tuner_class = importlib.import_module("triton.runtime.autotuner").Autotuner
    kernel_class = importlib.import_module("triton.runtime.jit").JITFunction

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        if warmup:
            return
        bound = dict(zip(kernel.arg_names, args, strict=False))
        bound |= {name: value for name, value in kwargs.items() if name in kernel.arg_names}
        reads, writes = _accesses(kernel, bound)
        heard(
            kernel.__name__, [v for n, v in bound.items() if n in reads],
            [v for n, v in bound.items() if n in writes],
        )  # fmt: skip

    def run_first(tuner: Any, *args: Any, **kwargs: Any) -> None:
        """Configurations are timed on a GPU; each of them is one launch."""
        tuner.fn.run(*args, **kwargs, **tuner.configs[0].all_kwargs())

    with ExitStack() as stack:
        for owner, stand_in in ((kernel_class, run), (tuner_class, run_first)):
            stack.enter_context(mock.patch.object(owner, "run", stand_in))
        stack.enter_context(mock.patch.object(driver, "_active", _Driver(target)))
        yield


class _Driver:
    """What Triton's compiler asks of the device."""

    def __init__(self, target: Target) -> None:
        self._sm = target.sm

    def get_current_target(self) -> Any:
        return importlib.import_module("triton.backends.compiler").GPUTarget("cuda", self._sm, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)


def _accesses(kernel: Any, bound: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """The arguments that the kernel loads from and stores to, by torch's own analysis of it; every
    array for both where that fails."""
    wrap: Any = importlib.import_module("torch._higher_order_ops.triton_kernel_wrap")
    arrays = {name for name, value in bound.items() if isinstance(value, torch.Tensor)}
    try:
        if not hasattr(wrap, "identify_accessed_tensors"):  # until 2.11
            written = set(wrap.identify_mutated_tensors(kernel, dict(bound), {}))
            return arrays - written, written & arrays
        found = wrap.identify_accessed_tensors(kernel, dict(bound), {}).read_writes
        return {d.name for d in found.reads} & arrays, {d.name for d in found.writes} & arrays
    except Exception:
        return arrays, arrays
