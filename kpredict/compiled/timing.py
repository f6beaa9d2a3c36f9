"""Choices that Inductor makes by timing candidates on the GPU: the plain one is kept, and said.

Nothing can be timed here, so the plan holds what runs when the plain candidate wins, and beside it
what the other would change, as an interval:

- padding a matrix multiply to aligned sizes adds a kernel for each operand that is padded;
- under max-autotune, a Triton template that wins over the library call takes pointwise work around
  it into its kernel. Which, is known from a second run in which the templates win.

Private API touched: `torch._inductor` config, fx_passes.pad_mm, select_algorithm, scheduler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kpredict.compiled.patching import Patches, find
from kpredict.compiled.region import Product
from kpredict.model import Target

PADDING = (
    "whether a matrix multiply is padded to aligned sizes is decided by timing on the GPU: "
    "its count is an interval"
)
TEMPLATES = (
    "max-autotune chooses between the library and Triton templates by timing on the GPU: a "
    "template that wins takes pointwise work around it into its kernel, so those counts are 0..1"
)
FUSIONS = "benchmark_fusion keeps or drops fusions by timing on the GPU: all are kept here"
_BIG_GPU = 68  # SMs, torch._inductor.utils.is_big_gpu: below, no templates are tried


@dataclass(slots=True)
class Timed:
    """What was left out: notes for the region under way; by product and for the whole run, the
    kernels that padding may add, and the products whose sums may be split over two kernels
    (`decompose_k`). `templates` says that those were asked for."""

    notes: dict[str, None] = field(default_factory=dict)
    padding: dict[Product, int] = field(default_factory=dict)
    splitting: dict[Product, int] = field(default_factory=dict)
    templates: bool = False

    def say(self, what: str) -> None:
        self.notes[what] = None


def timings_are_absent(
    patches: Patches, target: Target, timed: Timed, templates_win: bool = False
) -> None:
    """Keep the plain candidate (or every template) wherever Inductor would time; `timed` hears."""
    pad_mm = "torch._inductor.fx_passes.pad_mm"
    asked = False

    def cached_should_pad(_: str) -> bool:
        nonlocal asked
        asked = True
        return False

    def watched(should_pad: Callable[..., bool]) -> Callable[..., bool]:
        should_pad = inspect.unwrap(should_pad)  # Inductor remembers answers beyond one run

        def decide(match: Any, mat1: Any, mat2: Any, op: Any, input: Any = None) -> bool:
            nonlocal asked
            asked = False
            answer = should_pad(match, mat1, mat2, op, input)
            if asked:
                timed.say(PADDING)
                timed.padding[_product(mat1, mat2)] = _kernels_of_padding(mat1, mat2, op, input)
            return answer

        return decide

    def choose(original: Callable[..., Any]) -> Callable[..., Any]:
        def select(
            cache: Any, name: str, choices: Sequence[Any], input_nodes: Any, *args: Any,
            **kwargs: Any,
        ) -> Any:  # fmt: skip
            from torch._inductor import config

            if target.sms >= _BIG_GPU and (config.max_autotune or config.max_autotune_gemm):
                timed.templates = True
                timed.say(TEMPLATES)
            library = [c for c in choices if type(c).__name__ == "ExternKernelCaller"]
            triton = [c for c in choices if type(c).__name__ == "TritonTemplateCaller"]
            kept = (triton or library) if templates_win else (library or triton)
            if any("decompose_k" in getattr(c, "name", "") for c in choices):
                timed.splitting[_product(*input_nodes[-2:])] = 1
            kept = (kept or list(choices))[:1]
            return original(cache, name, kept, input_nodes, *args, **kwargs)

        return select

    def unbenched(original: Callable[..., Any]) -> Callable[..., Any]:
        def speedup_by_fusion(*args: Any, **kwargs: Any) -> Any:
            from torch._inductor import config

            if config.benchmark_fusion:
                timed.say(FUSIONS)
            with config.patch(benchmark_fusion=False):
                return original(*args, **kwargs)

        return speedup_by_fusion

    patches.set(pad_mm, "get_cached_should_pad", cached_should_pad)
    patches.wrap(pad_mm, "_should_pad", watched)
    patches.wrap("torch._inductor.scheduler", "Scheduler.speedup_by_fusion", unbenched)
    patches.wrap("torch._inductor.select_algorithm", "AlgorithmSelectorCache.__call__", choose)
    backends = "TRITON,ATEN" if templates_win else "ATEN"
    patches.configure(
        "torch._inductor.config",
        {"max_autotune_gemm_backends": backends, "max_autotune_conv_backends": backends},
    )


def _product(mat1: Any, mat2: Any) -> Product:
    """Of two tensors or two of Inductor's buffers."""

    def sizes(t: Any) -> tuple[int | None, ...]:
        shape = t.shape if isinstance(t, torch.Tensor) else t.get_size()
        return tuple(int(s) if str(s).isdigit() else None for s in shape)

    dtype = mat1.dtype if isinstance(mat1, torch.Tensor) else mat1.get_dtype()
    return sizes(mat1), sizes(mat2), str(dtype).removeprefix("torch.")


def _kernels_of_padding(mat1: Any, mat2: Any, op: Any, bias: Any) -> int:
    """At most how many kernels padding adds: one for each operand that grows, two for a bias that
    is joined with zeros, one for a result that must be dense again."""
    module, name = find("torch._inductor.fx_passes.pad_mm", "get_padded_length")
    padded = getattr(module, name)
    align = module.get_alignment_size
    m, k = (padded(s, align(mat1)) for s in mat1.shape[-2:])
    n = padded(mat2.shape[-1], align(mat2))
    grown = bool(m or k) + bool(k or n)
    if bias is not None:
        rows = bias.dim() == 2 and bias.shape[0] != 1
        grown += 2 * (bool(n) and bias.shape[-1] != 1) + 2 * (bool(m) and rows)
    return grown + bool(m or n)
