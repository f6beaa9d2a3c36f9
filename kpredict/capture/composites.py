"""Backward formulas that write in place, undone for fake tensors.

Some of PyTorch's composite backward formulas fill a fresh array of zeros in place, but for tensor
subclasses (and fake tensors are one) they call the out-of-place op, which would cost a copy that a
GPU never makes. One row per formula: torch/csrc/autograd/FunctionsManual.cpp and the places in
aten/src/ATen/native that ask `areAnyTensorSubclassLike` (2.6.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

_SELECTS = "Max0 Min0 Sort0 Sort1 Topk0 Kthvalue0 Median1 Nanmedian1 Mode0".split()

IN_PLACE: Mapping[tuple[str, OpOverload], OpOverload] = MappingProxyType(
    {
        ("GatherBackward0", aten.scatter_add.default): aten.scatter_add_.default,
        ("CummaxBackward0", aten.scatter_add.default): aten.scatter_add_.default,
        ("CumminBackward0", aten.scatter_add.default): aten.scatter_add_.default,
        ("IndexSelectBackward0", aten.index_add.default): aten.index_add_.default,
        ("IndexBackward0", aten.index_put.default): aten._index_put_impl_.default,
        ("TakeBackward0", aten.put.default): aten.put_.default,
        ("MaskedSelectBackward0", aten.masked_scatter.default): aten.masked_scatter_.default,
        ("TraceBackward0", aten.index_fill.int_Tensor): aten.index_fill_.int_Tensor,
        **{
            (f"{name[:-1]}Backward{name[-1]}", aten.scatter.src): aten.scatter_.src
            for name in _SELECTS
        },
    }
)
"""Autograd node and the op it calls on fake tensors → the op it calls on a GPU."""


def on_gpu(
    node: str, func: OpOverload, args: Sequence[Any]
) -> tuple[OpOverload, Sequence[Any]] | None:
    """The in-place call that autograd's `node` makes where it was heard to call `func`, if any."""
    found = IN_PLACE.get((node, func))
    if found is None:
        return None
    if found is aten._index_put_impl_.default:
        args = (*args, True)  # unsafe: the forward has checked the indices
    return found, args
