"""Fourier transforms: cuFFT writes the transformed dims last, so results are rarely row-major."""

from __future__ import annotations

from collections.abc import Sequence

from kpredict.model import Tensor
from kpredict.source.infer.shapes.registry import (
    Arguments,
    at,
    dims,
    fresh,
    known,
    like,
    shape,
)  # fmt: skip
from kpredict.source.infer.values import Array, Dim

_COMPLEX = {"float32": "complex64", "float64": "complex128", "float16": "complex32"}
_REAL = {v: k for k, v in _COMPLEX.items()}


@shape("_fft_r2c", "_fft_c2r", "_fft_c2c")
def fft(a: Arguments) -> Array:
    x: Array = a["self"]
    sizes: list[Dim] = list(dims(x))
    over = [at(d, len(sizes)) for d in known(a["dim"])]
    dtype = x.dtype or ""
    if "last_dim_size" in a:
        last = a["last_dim_size"]
        sizes[over[-1]] = last if isinstance(last, int) else None
        out = like(x, sizes, _REAL.get(dtype))
    else:
        if a.get("onesided") and dtype in _COMPLEX:
            n = sizes[over[-1]]
            sizes[over[-1]] = None if n is None else n // 2 + 1
        out = like(x, sizes, _COMPLEX.get(dtype, dtype))
    written = None if None in sizes else _written(x, [s or 0 for s in sizes], over, out.dtype)
    return out if written is None else fresh(sizes, out.dtype, x.device, written)


def _written(
    x: Array, sizes: Sequence[int], over: list[int], dtype: str | None
) -> tuple[int, ...] | None:
    """The strides that cuFFT's plan leaves, where one plan does it all."""
    from kpredict.eager.fourier import MOST_DIMS, execute

    if x.sizes is None or x.stride is None or x.dtype is None or dtype is None or not over:
        return None
    if len(over) > MOST_DIMS or 0 in x.sizes:
        return None
    order = over if dtype not in _REAL or x.dtype not in _REAL else sorted(
        over, key=lambda d: -x.stride[d] if x.stride else 0)  # fmt: skip
    try:
        out, _ = execute(Tensor(x.sizes, x.stride, x.dtype), sizes, order, dtype)
    except (ValueError, IndexError, AssertionError):
        return None
    return out.stride
