"""Values only the device would know: stated assumptions in their place.

`.item()`, `bool(tensor)`, `nonzero`, boolean masks and `unique` depend on data that a pretended
GPU does not have. Each read gets the value the user stated for its line, else a default, and
the assumption is kept for the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from kpredict.model import Assumption, Span

aten = torch.ops.aten
Where = Callable[[], tuple[Span | None, tuple[Span, ...]]]


class Values:
    """`stated` maps a source line (or "*") to the value its device read gives."""

    def __init__(self, stated: Mapping[int | str, float] | None = None) -> None:
        self._stated = dict(stated or {})
        self.assumptions: dict[tuple[str, Span | None], Assumption] = {}

    def answer(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], where: Where
    ) -> tuple[bool, Any]:
        """(True, result) for an op that reads the device's data, else (False, None)."""
        if func is aten._local_scalar_dense.default and args[0].device.type == "cuda":
            return True, self._scalar(args[0], where)
        if func is aten.nonzero.default and args[0].device.type == "cuda":
            x = args[0]
            n = int(self._value(x.numel() // 2, "elements found by nonzero", where))
            rows = torch.empty_strided((n, x.dim()), (1, n), dtype=torch.int64, device=x.device)
            return True, rows
        return False, None

    def _scalar(self, x: torch.Tensor, where: Where) -> Any:
        value = self._value(1, "value read by the host", where)
        if x.dtype is torch.bool:
            return bool(value)
        if x.dtype.is_complex:
            return complex(value)
        return float(value) if x.dtype.is_floating_point else int(value)

    def _value(self, default: float, what: str, where: Where) -> float:
        span, _ = where()
        value = self._stated.get(span.line if span else -1, self._stated.get("*", default))
        self.assumptions.setdefault((what, span), Assumption(what, f"{value:g}", span))
        return value
