"""Choices that Inductor makes by timing candidates on the GPU: the plain one is kept, and said.

Padding a matrix multiply to aligned sizes, and under max-autotune the Triton template against the
library call. Nothing can be timed here, so the plan holds what runs when the plain candidate wins.

Private API touched: `torch._inductor` config, fx_passes.pad_mm, select_algorithm, utils.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpredict.compiled.patching import Patches
from kpredict.model import Target

PADDING = "padding a matrix multiply to aligned sizes is chosen by timing: it may add copies"
TEMPLATES = (
    "max-autotune picks matrix multiplies by timing: a Triton template that wins takes the "
    "pointwise work after it into one kernel"
)
_BIG_GPU = 68  # SMs, torch._inductor.utils.is_big_gpu: below, no templates are tried


def timings_are_absent(patches: Patches, target: Target, undecided: Callable[[str], None]) -> None:
    """Keep the plain candidate wherever Inductor would time; `undecided` hears of it."""

    def should_pad(_: str) -> bool:
        undecided(PADDING)
        return False

    def choose(original: Callable[..., Any]) -> Callable[..., Any]:
        def select(cache: Any, name: str, choices: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            from torch._inductor import config

            if target.sms >= _BIG_GPU and (config.max_autotune or config.max_autotune_gemm):
                undecided(TEMPLATES)
            libraries = [c for c in choices if type(c).__name__ == "ExternKernelCaller"]
            return original(cache, name, (libraries or list(choices))[:1], *args, **kwargs)

        return select

    patches.set("torch._inductor.fx_passes.pad_mm", "get_cached_should_pad", should_pad)
    patches.wrap("torch._inductor.select_algorithm", "AlgorithmSelectorCache.__call__", choose)
    patches.configure(
        "torch._inductor.config",
        {"max_autotune_gemm_backends": "ATEN", "max_autotune_conv_backends": "ATEN"},
    )
