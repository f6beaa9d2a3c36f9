"""Ops whose C++ composite would take the CPU's way on a CPU build: the CUDA choice, one row each.

Registered for the AutogradCUDA key, so only tensors that say CUDA are routed and calls from inside
C++ composites are routed too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

Route = Callable[..., Any]
ROUTES: dict[str, Route] = {}


def route(op: str) -> Callable[[Route], Route]:
    def register(function: Route) -> Route:
        ROUTES[op] = function
        return function

    return register


@route("rms_norm")
def rms_norm(
    input: torch.Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> torch.Tensor:
    """CUDA has one fused kernel (layer_norm.cpp rms_norm_symint: any CUDA input is fused)."""
    return torch.ops.aten._fused_rms_norm(input, normalized_shape, weight, eps)[0]


@contextmanager
def cuda_routes() -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL")
    try:
        for name, function in ROUTES.items():
            library.impl(name, function, "AutogradCUDA")
        yield
    finally:
        library._destroy()
