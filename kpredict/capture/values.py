"""Values only the device would know: stated assumptions in their place.

`.item()`, `bool(tensor)`, `nonzero`, boolean masks and `unique` depend on data that a pretended
GPU does not have. Each read gets the value the user stated for its line, else a default, and
the assumption is kept for the report. An op whose result shape depends on data is a row in
`ANSWERS`: a function from its arguments to a result of the assumed shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import OpOverload
from torch.utils._pytree import tree_map

from kpredict.capture.loops import BOUND, LoopGuard, other_value
from kpredict.model import Assumption, Span

aten = torch.ops.aten
Where = Callable[[], Span | None]
Answer = Callable[["Read", Sequence[Any], Mapping[str, Any]], Any]
ANSWERS: dict[OpOverload, Answer] = {}
FROM_ALL = "_kpredict_from_all"  # set on the result of `all()`
TOO_SMALL = "_kpredict_too_small"  # set on whether one number is below a limit


class Read:
    """One data-dependent read: `value(default, what)` gives the number to suppose."""

    def __init__(self, values: Values, where: Where) -> None:
        self._values = values
        self._where = where

    def value(self, default: float, what: str) -> float:
        return self._values.value(default, what, self._where())

    def scalar(self, default: float, condition: bool = False) -> float:
        """A number or condition that the host reads; in a loop another one after a bound."""
        return self._values.scalar(default, self._where(), condition)

    def count(self, default: int, limit: int, what: str) -> int:
        """A number of elements, at least 0 and at most `limit`."""
        return max(0, min(int(self.value(default, what)), limit))


class Values:
    """`stated` maps a source line (or "*") to the value its device read gives."""

    def __init__(self, stated: Mapping[int | str, float] | None = None) -> None:
        self._stated = dict(stated or {})
        self.assumptions: dict[Assumption, None] = {}  # in the order they were first made
        self.taken: float | None = None  # what the op being dispatched was told, if anything
        self._loops = LoopGuard()

    def answer(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], where: Where
    ) -> Any:
        """The result of an op that reads the device's data, or NotImplemented to let it run."""
        return ANSWERS[func](Read(self, where), args, kwargs)

    def value(self, default: float, what: str, span: Span | None, condition: bool = False) -> float:
        """What is stated for the line, else for "*", else `default`; and that is said.

        A number stated for "*" says nothing of conditions unless it is 0 or 1.
        """
        everywhere = self._stated.get("*", default)
        if condition and everywhere not in (0, 1):
            everywhere = default
        value = self._stated.get(span.line if span else -1, everywhere)
        supposed = Assumption(what, f"{value:g}", span)
        self.assumptions.setdefault(supposed)
        self.taken = value
        return value

    def scalar(self, default: float, span: Span | None, condition: bool) -> float:
        value = self.value(default, "value read by the host", span, condition)
        repeats = self._loops.repeats()
        if repeats >= BOUND:
            value = self.taken = other_value(value, repeats)
            ends = Assumption("loop that ends when the GPU says so", f"{BOUND} reads", span)
            self.assumptions.setdefault(ends)
        return value

    def settle(self, func: OpOverload, args: Sequence[Any], result: Any, where: Where) -> Any:
        """Give a number to each size that fake tensors left open: half of the first input's."""
        read = Read(self, where)
        first = next((x for x in args if isinstance(x, torch.Tensor)), None)
        default = max(int(first.numel()) // 2, 1) if first is not None else 1

        def fixed(t: Any) -> Any:
            if not isinstance(t, torch.Tensor) or all(type(s) is int for s in t.shape):
                return t
            what = f"elements that {func.name().removeprefix('aten::')} finds"
            shape = [s if type(s) is int else int(read.value(default, what)) for s in t.shape]
            return torch.empty(shape, dtype=t.dtype, device=t.device)

        return tree_map(fixed, result)


def answers(func: OpOverload) -> Callable[[Answer], Answer]:
    """Register the result of a data-dependent op; return NotImplemented to let it run."""

    def register(function: Answer) -> Answer:
        ANSWERS[func] = function
        return function

    return register


@answers(aten._local_scalar_dense.default)
def scalar(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`.item()`, `bool(t)`: 0 or false unless stated.

    True is what `all()` gives (checks hold) and what a backward formula is told that asks for a
    shortcut: it then takes its general way.
    """
    (x,) = args
    general = torch._C._current_autograd_node() is not None and x.dtype is torch.bool
    default = 1 if general or getattr(x, FROM_ALL, False) else 0
    value = read.scalar(default, condition=x.dtype is torch.bool)
    if x.dtype is torch.bool:
        return bool(value)
    if x.dtype.is_complex:
        return complex(value)
    return float(value) if x.dtype.is_floating_point else int(value)


@answers(aten.nonzero.default)
def nonzero(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Half of the elements unless stated; the (n, dims) result is column-major, as on CUDA."""
    (x,) = args
    n = read.count(x.numel() // 2, x.numel(), "elements that nonzero finds")
    return torch.empty_strided((n, x.dim()), (1, max(n, 1)), dtype=torch.int64, device=x.device)


@answers(aten.masked_select.default)
def masked_select(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Half of the elements unless stated."""
    x, mask = args
    total = torch.broadcast_shapes(x.shape, mask.shape).numel()
    n = read.count(total // 2, total, "elements that the mask selects")
    return torch.empty((n,), dtype=x.dtype, device=x.device)


def _found(read: Read, mask: torch.Tensor) -> int:
    return read.count(mask.numel() // 2, mask.numel(), "elements that the mask selects")


@answers(aten.index.Tensor)
def index(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A boolean index stands for as many integer ones as it has dims, each of the same length."""
    x, indices = args
    if not any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices):
        return NotImplemented
    integers: list[torch.Tensor | None] = []
    for i in indices:
        if i is None or i.dtype not in (torch.bool, torch.uint8):
            integers.append(i)
        else:
            n = _found(read, i)
            integers += [
                torch.empty((n,), dtype=torch.int64, device=i.device) for _ in range(i.dim())
            ]
    return aten.index.Tensor(x, integers)


@answers(aten.index_put_.default)
@answers(aten._index_put_impl_.default)
def index_put_(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """In place: the result is the input; a mask's element count is supposed."""
    for i in args[1]:
        if i is not None and i.dtype in (torch.bool, torch.uint8):
            _found(read, i)
            return args[0]
    return NotImplemented


@answers(aten.index_put.default)
def index_put(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Out of place: a fresh array like the input."""
    done = index_put_(read, args, kwargs)
    return done if done is NotImplemented else torch.empty_like(args[0])


def _equal(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Compare, reduce, read one value (cuda_equal in native/cuda/Equal.cpp, 2.6.0). C++ asks so
    too whether one number is too small to go on (is_scalar_tensor_true): it is not."""
    return x.shape == y.shape and bool(x.eq(y).all()) and not getattr(x, TOO_SMALL, False)


def _allclose(x: torch.Tensor, y: torch.Tensor, *tolerances: Any, **named: Any) -> bool:
    """`isclose`, reduce, read one value (native/TensorCompare.cpp, 2.6.0)."""
    return bool(torch.isclose(x, y, *tolerances, **named).all())


PARTS: Mapping[OpOverload, Callable[..., Any]] = MappingProxyType(
    {
        aten.equal.default: _equal,
        aten.allclose.default: _allclose,
        aten._pack_padded_sequence.default: partial(
            aten._pack_padded_sequence.default._op_dk, DispatchKey.CompositeExplicitAutograd
        ),
    }
)
"""Ops that compute on the device and read the result, or read lengths on the host: heard as the ops
they are made of."""


@answers(aten.masked_scatter_backward.default)
def masked_scatter_backward(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result's shape is known; how many elements the mask selects decides whether something is
    left to fill: unless stated the mask takes the whole source, as when features fill slots."""
    _, mask, sizes = args
    source = torch.Size(sizes).numel()
    read.count(min(mask.numel(), source), source, "elements that the mask selects")
    return NotImplemented


@answers(aten.isin.Tensor_Tensor)
def isin(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """With many test elements both sides are made unique first: unless stated there are as many
    distinct elements as test elements, but at most half of all."""
    x, tests = args[:2]
    read.count(min(x.numel() // 2, tests.numel()), x.numel(), "distinct elements")
    return NotImplemented


def _distinct(
    read: Read, x: torch.Tensor, dim: int | None, inverse: bool, counts: bool
) -> tuple[torch.Tensor, ...]:
    """Half of the elements, or of the slices along `dim`, unless stated; bools have two values."""
    total = x.numel() if dim is None else x.shape[dim]
    limit = min(total, 2) if x.dtype is torch.bool and dim is None else total
    default = min(max(total // 2, 1), limit)
    n = read.count(default, limit, "distinct elements")
    shape = [n] if dim is None else [n if d == dim % x.dim() else s for d, s in enumerate(x.shape)]
    places = x.shape if dim is None else (total,)
    return (
        x.new_empty(shape),
        x.new_empty(places if inverse else (0,), dtype=torch.int64),
        x.new_empty((n,) if counts else (0,), dtype=torch.int64),
    )


@answers(aten.unique_dim.default)
def unique_dim(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    x, dim, _, inverse, counts = _bound(aten.unique_dim.default, args, kwargs)
    return _distinct(read, x, dim, inverse, counts)


@answers(aten.unique_dim_consecutive.default)
def unique_dim_consecutive(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    x, dim, inverse, counts = _bound(aten.unique_dim_consecutive.default, args, kwargs)
    return _distinct(read, x, dim, inverse, counts)


@answers(aten.unique_consecutive.default)
def unique_consecutive(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    x, inverse, counts, dim = _bound(aten.unique_consecutive.default, args, kwargs)
    return _distinct(read, x, dim, inverse, counts)


@answers(aten._unique2.default)
def unique2(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    x, _, inverse, counts = _bound(aten._unique2.default, args, kwargs)
    return _distinct(read, x, None, inverse, counts)


@answers(aten._unique.default)
def unique(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    x, _, inverse = _bound(aten._unique.default, args, kwargs)
    return _distinct(read, x, None, inverse, False)[:2]


def _bound(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Every argument of the schema, in order."""
    given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | dict(kwargs)
    return [given.get(a.name, a.default_value) for a in func._schema.arguments]


@answers(aten.repeat_interleave.Tensor)
def repeat_interleave(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The sum of the repeats, unless it is given: each element once unless stated."""
    (repeats,) = args
    if kwargs.get("output_size") is not None:
        return NotImplemented
    n = int(read.value(repeats.numel(), "length of the repeated result"))
    return torch.empty((n,), dtype=repeats.dtype, device=repeats.device)


@answers(aten.bincount.default)
def bincount(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One bin more than the largest element, which is half of their number unless stated."""
    x, weights, least = (*args, *(None, 0)[len(args) - 1 :])[:3]
    weights, least = kwargs.get("weights", weights), kwargs.get("minlength", least)
    largest = int(read.value(x.numel() // 2, "largest element"))
    dtype = torch.int64 if weights is None else torch.float64
    if weights is not None and weights.dtype is torch.float32:
        dtype = torch.float32
    return torch.empty((max(largest + 1, least or 0),), dtype=dtype, device=x.device)


@answers(aten._use_cudnn_ctc_loss.default)
@answers(aten._use_cudnn_ctc_loss.Tensor)
def use_cudnn_ctc_loss(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """No data is read to see that."""
    return cudnn_takes_ctc_loss(args)


def cudnn_takes_ctc_loss(args: Sequence[Any]) -> bool:
    """cuDNN's wants float probabilities and int32 targets with blank 0 (cudnn/LossCTC.cpp,
    2.6.0)."""
    log_probs, targets, *_, blank = args
    return blank == 0 and log_probs.dtype is torch.float32 and targets.dtype is torch.int32


@answers(aten._ctc_loss.default)
def ctc_loss(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Losses, and the alphas of every step over labels with blanks between (cuda/LossCTC.cu)."""
    log_probs, _, _, target_lengths, *_ = args
    steps, batch, _ = log_probs.shape
    labels = 2 * max(target_lengths, default=0) + 1
    return log_probs.new_empty(batch), log_probs.new_empty(batch, steps, labels)


def _never(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A question about ROCm's library, of releases that ask it."""
    return False


if hasattr(aten, "_use_miopen_ctc_loss"):
    for _name in aten._use_miopen_ctc_loss.overloads():
        answers(getattr(aten._use_miopen_ctc_loss, _name))(_never)
