"""What composites do on a GPU where fake tensors, being a subclass, make them do otherwise.

Some backward formulas fill a fresh array of zeros in place, but for tensor subclasses they call the
out-of-place op, which would cost a copy that a GPU never makes. One row per formula:
torch/csrc/autograd/FunctionsManual.cpp and the places in aten/src/ATen/native that ask
`areAnyTensorSubclassLike` (2.6.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch._C import DispatchKey
from torch._guards import TracingContext
from torch._ops import OpOverload

from kpredict.model import Target

aten = torch.ops.aten
_COMPOSITE = DispatchKey.CompositeImplicitAutograd

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


def one_hot(target: Target, input: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """CUDA scatters ones into zeros (native/Onehot.cpp, 2.6.0); fake tensors would compare with a
    range, as a compiled function does."""
    if TracingContext.try_get() is not None or input.numel() == 0:
        seen: torch.Tensor = aten.one_hot.default._op_dk(_COMPOSITE, input, num_classes)
        return seen
    if num_classes == -1:
        num_classes = int(input.max().item()) + 1
    out = torch.zeros(*input.shape, num_classes, dtype=input.dtype, device=input.device)
    out.scatter_(-1, input.unsqueeze(-1), 1)
    return out


ROUTES: Mapping[str, Callable[..., Any]] = MappingProxyType({"one_hot": one_hot})
"""Composites that choose by tensor subclass, as a GPU runs them."""
