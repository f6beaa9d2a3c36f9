"""Eigen- and singular values: without vectors unless a gradient will need them.

C++ computes the vectors too for any tensor subclass, which fakes are (`_may_require_fw_or_bw_grad`
in native/BatchLinearAlgebra.cpp, 2.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch._guards import TracingContext

from kpredict.model import Target

aten = torch.ops.aten


def _needs_vectors(x: torch.Tensor) -> bool:
    traced = (
        TracingContext.try_get() is not None
    )  # a compiler's tensors are subclasses on a GPU too
    return traced or (torch.is_grad_enabled() and x.requires_grad)


def eigvals(target: Target, self: torch.Tensor) -> torch.Tensor:
    values: torch.Tensor = (
        aten.linalg_eig(self)[0] if _needs_vectors(self) else aten._linalg_eigvals(self)
    )
    return values


def eigvalsh(target: Target, self: torch.Tensor, UPLO: str = "L") -> torch.Tensor:
    values: torch.Tensor = aten._linalg_eigh(self, UPLO, _needs_vectors(self))[0]
    return values


def svdvals(target: Target, A: torch.Tensor, *, driver: str | None = None) -> torch.Tensor:
    values: torch.Tensor = aten._linalg_svd(A, False, _needs_vectors(A), driver=driver)[1]
    return values


ROUTES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"linalg_eigvals": eigvals, "linalg_eigvalsh": eigvalsh, "linalg_svdvals": svdvals}
)
"""ATen op → the function that takes the CUDA way, target first."""
