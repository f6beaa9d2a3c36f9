"""The elementwise CUDA loop: which kernel family, how many launches, what grid.

In: outputs and inputs of one pass. Out: launches. Follows aten/src/ATen/native/cuda/Loops.cuh,
CUDALoops.cuh and CUDAJitLoops.cuh (2.13.0 headers):

- everything dense along one dim, no casts: `vectorized_elementwise_kernel`, or its unrolled
  fallback when an address or a 16-byte result leaves no vector;
- dense with casts: `unrolled_elementwise_kernel`;
- anything else: `elementwise_kernel` with an offset calculator;
- several outputs: `unrolled_elementwise_kernel_for_multi_outputs`;
- jiterator kernels carry the functor's name instead.

More than 31 bits of offset → the iterator is split in halves, one launch each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kpredict.eager.iterator import Iterator, iterate
from kpredict.eager.launches import accesses
from kpredict.eager.promoting import result_type
from kpredict.model import ITEMSIZE, ONE, Access, Basis, Dim3, Kind, Launch, Tensor

THREADS = 128
_BLOCK: Dim3 = (THREADS, 1, 1)


@dataclass(frozen=True, slots=True)
class Functor:
    """What one element costs: dtypes taken and given, and the name a jiterator kernel has."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    casts: bool
    jit: str = ""

    @property
    def per_thread(self) -> int:
        """Elements per thread of the vectorized kernel (elems_per_thread: 16 for a byte fill)."""
        size = sum(ITEMSIZE[t] for t in self.takes) + sum(ITEMSIZE[t] for t in self.gives)
        return 16 if size == 1 else 8


def elementwise(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    *,
    compute: str | Sequence[str] | None = None,
    result: str | None = None,
    because: str = "",
    reads: Sequence[Tensor] | None = None,
    jit: str = "",
    op: str = "",
) -> list[Launch]:
    """One pass over broadcast `inputs` into `outputs`.

    `compute` is the dtype the functor takes, one for all inputs or one each (default: the dtype the
    inputs promote to); `result` the dtype it returns (default: the output's own). An operand of
    another dtype is cast in the kernel. CPU scalars among `inputs` ride along as kernel arguments.
    `reads` are the arrays really read where that is not `inputs`; `jit` is the name of a jiterator
    kernel; `op` the ATen op that launches it, where host code calls one that is not the caller.
    """
    if not outputs[0].is_cuda:
        return []
    if compute is None:
        compute = result_type(inputs) if inputs else outputs[0].dtype
    each = [compute] * len(inputs) if isinstance(compute, str) else list(compute)
    on_device = [(t, c) for t, c in zip(inputs, each, strict=True) if t.is_cuda]
    device_inputs = [t for t, _ in on_device]
    takes = tuple(c for _, c in on_device)
    gives = tuple(result or t.dtype for t in outputs)
    casts = takes != tuple(t.dtype for t in device_inputs) or gives != tuple(
        t.dtype for t in outputs
    )
    it = iterate(outputs, device_inputs)
    if it.numel == 0:
        return []
    functor = Functor(takes, gives, casts, jit)
    read = accesses(device_inputs if reads is None else reads)
    written = accesses(outputs)
    pieces = it.pieces()
    return [_launch(p, functor, read, written, len(pieces), because, op) for p in pieces]


def _launch(
    it: Iterator, f: Functor, reads: tuple[Access, ...], writes: tuple[Access, ...],
    n: int, because: str, op: str,
) -> Launch:  # fmt: skip
    name, per_thread = _variant(it, f)
    if n > 1:
        reads = tuple(Access(a.tensor, a.bytes // n) for a in reads)
        writes = tuple(Access(a.tensor, a.bytes // n) for a in writes)
        because = f"{because}; {n} launches, since offsets pass 31 bits".removeprefix("; ")
    return Launch(
        Kind.KERNEL, name, ONE, reads, writes, Basis.HOST_CODE, because,
        grid=blocks(it.numel, per_thread), block=_BLOCK, ops=(op,) if op else (),
    )  # fmt: skip


def _variant(it: Iterator, f: Functor) -> tuple[str, int]:
    """Kernel name and elements per thread."""
    if len(f.gives) > 1:
        return "unrolled_elementwise_kernel_for_multi_outputs", 8
    vector = 1 if f.casts or not it.is_contiguous else _vector_size(it, f)
    if f.jit:
        name = f"{f.jit}_vectorized{vector}_kernel" if vector > 1 else f"{f.jit}_kernel"
        return name, f.per_thread
    if it.is_contiguous:
        if vector > 1:
            return "vectorized_elementwise_kernel", f.per_thread
        return "unrolled_elementwise_kernel", 4
    if f.casts:
        return "elementwise_kernel", 4
    return "elementwise_kernel", 2 if ITEMSIZE[f.gives[0]] >= 4 else 4


def _vector_size(it: Iterator, f: Functor) -> int:
    """Elements per load: up to 16 bytes of the result (of the input in jiterator kernels), fewer
    when an address is less aligned."""
    leader = f.takes[0] if f.jit and f.takes else f.gives[0]
    size = min(16 // ITEMSIZE[leader], 4 if f.jit and ITEMSIZE[leader] < 2 else 8)
    for operand in it.operands:
        while size > 1 and operand.address % (size * operand.itemsize):
            size //= 2
    return size


def blocks(numel: int, per_thread: int, threads: int = THREADS) -> Dim3:
    """The 1-D grid that covers `numel` with `per_thread` elements in each of `threads` threads."""
    work = per_thread * threads
    return (-(-numel // work), 1, 1)


def indexed(out: Tensor, *, because: str = "") -> list[Launch]:
    """`gpu_kernel_with_index` (arange, linspace …): one thread per element of a row-major array."""
    if out.numel == 0:
        return []
    launch = Launch(
        Kind.KERNEL, "elementwise_kernel_with_index", ONE, (), accesses([out]), Basis.HOST_CODE,
        because, grid=blocks(out.numel, 1, 64), block=(64, 1, 1),
    )  # fmt: skip
    return [launch]
