"""Copies, fills and zeros, as PyTorch's host code launches them.

In: destination and source. Out: launches. Follows aten/src/ATen/native/cuda/Copy.cu (main of 2026;
the same decisions as in 2.6) and native/Fill.cpp.
"""

from __future__ import annotations

from dataclasses import replace

from kpredict.eager.elementwise import elementwise
from kpredict.eager.iterator import fastest_first, iterate
from kpredict.eager.launches import contiguous, memcpy, sync
from kpredict.model import Launch, Tensor

_COPY = "aten.copy_.default"
_FILL = "aten.fill_.Scalar"

_LAZY_JIT = {
    ("conj", "complex32"): "conj_kernel", ("neg", "complex32"): "neg_kernel",
    ("neg", "complex64"): "neg_kernel", ("neg", "complex128"): "neg_kernel",
}  # fmt: skip
"""Kernels of conjugating and negating copies that are compiled at run time."""

_NARROWING = {"float16": "float32", "bfloat16": "float32"}
_TO_FLOAT8 = ("float32", "float16", "bfloat16")


def copy(
    dst: Tensor, src: Tensor, *, non_blocking: bool = False, because: str = ""
) -> list[Launch]:
    """`dst.copy_(src)`: broadcasts, casts and crosses devices.

    On the GPU: nothing onto itself; one memcpy when the dtypes are equal and both arrays are dense
    in the same order; else one elementwise kernel. Between host and GPU: one memcpy when both sides
    are dense alike with one dtype, else staging copies on either side; the host waits unless
    non-blocking.
    """
    if dst.numel == 0 or not (dst.is_cuda or src.is_cuda):
        return []
    if _same_place(dst, src) and dst.dtype == src.dtype and dst.stride == src.stride:
        return []
    if dst.is_cuda and src.is_cuda:
        found = _on_device(dst, src, because)
    else:
        found = _across(dst, src, non_blocking, because)
    return [replace(launch, ops=launch.ops or (_COPY,)) for launch in found]


def clone_storage(dst: Tensor, src: Tensor) -> list[Launch]:
    """A clone that keeps strides and offset: the whole storage is copied flat, gaps included; what
    overlaps itself is cloned as usual (native/TensorShape.cpp clone_preserve_strides, 2.6)."""
    why = "the result starts as a copy"
    if any(st == 0 and n > 1 for n, st in zip(src.shape, src.stride, strict=True)):
        return copy(dst, src, because=why)
    last = sum((n - 1) * st for n, st in zip(src.shape, src.stride, strict=True))
    flat = (src.offset + last + 1,)
    whole = [replace(t, shape=flat, stride=(1,), offset=0) for t in (dst, src)]
    return copy(*whole, because=why) if src.numel else []


def _same_place(a: Tensor, b: Tensor) -> bool:
    return a.storage == b.storage >= 0 and a.offset == b.offset and a.shape == b.shape


def _on_device(dst: Tensor, src: Tensor, because: str) -> list[Launch]:
    if dst.lazy != src.lazy:
        jit = _LAZY_JIT.get((dst.lazy or src.lazy, src.dtype), "")
        return elementwise([dst], [src], jit=jit, because="conjugated or negated on the way")
    if dst.dtype == src.dtype:
        if iterate([dst], [src]).is_contiguous:
            why = because or "same dtype and both dense in the same order"
            return [memcpy("DtoD", src, dst, because=why)]
        return elementwise([dst], [src], because=because or "the layouts differ")
    return elementwise([dst], [src], compute=_loaded_as(dst.dtype, src.dtype), because=because)


def _loaded_as(dst: str, src: str) -> str:
    """The dtype the copy functor takes. A cast in the load is what makes a copy "unrolled": float
    to half types has a functor of its own that needs none, as have the casts to 8-bit floats."""
    if _NARROWING.get(dst) == src or (dst.startswith("float8") and src in _TO_FLOAT8):
        return src
    return dst


def _across(dst: Tensor, src: Tensor, non_blocking: bool, because: str) -> list[Launch]:
    if dst.dtype == src.dtype and iterate([dst], [src]).is_contiguous:
        direction = "HtoD" if dst.is_cuda else "DtoH"
        found = [memcpy(direction, src, dst, because=because)]
        if not non_blocking:
            found.append(sync("the host waits for the copy"))
        return found
    # the side that converts: the GPU for a non-blocking copy, else the host
    if src.is_cuda == non_blocking:
        target = dst if dst.is_contiguous else contiguous(dst)
        casted = src if src.dtype == dst.dtype else like(src, dst.dtype)
        found = copy(casted, src) if casted is not src else []
        source = _expanded_contiguous(casted, dst, found)
    else:
        direct = dst.is_contiguous and dst.dtype == src.dtype
        target = dst if direct else contiguous(dst, dtype=src.dtype)
        found = []
        source = _expanded_contiguous(src, dst, found)
    found += copy(target, source, non_blocking=non_blocking, because=because)
    if target is not dst:
        found += copy(dst, target, non_blocking=non_blocking)
    return found


def like(t: Tensor, dtype: str = "", shape: tuple[int, ...] | None = None) -> Tensor:
    """`torch.empty_like(t)`: a fresh dense array with its dims laid out in the order of `t`'s.

    With a `shape` of its own it is row-major.
    """
    fresh = contiguous(t, shape=shape, dtype=dtype)
    if shape is not None or t.stride == fresh.stride:
        return fresh
    if t.is_dense:
        return replace(fresh, stride=t.stride)
    strides, step = [0] * t.ndim, 1
    for d in fastest_first(t.shape, t.stride):
        strides[d] = step
        step *= max(t.shape[d], 1)
    return replace(fresh, stride=tuple(strides))


def to(t: Tensor, dtype: str) -> tuple[Tensor, list[Launch]]:
    """`t.to(dtype)`: itself when it is of that dtype, else a copy in the same order of dims."""
    if t.dtype == dtype:
        return t, []
    fresh = like(t, dtype)
    return fresh, copy(fresh, t, because=f"casts to {dtype}")


def compact(t: Tensor) -> tuple[Tensor, list[Launch]]:
    """`t.contiguous()`: itself when row-major and dense, else a copy that is."""
    if t.is_contiguous:
        return t, []
    fresh = contiguous(t)
    return fresh, copy(fresh, t, because="the kernels want it contiguous")


def _expanded_contiguous(t: Tensor, like: Tensor, found: list[Launch]) -> Tensor:
    """`t.expand_as(like).contiguous()`; what it launches is appended to `found`."""
    expanded = expand(t, like.shape)
    if expanded.is_contiguous:
        return expanded
    fresh = contiguous(expanded)
    found += copy(fresh, expanded)
    return fresh


def expand(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`t.expand(shape)`: broadcast dims get stride 0."""
    pad = len(shape) - t.ndim
    stride = [0] * pad
    for size, st, want in zip(t.shape, t.stride, shape[pad:], strict=True):
        stride.append(0 if size == 1 and want != 1 else st)
    return replace(t, shape=shape, stride=tuple(stride))


def fill(t: Tensor, *, because: str = "") -> list[Launch]:
    """`t.fill_(number)`: one elementwise kernel without inputs; none for empty or CPU arrays."""
    return elementwise([t], [], because=because or "fills with a number", op=_FILL)


def zero(t: Tensor, *, because: str = "") -> list[Launch]:
    """`t.zero_()`: on CUDA a fill with 0, never a memset."""
    return fill(t, because=because or "fills with 0")


def read_by_host(x: Tensor) -> list[Launch]:
    """`.item()`: one element is copied to the host, which waits; nothing for a host tensor."""
    if not x.is_cuda:
        return []
    return [
        memcpy("DtoH", x, replace(x, device="cpu"), because="the host reads one element"),
        sync("the host waits for the value"),
    ]
