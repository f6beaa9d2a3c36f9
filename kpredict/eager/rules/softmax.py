"""Softmax and log-softmax, forward and backward: which of five kernels, by size, dtype and target.

Read: aten/src/ATen/native/cuda/SoftMax.cu and PersistentSoftmax.cuh; main of 2025 as of 2.10 and
the headers of 2.13.0. Release 2.6 has no register variant, no shared-memory backward, and uses a
warp per row only to 1024 elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from kpredict.eager.copying import compact, copy, expand, fill, like, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import called, contiguous, kernel
from kpredict.eager.reducing import reduced_shape
from kpredict.eager.registry import rule
from kpredict.eager.shaping import at_least_1d, wrap
from kpredict.eager.summing import truth_of
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_WARP = 32
_MOST_THREADS = 1024
_REGISTERS = 10
"""Elements per thread from which the register variant is not taken any more."""


@rule(
    "aten._softmax", "aten._log_softmax", source="native/cuda/SoftMax.cu host_softmax; 2.10 to main"
)
def softmax(op: Op, target: Target) -> Iterable[Launch]:
    """The input is made contiguous. Along the last dim: a warp per row to 2048 elements of at most
    8192 bytes (when a half type goes to float, half as much before 2.14); else a block per row,
    which keeps the row in registers below 9217 elements, else in shared memory if it fits and is
    16-byte aligned, else reads it again. Along another dim: the spatial kernel."""
    return normalize(op.out, op["self"], op["dim"], target)


@rule("aten.softmax.int_out", "aten.log_softmax.int_out",
      source="native/SoftMax.cpp softmax_out; 2.6.0")  # fmt: skip
def softmax_out(op: Op, target: Target) -> Iterable[Launch]:
    """A cast if asked for (half to float in the kernel), softmax, and a copy into an output that is
    not contiguous."""
    x, out = op["self"], op.out
    casts: list[Launch] = []
    if op["dtype"] and (x.dtype, op["dtype"]) != ("float16", "float32"):
        x, casts = to(x, op["dtype"])
    yield from casts
    result = out if out.is_contiguous else contiguous(out)
    name = op.name.replace("aten.", "aten._").replace("int_out", "out")
    yield from called(name, normalize(result, x, op["dim"], target))
    if result is not out:
        yield from copy(out, result)


def normalize(out: Tensor, x: Tensor, dim: int, target: Target) -> Iterator[Launch]:
    """`softmax` or `log_softmax` of `x` along `dim`, into `out` of its dtype or float."""
    x, copies = compact(x)
    yield from copies
    if x.numel == 0:
        return
    x = at_least_1d(x)
    outer, size, inner = _around(x, dim)
    to_float = out.dtype != x.dtype
    most = 1024 if to_float and target.release < (2, 14) else 2048
    if inner > 1:
        yield kernel(
            "cunn_SpatialSoftMaxForward", [x], [out], block=_spatial_block(size, inner),
            because="along a dim that is not the last",
        )  # fmt: skip
    elif size <= most and size * x.itemsize <= 4 * most:
        yield from _by_warps("softmax_warp_forward", [x], out, outer, size)
    else:
        name, why = _block_variant(x, out, size, target, to_float)
        block = (_forward_threads(size), 1, 1)
        yield kernel(f"cunn_{name}", [x], [out], because=why, grid=(outer, 1, 1), block=block)


def _block_variant(
    x: Tensor, out: Tensor, size: int, target: Target, to_float: bool
) -> tuple[str, str]:
    threads = _forward_threads(size)
    if not to_float and -(-size // threads) < _REGISTERS:
        return "SoftMaxForwardReg", f"rows of {size} stay in the registers of a block"
    if _fits_shared(size, x.itemsize, threads, [x, out], target):
        return "SoftMaxForwardSmem", f"rows of {size} stay in shared memory"
    return "SoftMaxForward", f"rows of {size} are read twice"


def _fits_shared(
    size: int, itemsize: int, threads: int, arrays: list[Tensor], target: Target
) -> bool:
    """Room for a row beside the partial sums, all arrays 16-byte aligned, whole vectors only."""
    partial = threads // _WARP * max(itemsize, 4)
    room = (target.shared_per_block - partial) // itemsize
    aligned = all(t.offset * t.itemsize % 16 == 0 for t in arrays)
    return size < room and aligned and size % (16 // itemsize) == 0


@rule("aten._log_softmax_backward_data",
      source="native/cuda/SoftMax.cu host_softmax_backward; 2.10 to main")  # fmt: skip
def log_softmax_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Gradient and output are made contiguous; a warp per row to 1024 elements of at most 4096
    bytes, else a block per row, through shared memory if the row fits; the spatial kernel along a
    dim that is not the last."""
    return _backward(op.out, op["grad_output"], op["output"], op["dim"], target)


@rule("aten._softmax_backward_data",
      source="native/cuda/SoftMax.cu softmax_backward_cuda_out; 2.10 to main")  # fmt: skip
def softmax_backward(op: Op, target: Target) -> Iterable[Launch]:
    """`grad * output` in a pass of its own, then the kernel of log-softmax's backward."""
    grad, output = op["grad_output"], op["output"]
    yield from (times := _times(grad, output))[1]
    yield from _backward(op.out, times[0], output, op["dim"], target)


def _times(grad: Tensor, output: Tensor) -> tuple[Tensor, list[Launch]]:
    product = like(grad) if grad.is_dense and grad.numel > 1 else contiguous(output)
    return product, elementwise(
        [product], [grad, output], because="grad times output", op="aten.mul.Tensor"
    )


def _backward(
    grad_in: Tensor, grad: Tensor, output: Tensor, dim: int, target: Target
) -> Iterator[Launch]:
    if grad.numel == 0:
        return
    grad, copies = compact(grad)
    yield from copies
    output, copies = compact(output)
    yield from copies
    grad, output = at_least_1d(grad), at_least_1d(output)
    outer, size, inner = _around(output, dim)
    reads = [grad, output]
    if inner > 1:
        yield kernel(
            "cunn_SpatialSoftMaxBackward", reads, [grad_in], block=_spatial_block(size, inner),
            because="along a dim that is not the last",
        )  # fmt: skip
    elif size <= 1024 and size * grad_in.itemsize <= 4096:
        yield from _by_warps("softmax_warp_backward", reads, grad_in, outer, size)
    else:
        threads = _backward_threads(size, 16 // output.itemsize)
        fits = _fits_shared(size, output.itemsize, threads, [grad_in, output, grad], target)
        name = "cunn_SoftMaxBackwardSmem" if fits else "cunn_SoftMaxBackward"
        why = f"rows of {size}: a block each"
        yield kernel(name, reads, [grad_in], because=why, grid=(outer, 1, 1), block=(threads, 1, 1))


@rule("aten._safe_softmax", source="native/SoftMax.cpp _safe_softmax; 2.6.0, 2.13.0")
def safe_softmax(op: Op, target: Target) -> Iterable[Launch]:
    """A composite in host code: softmax (after a cast, if asked for), which rows are all -inf
    (isneginf, all), a zero, and a where."""
    out, x, dim = op.out, op["self"], op["dim"]
    source = x
    if out.dtype != x.dtype and not (x.dtype == "float16" and out.dtype == "float32"):
        source, casts = to(x, out.dtype)
        yield from casts
    soft = contiguous(out)
    yield from called("aten._softmax.default", normalize(soft, source, dim, target))
    masked = like(x, "bool")
    yield from elementwise([masked], [x], because="is -inf", op="aten.eq.Scalar")
    rows = contiguous(masked, shape=reduced_shape(x.shape, dim, True))
    yield from called("aten.all.dim", truth_of(rows, masked, dim, target))
    zero = contiguous(out, shape=())
    yield from fill(zero)
    yield from elementwise(
        [out], [rows, zero, soft], compute=["bool", out.dtype, out.dtype],
        because="0 for rows that are masked out", op="aten.where.self",
    )  # fmt: skip


@rule("aten._masked_softmax", source="native/cuda/SoftMax.cu masked_softmax_cuda; 2.6.0")
def masked_softmax(op: Op, target: Target) -> Iterable[Launch]:
    """A warp per row to 1024 elements of at most 4096 bytes along the last dim with a contiguous
    mask; else masked_fill and softmax."""
    x, mask, out = at_least_1d(op["self"]), at_least_1d(op["mask"]), op.out
    dim = wrap(x.ndim - 1 if op["dim"] is None else op["dim"], x.ndim)
    size = x.shape[dim]
    per_batch = op["mask_type"] == 1 and x.ndim == 4 and mask.ndim == 2
    if op["mask_type"] == 0 and x.ndim == 4 and mask.ndim == 2:
        mask = expand(mask, x.shape)
    last = dim == x.ndim - 1
    if size <= 1024 and size * x.itemsize <= 4096 and mask.is_contiguous and last:
        yield from _by_warps("softmax_warp_forward", [x, mask], out, x.numel // size, size)
        return
    if per_batch:
        rows = replace(mask, shape=(mask.shape[0], 1, 1, size), stride=(mask.stride[0], 0, 0, 1))
        mask = expand(rows, x.shape)
    filled = like(x)
    yield from copy(filled, x)
    yield from _mask(filled, mask)
    yield from called("aten._softmax.default", normalize(out, filled, dim, target))


@rule("aten._masked_softmax_backward",
      source="native/cuda/SoftMax.cu masked_softmax_backward_cuda; 2.6.0")  # fmt: skip
def masked_softmax_backward(op: Op, target: Target) -> Iterable[Launch]:
    """`grad * output`, then a warp per row; for long rows or another dim the output is masked and
    softmax's backward follows."""
    grad, copies = compact(op["grad_output"])
    yield from copies
    output, copies = compact(op["output"])
    yield from copies
    mask, copies = compact(op["mask"])
    yield from copies
    if grad.numel == 0:
        return
    dim = wrap(output.ndim - 1 if op["dim"] is None else op["dim"], output.ndim)
    outer, size, inner = _around(output, dim)
    if size > 1024 or size * grad.itemsize > 4096 or inner > 1:
        filled = contiguous(output)
        yield from copy(filled, output)
        yield from _mask(filled, mask)
        product, launches = _times(grad, filled)
        yield from launches
        found = _backward(op.out, product, filled, dim, target)
        yield from called("aten._softmax_backward_data.default", found)
        return
    product, launches = _times(grad, output)
    yield from launches
    yield from _by_warps("softmax_warp_backward", [product, output, mask], op.out, outer, size)


def _mask(x: Tensor, mask: Tensor) -> list[Launch]:
    return elementwise(
        [x], [x, mask], compute=[x.dtype, "bool"], because="mask", op="aten.masked_fill_.Scalar"
    )


def _by_warps(
    name: str, reads: list[Tensor], out: Tensor, rows: int, size: int
) -> Iterator[Launch]:
    """A warp per row, in launches of at most 2^30 elements; two rows per warp to 128 elements."""
    wide = 1 << (size - 1).bit_length()
    threads = min(wide, _WARP)
    per_block = 128 // threads * (2 if wide <= 128 else 1)
    most = 2**30 // size
    for start in range(0, rows, most):
        grid = (-(-min(most, rows - start) // per_block), 1, 1)
        yield kernel(
            name, reads, [out], because=f"a warp per row of {size}",
            grid=grid, block=(threads, 128 // threads, 1),
        )  # fmt: skip


def _around(x: Tensor, dim: int) -> tuple[int, int, int]:
    """Elements before, along and after `dim`."""
    dim = wrap(dim, x.ndim)
    return prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])


def _forward_threads(size: int) -> int:
    most = min(size, _MOST_THREADS)
    return most if most % _WARP == 0 else (most // _WARP + 1) * _WARP


def _backward_threads(size: int, vector: int) -> int:
    most = min(size // vector, _MOST_THREADS)
    if vector > 1:
        most //= 2
    return max(1 << max(most - 1, 0).bit_length(), _WARP)


def _spatial_block(size: int, inner: int) -> Dim3:
    """Threads along the inner dims, and along the softmax dim where those are few."""
    y, x = min(inner, _MOST_THREADS), 1
    if y <= 64 and size >= 64:
        while y * x <= _MOST_THREADS and x <= size:
            x *= 2
        x //= 2
    return (x, y, 1)
