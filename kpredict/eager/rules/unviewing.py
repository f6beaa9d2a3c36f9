"""What undoes or copies a view: gradients of views, writes into a view of a clone, copied views."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.copying import clone_storage, copy, zero
from kpredict.eager.elementwise import indexed
from kpredict.eager.indexing import per_element
from kpredict.eager.operands import view
from kpredict.eager.registry import rule
from kpredict.eager.shaping import fresh, wrap
from kpredict.model import Launch, Op, Target, Tensor


def select(t: Tensor, dim: int, at: int) -> Tensor:
    """`t.select(dim, at)`."""
    dim = wrap(dim, t.ndim)
    at %= max(t.shape[dim], 1)
    return view(
        t,
        (*t.shape[:dim], *t.shape[dim + 1 :]),
        (*t.stride[:dim], *t.stride[dim + 1 :]),
        at * t.stride[dim],
    )


def slice_of(t: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """`t[..., start:end:step, ...]` along `dim`."""
    dim = wrap(dim, t.ndim)
    taken = range(t.shape[dim])[slice(start, end, step)]
    shape = [len(taken) if d == dim else n for d, n in enumerate(t.shape)]
    stride = [st * step if d == dim else st for d, st in enumerate(t.stride)]
    return view(t, shape, stride, taken.start * t.stride[dim])


def diagonal(t: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """`t.diagonal(offset, dim1, dim2)`: the diagonal becomes the last dim."""
    dim1, dim2 = wrap(dim1, t.ndim), wrap(dim2, t.ndim)
    rows, columns = t.shape[dim1], t.shape[dim2]
    n = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    skipped = offset * t.stride[dim2] if offset >= 0 else -offset * t.stride[dim1]
    kept = [d for d in range(t.ndim) if d not in (dim1, dim2)]
    return view(
        t,
        [*(t.shape[d] for d in kept), n],
        [*(t.stride[d] for d in kept), t.stride[dim1] + t.stride[dim2]],
        skipped if n else 0,
    )


def region(op: Op, t: Tensor) -> Tensor:
    """The view of `t` that a select, slice, diagonal or as_strided op means."""
    kind = op.packet.removeprefix("aten.").split("_")[0]
    if kind == "select":
        return select(t, op["dim"], op["index"])
    if kind == "slice":
        return slice_of(t, op["dim"], op["start"], op["end"], op["step"])
    if kind == "diagonal":
        return diagonal(t, op["offset"], op["dim1"], op["dim2"])
    offset = op.get("storage_offset")
    return view(t, op["size"], op["stride"], 0 if offset is None else offset - t.offset)


@rule(
    "aten.select_backward", "aten.slice_backward", "aten.diagonal_backward",
    source="native/TensorShape.cpp slice_backward; 2.6.0",
)  # fmt: skip
def gradient(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then a copy of the gradient into the view."""
    grad = op["grad_output"]
    yield from zero(op.out, because="zeros around the view")
    yield from copy(region(op, op.out), grad, because="the gradient of the view")


@rule(
    "aten.select_scatter", "aten.slice_scatter", "aten.diagonal_scatter", "aten.as_strided_scatter",
    source="native/TensorShape.cpp slice_scatter; 2.6.0",
)  # fmt: skip
def write(op: Op, target: Target) -> Iterable[Launch]:
    """A clone that keeps the strides, then a copy into the view."""
    yield from clone_storage(op.out, op["self"])
    yield from copy(region(op, op.out), op["src"], because="written into the view")


@rule(
    "aten.select_copy", "aten.slice_copy", "aten.diagonal_copy", "aten.as_strided_copy",
    source="torchgen: the view's copy variants clone it contiguously; 2.6.0",
)  # fmt: skip
def copied(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous clone of the view."""
    return copy(op.out, region(op, op["self"]), because="a contiguous copy of the view")


@rule("aten.unfold_backward", source="native/UnfoldBackward.cpp, cuda/UnfoldBackwardKernel.cu; 2.6")
def unfold_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros; then, where windows do not overlap (step >= size), a copy into the unfolded view, else
    an arange and one kernel that gathers every element's windows."""
    out, grad = op.out, op["grad_in"]
    size, step = op["size"], op["step"]
    dim = wrap(op["dim"], out.ndim)
    yield from zero(out, because="zeros where no window lies")
    windows = grad.shape[dim]
    if step >= size:
        shape = [windows if d == dim else n for d, n in enumerate(out.shape)]
        stride = [st * step if d == dim else st for d, st in enumerate(out.stride)]
        unfolded = view(out, [*shape, size], [*stride, out.stride[dim]])
        yield from copy(unfolded, grad, because="windows do not overlap")
        return
    n = min(out.shape[dim], (windows - 1) * step + size)
    numbers = fresh((n,), "int64")
    yield from indexed(numbers, because="numbers the positions along the dim")
    covered = view(out, [n if d == dim else s for d, s in enumerate(out.shape)], out.stride)
    still = view(
        grad,
        [1 if d == dim else s for d, s in enumerate(grad.shape[:-1])],
        [0 if d == dim else st for d, st in enumerate(grad.stride[:-1])],
    )
    along = view(
        numbers,
        [n if d == dim else 1 for d in range(out.ndim)],
        [1 if d == dim else 0 for d in range(out.ndim)],
    )
    yield from per_element(
        "_unfold_backward_elementwise_kernel", [covered], [still, along],
        reads=[grad, numbers, covered], writes=[covered], because="adds up overlapping windows",
        per_thread=8,
    )  # fmt: skip
