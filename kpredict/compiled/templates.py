"""Triton templates (flex attention, grouped matmul) without Triton: rendered, never loaded.

Inductor renders a template to find out what can be fused into it, and loads the rendered module to
time it. Loading needs Triton; here a stand-in takes the place of the module, and of the class of
launch configurations.

Private API touched: `torch._inductor` select_algorithm, template_heuristics.triton, runtime.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kpredict.compiled.patching import Patches


class Config:
    """What `triton.Config` holds: block sizes, warps and stages of one candidate."""

    def __init__(
        self, kwargs: dict[str, Any], num_warps: int = 4, num_stages: int = 3, **more: Any
    ) -> None:
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.__dict__.update(more)


class Loader:
    """In the place of Inductor's code cache: nothing is written or executed."""

    @staticmethod
    def load(source: str, extra: str = "", **_: Any) -> SimpleNamespace:
        return SimpleNamespace(__file__="<template>", key=str(hash((source, extra))))


def templates_stand_in(patches: Patches) -> None:
    patches.set("torch._inductor.select_algorithm", "PyCodeCache", Loader)
    from torch._inductor.runtime import triton_compat

    if not triton_compat.HAS_TRITON:
        patches.set("torch._inductor.template_heuristics.triton", "TritonConfig", Config)
