"""Kernels of random numbers: grids that stride over the array, and the old pointwise-apply loop.

In: the array to fill. Out: launches. Follows ATen/native/cuda/DistributionTemplates.h and
ATen/cuda/CUDAApplyUtils.cuh (2.13.0 headers).
"""

from __future__ import annotations

from collections.abc import Sequence

from kpredict.eager.elementwise import blocks
from kpredict.eager.iterator import iterate
from kpredict.eager.launches import kernel
from kpredict.eager.operands import view
from kpredict.eager.promoting import real_part
from kpredict.model import Launch, Target, Tensor

THREADS = 256


def resident_blocks(numel: int, target: Target, threads: int = THREADS) -> int:
    """Blocks of a grid-stride random kernel: enough for one element per thread, at most what the
    GPU holds at once."""
    return min(target.sms * (target.max_threads_per_sm // threads), -(-numel // threads))


def fill_random(out: Tensor, target: Target, *, because: str = "") -> list[Launch]:
    """One grid-stride kernel that fills `out`; halves where offsets pass 31 bits.

    A complex array is filled as twice as many real numbers.
    """
    if out.is_complex:
        shape, stride = (*out.shape, 2), (*(2 * s for s in out.stride), 1)
        out = view(out, shape, stride, dtype=real_part(out.dtype))
    if out.numel == 0 or not out.is_cuda:
        return []
    return [
        kernel(
            "distribution_elementwise_grid_stride_kernel", [], [out], because=because,
            grid=(resident_blocks(piece.numel, target), 1, 1), block=(THREADS, 1, 1),
        )
        for piece in iterate([out], []).pieces()
    ]  # fmt: skip


def pointwise_apply(
    out: Tensor, reads: Sequence[Tensor], *, per_thread: int = 1, threads: int = 512
) -> list[Launch]:
    """`CUDA_tensor_apply2`: one kernel over both arrays, whatever their layouts."""
    if out.numel == 0:
        return []
    return [
        kernel(
            "kernelPointwiseApply2", reads, [out], grid=blocks(out.numel, per_thread, threads),
            block=(threads, 1, 1),
        )
    ]  # fmt: skip
