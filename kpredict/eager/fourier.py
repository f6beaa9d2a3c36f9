"""One cuFFT plan: how dims are ordered for it, when its input is copied first, what it launches.

In: a tensor, the sizes of the result and the transformed dims. Out: the result with its strides,
and launches. Follows aten/src/ATen/native/cuda/SpectralOps.cpp (`_exec_fft`) and CuFFTPlanCache.h
(2.6). cuFFT is closed: a call is an interval of kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod

from kpredict.eager.copying import copy
from kpredict.eager.launches import contiguous, library
from kpredict.eager.operands import view
from kpredict.eager.shaping import permute, reshape
from kpredict.model import Launch, Tensor

MOST_DIMS = 3  # cuFFT's limit for one plan


def execute(
    x: Tensor, sizes: Sequence[int], dims: Sequence[int], dtype: str
) -> tuple[Tensor, list[Launch]]:
    """Transform `dims` of `x` at once. Batch dims come first, in the order of their strides."""
    batch = [d for d in range(x.ndim) if d not in dims]
    batch.sort(key=lambda d: -x.stride[d])
    order = [*batch, *dims]
    many = prod(x.shape[d] for d in batch)
    taken, launches = reshape(permute(x, order), [many, *(x.shape[d] for d in dims)])
    signal = [max(x.shape[d], sizes[d]) for d in dims]
    if _must_clone(taken, signal):
        clone = contiguous(taken)
        launches += copy(clone, taken, because="cuFFT cannot embed these strides")
        taken = clone
    out = contiguous(x, shape=(many, *(sizes[d] for d in dims)), dtype=dtype)
    launches.append(_call(taken, out, signal, many))
    strides = [0] * x.ndim
    step = out.stride[0]
    for d in reversed(batch):
        strides[d] = step
        step *= sizes[d]
    for d, stride in zip(dims, out.stride[1:], strict=True):
        strides[d] = stride
    return view(out, tuple(sizes), strides), launches


def _must_clone(taken: Tensor, signal: Sequence[int]) -> bool:
    """as_cufft_embed: strides must be positive, each a multiple of the one inside; half numbers
    must lie side by side."""
    if taken.dtype in ("float16", "complex32") and taken.stride[-1] != 1:
        return True
    if taken.stride[-1] <= 0 or (taken.shape[0] != 1 and taken.stride[0] == 0):
        return True
    last = taken.stride[-1]
    for size, stride in zip(reversed(signal[:-1]), reversed(taken.stride[1:-1]), strict=True):
        if size == 1:
            continue
        if stride <= 0 or stride % last:
            return True
        last = stride
    return False


def _call(x: Tensor, out: Tensor, signal: Sequence[int], many: int) -> Launch:
    numel = prod(signal)
    passes = sum(1 if n <= 1 << 13 else 2 if n <= 1 << 24 else 3 for n in signal)
    real = x.is_complex != out.is_complex
    return library(
        "cufftXtExec", [x], [out], lo=1, hi=3 * passes + 2 * real, expected=passes,
        because="one pass over the data per dim, more for long ones and for prime factors above 7",
        flops=int((2.5 if real else 5) * many * numel * log2(max(numel, 1))),
    )  # fmt: skip
