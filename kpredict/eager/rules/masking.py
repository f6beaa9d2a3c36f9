"""What a mask selects: masked_select, masked_scatter and its gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpredict.eager import cub
from kpredict.eager.copying import compact, copy, expand
from kpredict.eager.elementwise import elementwise
from kpredict.eager.iterator import broadcast_shape
from kpredict.eager.launches import kernel
from kpredict.eager.registry import rule
from kpredict.eager.rules.indexing import look_up
from kpredict.eager.rules.joining import join
from kpredict.eager.shaping import at_least_1d, flat, fresh
from kpredict.model import Launch, Op, Target, Tensor


@rule("aten.masked_select", source="native/cuda/IndexKernel.cpp masked_select_out_cuda_impl; 2.6.0")
def masked_select(op: Op, target: Target) -> Iterable[Launch]:
    """`x[mask]` after broadcasting both."""
    x, mask = at_least_1d(op["self"]), at_least_1d(op["mask"])
    shape = broadcast_shape([x, mask])
    return look_up(op.out, expand(x, shape), [expand(mask, shape)])


@rule(
    "aten.masked_scatter_", source="native/cuda/IndexKernel.cu launch_masked_scatter_kernel; 2.6.0"
)
def masked_scatter_(op: Op, target: Target) -> Iterable[Launch]:
    """The mask is summed up (CUB scan), its total is checked, then one elementwise kernel reads the
    source at those positions. Mask and source are copied first when not contiguous."""
    return _scatter_masked(op["self"], op["mask"], op["source"])


@rule("aten.masked_scatter", source="native/TensorAdvancedIndexing.cpp masked_scatter; 2.6.0")
def masked_scatter(op: Op, target: Target) -> Iterable[Launch]:
    """A contiguous clone of the broadcast input, then `masked_scatter_`."""
    out = op.out
    yield from copy(out, expand(op["self"], out.shape), because="the result starts as a copy")
    yield from _scatter_masked(out, op["mask"], op["source"])


def _scatter_masked(x: Tensor, mask: Tensor, source: Tensor) -> Iterator[Launch]:
    if x.numel == 0:
        return
    mask, copies = compact(expand(mask, x.shape))
    yield from copies
    sums = fresh(x.shape, "int64")
    yield from cub.scan(mask, sums, state="int64")
    yield kernel("masked_scatter_size_check", [], [], because="fails if the source is too short")
    source, copies = compact(source)
    yield from copies
    yield from elementwise(
        [x], [x, mask, sums], compute=[x.dtype, "bool", "int64"], result=x.dtype,
        reads=[x, mask, sums, source], because="reads the source where the mask is set",
    )  # fmt: skip


@rule(
    "aten.masked_scatter_backward",
    source="native/TensorAdvancedIndexing.cpp masked_scatter_backward_symint; 2.6.0",
)
def masked_scatter_backward(op: Op, target: Target) -> Iterable[Launch]:
    """`masked_select` of the gradient, zeros for what the mask left out, and a cat of both."""
    grad, mask = op["grad_output"], op["mask"]
    shape = broadcast_shape([grad, mask])
    total = 1
    for size in op["sizes"]:
        total *= size
    n = min(grad.numel // 2 if op.assumed is None else int(op.assumed), total)
    picked = fresh((n,), grad.dtype)
    yield from look_up(picked, expand(grad, shape), [expand(mask, shape)])
    if n < total:
        rest = fresh((total - n,), grad.dtype)
        yield from elementwise([rest], [], because="zeros for what was not selected")
        yield from join(flat(op.out), [picked, rest], 0)
