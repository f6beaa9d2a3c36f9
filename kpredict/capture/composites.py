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

from kpredict.capture import sparse
from kpredict.model import Target

aten = torch.ops.aten
_COMPOSITE = DispatchKey.CompositeImplicitAutograd

_ASKED = "kpredict has asked"
_SELECTS = "Max0 Min0 Sort0 Sort1 Topk0 Kthvalue0 Median1 Nanmedian1 Mode0".split()

# Until 2.13 fmax and fmin fill a copy on a GPU too; maximum and minimum fill in place everywhere.
_BEFORE_2_14 = tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 14)
FILL_IN_PLACE = frozenset(
    f"{name}Backward0"
    for name in ("Atan2", *(() if _BEFORE_2_14 else ("Maximum", "Minimum", "Fmax", "Fmin")))
)
"""Autograd nodes that fill a result masked in place, which so keeps its layout; on fake tensors
they fill a row-major copy."""

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
    if func is aten.clone.default and _is_kept(node, args[0]):
        return aten.alias.default, args[:1]
    found = IN_PLACE.get((node, func))
    if found is None:
        return None
    if found is aten._index_put_impl_.default:
        args = (*args, True)  # unsafe: the forward has checked the indices
    return found, args


def _is_kept(node: str, grad: torch.Tensor) -> bool:
    """Does autograd keep a sparse gradient as it is? Of fake tensors, which others hold as well, it
    keeps a copy (torch/csrc/autograd/functions/accumulate_grad.h)."""
    if node != "torch::autograd::AccumulateGrad" or grad.layout is not torch.sparse_coo:
        return False
    return all(p.is_contiguous for p in sparse.metadata(grad, "cuda")[1])


def _zeros_of_all(node: Any) -> None:
    (node._saved_self == 0).nonzero()


def _zeros_by_slice(node: Any) -> None:
    if node._saved_self.dim():
        dim = (node._saved_dim + 2**63) % 2**64 - 2**63  # autograd shows it as unsigned
        (node._saved_self == 0).sum(dim, keepdim=True).sum().item()


QUESTIONS: Mapping[str, Callable[[Any], None]] = MappingProxyType(
    {"ProdBackward0": _zeros_of_all, "ProdBackward1": _zeros_by_slice}
)
"""Autograd node → what its formula asks the device first, but not of fake tensors. With a zero (the
value supposed) it goes on as for those."""

FIRST_OPS = frozenset({aten.unsqueeze.default, aten.clone.default, aten.view.default,
                       aten.ones.default})  # fmt: skip
"""The ops such a formula may begin with."""


def ask() -> None:
    """Run what the current autograd node asks first, once per backward pass."""
    node: Any = torch._C._current_autograd_node()
    question = QUESTIONS.get(node.name()) if node is not None else None
    if question is None:
        return
    run = torch._C._current_graph_task_id()
    if node.metadata.get(_ASKED) != run:
        node.metadata[_ASKED] = run
        question(node)


def one_hot(target: Target, input: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """CUDA scatters ones into zeros (native/Onehot.cpp, 2.6.0); fake tensors would compare with a
    range, as a compiled function does (by torch's decomposition in Python, where it has one)."""
    tracing = TracingContext.try_get() is not None
    if tracing or input.numel() == 0:
        from torch._decomp import decompositions

        if tracing and hasattr(decompositions, "one_hot"):
            return decompositions.one_hot(input, num_classes)
        seen: torch.Tensor = aten.one_hot.default._op_dk(_COMPOSITE, input, num_classes)
        return seen
    if num_classes == -1:
        num_classes = int(input.max().item()) + 1
    out = torch.zeros(*input.shape, num_classes, dtype=input.dtype, device=input.device)
    out.scatter_(-1, input.unsqueeze(-1), 1)
    return out


def cumprod_backward(
    target: Target, grad: torch.Tensor, input: torch.Tensor, dim: int, output: torch.Tensor
) -> torch.Tensor:
    """The host asks whether there is a zero (native/ReduceOps.cpp, 2.6.0; launches of 2.13.0 and
    2.14.1); of fake tensors the composite does not ask. Without zeros a reversed cumsum is enough.
    """
    if input.numel() <= 1 or input.size(dim) == 1:
        short: torch.Tensor = aten.cumprod_backward.default._op_dk(
            _COMPOSITE, grad, input, dim, output
        )
        return short
    factors = input.conj()

    def sums_from_here(t: torch.Tensor) -> torch.Tensor:
        return t.flip(dim).cumsum(dim).flip(dim)

    products = output.conj() * grad
    is_zero = input == 0
    if not is_zero.any().item():
        return sums_from_here(products).div(factors)
    result = torch.zeros(input.shape, dtype=grad.dtype, device=grad.device)
    zeros = is_zero.cumsum(dim)
    before = zeros == 0
    kept = sums_from_here(products.masked_fill(~before, 0.0)).div_(factors)
    result = torch.where(before, kept, result)
    after = zeros == 1
    first = after.max(dim, keepdim=True)[1]
    if target.release < (2, 14):
        at_first = torch.zeros_like(after).scatter_(dim, first, 1).logical_and_(after)
    else:
        at_first = after.logical_and(is_zero)
    after &= ~at_first
    rest = factors.masked_fill(~after, 1.0).cumprod(dim)
    left = grad.masked_fill(zeros != 1, 0.0)
    so_far = output.conj().gather(dim, (first - 1).relu_()).masked_fill_(first == 0, 1.0)
    return torch.where(at_first, rest.mul_(left).sum(dim, keepdim=True).mul_(so_far), result)


def ctc_loss(
    target: Target, log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor,
    target_lengths: torch.Tensor, blank: int = 0, reduction: int = 1, zero_infinity: bool = False,
) -> torch.Tensor:  # fmt: skip
    """The host reads both lengths and goes on with lists (native/LossCTC.cpp, 2.6.0); what it reads
    of a GPU is supposed: full inputs, and targets of equal length. 2.13.0 reads the targets in this
    overload and again in that for lists, as its copies show."""
    targets.cpu()
    read = [t.to("cpu", torch.int64) for t in (input_lengths, target_lengths)]
    batch = read[0].numel()
    total = targets.numel()
    longest = [total // batch + (i < total % batch) for i in range(batch)]
    loss: torch.Tensor = aten.ctc_loss.IntList(
        log_probs, targets, [log_probs.shape[0]] * batch, longest, blank, reduction, zero_infinity
    )
    return loss


def cross_entropy_loss(
    target: Target, input: torch.Tensor, labels: torch.Tensor, weight: torch.Tensor | None = None,
    reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0,
) -> torch.Tensor:  # fmt: skip
    """The mean of a smoothed and weighted loss divides by the weights of the labels that are not
    ignored, which the host counts (native/LossNLL.cpp, 2.6.0); of fake tensors it masks instead."""
    masks = weight is not None and reduction == 1 and label_smoothing > 0
    if not masks or labels.shape == input.shape or TracingContext.try_get() is not None:
        seen: torch.Tensor = aten.cross_entropy_loss.default._op_dk(
            _COMPOSITE, input, labels, weight, reduction, ignore_index, label_smoothing
        )
        return seen
    assert weight is not None
    dim = min(input.dim() - 1, 1)
    logs = torch.log_softmax(input, dim, input.dtype)
    loss = aten.nll_loss_nd(logs, labels, weight, reduction, ignore_index)
    shape = [1] * input.dim()
    shape[dim] = weight.size(0)
    smooth = -(logs * weight.view(shape)).sum(dim)
    ignored = labels == ignore_index
    smooth.masked_fill_(ignored, 0.0)
    weights = weight.gather(0, labels.masked_select(~ignored).flatten()).sum()
    mean = smooth.sum() / weights
    total: torch.Tensor = (1 - label_smoothing) * loss + mean * (label_smoothing / logs.size(dim))
    return total


ROUTES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "cross_entropy_loss": cross_entropy_loss,
        "ctc_loss.Tensor": ctc_loss,
        "cumprod_backward": cumprod_backward,
        "one_hot": one_hot,
    }
)
"""Composites that choose by tensor subclass, as a GPU runs them."""
