"""The elementwise CUDA loop: which kernel family, how many launches, what grid.

In: outputs and inputs of one pass. Out: launches. Follows aten/src/ATen/native/cuda/CUDALoops.cuh
and Loops.cuh: contiguous without casts → vectorized; contiguous with casts → unrolled; else the
offset-calculator kernel. More than 31 bits of offset → the iterator is split in halves.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpredict.eager.iterator import Iterator, iterate
from kpredict.eager.launches import accesses
from kpredict.model import ONE, Access, Basis, Kind, Launch, Tensor

BLOCK = 128


def elementwise(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    *,
    compute: str | None = None,
    result: str | None = None,
    because: str = "",
    reads: Sequence[Tensor] | None = None,
) -> list[Launch]:
    """One pass over broadcast `inputs` into `outputs`.

    `compute` is the dtype the functor takes (default: the inputs' common one), `result` the dtype
    it returns (default: the output's); an operand of another dtype is cast in the kernel. CPU
    scalars among `inputs` ride along as kernel arguments.
    """
    device_inputs = [t for t in inputs if t.is_cuda]
    it = iterate(outputs, device_inputs)
    if it.numel == 0:
        return []
    functor = compute or (device_inputs[0].dtype if device_inputs else outputs[0].dtype)
    casts = any(t.dtype != functor for t in device_inputs) or (
        result is not None and any(t.dtype != result for t in outputs)
    )
    read = accesses(device_inputs if reads is None else reads)
    written = accesses(outputs)
    pieces = it.pieces()
    return [_launch(p, casts, read, written, len(pieces), because) for p in pieces]


def _launch(
    it: Iterator, casts: bool, reads: tuple[Access, ...], writes: tuple[Access, ...],
    n: int, because: str,
) -> Launch:  # fmt: skip
    if it.is_contiguous:
        name = "unrolled_elementwise_kernel" if casts else "vectorized_elementwise_kernel"
    else:
        name = "elementwise_kernel"
    if n > 1:
        reads = tuple(Access(a.tensor, a.bytes // n) for a in reads)
        writes = tuple(Access(a.tensor, a.bytes // n) for a in writes)
    return Launch(
        Kind.KERNEL, name, ONE, reads, writes, Basis.HOST_CODE, because, block=(BLOCK, 1, 1)
    )
