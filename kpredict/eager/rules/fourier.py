"""Fourier transforms: real to complex, complex to real, complex to complex."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from kpredict.eager.calling import Host
from kpredict.eager.copying import copy
from kpredict.eager.elementwise import blocks
from kpredict.eager.fourier import MOST_DIMS, execute
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_SPECTRAL = "aten/src/ATen/native/cuda/SpectralOps.cpp, 2.6"
_BY_ROOT_N, _BY_N = 1, 2


def _fits_one_plan(dims: Sequence[int]) -> bool:
    """Up to 3 dims; a transform that starts with dims 0 and 1 is faster in parts."""
    return len(dims) <= MOST_DIMS and tuple(dims[:2]) != (0, 1)


def _in_parts(
    host: Host, x: Tensor, sizes: Sequence[int], dims: Sequence[int], dtype: str
) -> Tensor:
    """Complex transforms of up to 3 dims each, those of the smallest strides first."""
    left = list(dims)
    while left:
        left.sort(key=lambda d: -x.stride[d])
        now = left[-MOST_DIMS:]
        x, launches = execute(x, sizes, now, dtype)
        host.add(launches)
        left = left[: -len(now)]
    return x


def _normalize(host: Host, x: Tensor, normalization: int, sizes: Sequence[int], dims: Sequence[int]
               ) -> None:  # fmt: skip
    """In place, unless the scale is 1."""
    if normalization in (_BY_ROOT_N, _BY_N) and prod(sizes[d] for d in dims) != 1:
        host.call("aten.mul_.Tensor", x, self=x, other=1.0)


@rule("aten._fft_c2c", source=f"{_SPECTRAL} _fft_c2c_cufft")
def complex_to_complex(op: Op, target: Target) -> Iterable[Launch]:
    """One cuFFT call for up to 3 dims, then the scale. Without dims, a copy."""
    host = Host(target)
    x, dims = op["self"], op["dim"]
    if not dims:
        return copy(op.out, x)
    if x.numel == 0:
        return []
    out = _in_parts(host, x, x.shape, dims, x.dtype)
    _normalize(host, out, op["normalization"], x.shape, dims)
    return host.launches


@rule("aten._fft_r2c", source=f"{_SPECTRAL} _fft_r2c_cufft")
def real_to_complex(op: Op, target: Target) -> Iterable[Launch]:
    """One cuFFT call gives one half; then the scale and, if both halves are wanted, a kernel that
    mirrors it. Four or more dims, or dims that start with 0 and 1, go in parts."""
    host = Host(target)
    x, dims, dtype, onesided = op["self"], list(op["dim"]), op.out.dtype, op["onesided"]
    if x.numel == 0:
        return []
    last = dims[-1]
    half = x.shape[last] // 2 + 1
    one_side = tuple(half if d == last else s for d, s in enumerate(x.shape))
    sizes = one_side if onesided else x.shape
    if x.offset % 2:  # cuFFT wants pairs of real numbers aligned as a complex one
        aligned = contiguous(x)
        host.add(copy(aligned, x, because="cuFFT wants real input aligned as complex"))
        x = aligned
    if _fits_one_plan(dims):
        out, launches = execute(x, sizes, dims, dtype)
        host.add(launches)
    else:
        out, launches = execute(x, one_side, [last], dtype)
        host.add(launches)
        out = _in_parts(host, out, one_side, dims[:-1], dtype)
    _normalize(host, narrow(out, last, 0, half), op["normalization"], x.shape, dims)
    if not onesided:
        if out.shape != x.shape:
            whole = contiguous(out, shape=x.shape)
            host.add(copy(narrow(whole, last, 0, half), out, because="room for the other half"))
            out = whole
        host.add(_mirror(out, last))
    return host.launches


def _mirror(x: Tensor, last: int) -> list[Launch]:
    """_fft_fill_with_conjugate_symmetry_: the second half is the first, conjugated and turned."""
    n = x.shape[last]
    if n <= 2:
        return []
    source = narrow(x, last, 1, (n - 1) // 2)
    mirrored = kernel(
        "_fft_conjugate_copy_kernel", [source], [narrow(x, last, n // 2 + 1, (n - 1) // 2)],
        grid=blocks(source.numel, 1, 1024), block=(1024, 1, 1),
        because="the other half of a real signal's transform",
    )  # fmt: skip
    return [mirrored]


@rule("aten._fft_c2r", source=f"{_SPECTRAL} _fft_c2r_cufft")
def complex_to_real(op: Op, target: Target) -> Iterable[Launch]:
    """The input is cloned, since cuFFT may overwrite it; one cuFFT call; the scale."""
    host = Host(target)
    x, dims = op["self"], list(op["dim"])
    if op.out.numel == 0:
        return []
    sizes = tuple(op["last_dim_size"] if d == dims[-1] else s for d, s in enumerate(x.shape))
    last = dims
    if _fits_one_plan(dims) or len(dims) == 1:
        clone = contiguous(x)
        host.add(copy(clone, x, because="cuFFT may overwrite its input"))
    else:
        clone = _in_parts(host, x, x.shape, dims[:-1], x.dtype)
        last = dims[-1:]
    out, launches = execute(clone, sizes, last, op.out.dtype)
    host.add(launches)
    _normalize(host, out, op["normalization"], sizes, dims)
    return host.launches
