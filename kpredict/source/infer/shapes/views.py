"""Views: new sizes and strides on the same memory. They launch nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kpredict.model import row_major
from kpredict.source.infer.shapes.registry import (
    Arguments,
    Unclear,
    at,
    dims,
    known,
    rank,
    shape,
    size_list,
)  # fmt: skip
from kpredict.source.infer.values import UNKNOWN, Array, Dim, Value


def view(
    a: Array, shape: Sequence[Dim], stride: Sequence[int] | None, offset: int | None = None
) -> Array:
    whole = stride is not None and None not in shape
    return replace(
        a, shape=tuple(shape), stride=tuple(stride) if whole and stride is not None else None,
        offset=a.offset if offset is None else offset, role="",
    )  # fmt: skip


def infer_size(wanted: Sequence[Dim], numel: int | None) -> tuple[Dim, ...]:
    """`wanted` with its -1 filled in."""
    if -1 not in wanted:
        return tuple(wanted)
    rest = [d for d in wanted if d != -1]
    if numel is None or None in rest:
        return tuple(None if d == -1 else d for d in wanted)
    others = math.prod(d for d in rest if d is not None)
    if others == 0 or numel % others:
        raise Unclear
    return tuple(numel // others if d == -1 else d for d in wanted)


def view_stride(
    sizes: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...] | None:
    """The strides of `wanted` on the same memory, or None when only a copy can give them.

    Follows ATen/TensorUtils.cpp (computeStride).
    """
    if math.prod(sizes) == 0:
        return tuple(strides) if tuple(sizes) == tuple(wanted) else row_major(wanted)
    if not sizes:
        return (1,) * len(wanted)
    out = [0] * len(wanted)
    at = len(wanted) - 1
    base = strides[-1]
    tensor_numel = view_numel = 1
    for d in range(len(sizes) - 1, -1, -1):
        tensor_numel *= sizes[d]
        if d == 0 or (sizes[d - 1] != 1 and strides[d - 1] != tensor_numel * base):
            while at >= 0 and (view_numel < tensor_numel or wanted[at] == 1):
                out[at] = view_numel * base
                view_numel *= wanted[at]
                at -= 1
            if view_numel != tensor_numel:
                return None
            if d > 0:
                base = strides[d - 1]
                tensor_numel = view_numel = 1
    return tuple(out) if at == -1 else None


@shape("view", "_unsafe_view", "_reshape_alias")
def view_(a: Arguments) -> Array:
    x: Array = a["self"]
    if "dtype" in a:
        if not isinstance(a["dtype"], str):
            return replace(x, dtype=None, shape=None, stride=None)
        return replace(x, dtype=a["dtype"])
    wanted = infer_size(size_list(a["size"]), x.numel)
    if x.sizes is None or x.stride is None or None in wanted:
        return view(x, wanted, None)
    stride = view_stride(x.sizes, x.stride, wanted)  # type: ignore[arg-type]
    if stride is None or math.prod(wanted) != x.numel:  # type: ignore[arg-type]
        raise Unclear
    return view(x, wanted, stride)


@shape("permute")
def permute(a: Arguments) -> Array:
    x: Array = a["self"]
    order = [at(d, rank(x)) for d in known(a["dims"])]
    if len(order) != rank(x):
        raise Unclear
    return view(x, [dims(x)[d] for d in order], x.stride and [x.stride[d] for d in order])


def swapped(x: Array, d0: int, d1: int) -> Array:
    order = list(range(rank(x)))
    if order:
        order[d0], order[d1] = order[d1], order[d0]
    return permute({"self": x, "dims": order})


@shape("transpose")
def transpose(a: Arguments) -> Array:
    x: Array = a["self"]
    return swapped(x, at(a["dim0"], rank(x)), at(a["dim1"], rank(x)))


@shape("t")
def t(a: Arguments) -> Array:
    x: Array = a["self"]
    return swapped(x, 0, 1) if rank(x) == 2 else x


@shape("expand")
def expand(a: Arguments) -> Array:
    x: Array = a["self"]
    wanted = size_list(a["size"])
    have = dims(x)
    if len(have) > len(wanted):
        raise Unclear
    pad = len(wanted) - len(have)
    out: list[Dim] = []
    strides: list[int] | None = [] if x.stride is not None else None
    for i, w in enumerate(wanted):
        h = 1 if i < pad else have[i - pad]
        n = h if w == -1 else w
        if h not in (1, None) and n is not None and n != h:
            raise Unclear
        out.append(n)
        if strides is not None and x.stride is not None:
            strides.append(0 if i < pad or (h == 1 and n != 1) else x.stride[i - pad])
    return view(x, out, strides)


@shape("unsqueeze")
def unsqueeze(a: Arguments) -> Array:
    x: Array = a["self"]
    d = at(a["dim"], rank(x) + 1)
    out = [*dims(x)[:d], 1, *dims(x)[d:]]
    stride = None
    if x.stride is not None and x.sizes is not None:
        step = x.sizes[d] * x.stride[d] if d < len(x.sizes) else 1
        stride = [*x.stride[:d], step, *x.stride[d:]]
    return view(x, out, stride)


@shape("squeeze")
def squeeze(a: Arguments) -> Array:
    x: Array = a["self"]
    which = a.get("dim", "all")
    have = dims(x)
    if which == "all":
        gone = set(range(len(have)))
    else:
        gone = {at(d, len(have)) for d in ([which] if isinstance(which, int) else known(which))}
    if any(have[d] is None for d in gone):
        raise Unclear
    keep = [d for d in range(len(have)) if d not in gone or have[d] != 1]
    return view(x, [have[d] for d in keep], x.stride and [x.stride[d] for d in keep])


@shape("select")
def select(a: Arguments) -> Array:
    x: Array = a["self"]
    d = at(a["dim"], rank(x))
    index = a["index"]
    stride, offset = x.stride, x.offset
    if stride is not None:
        n = dims(x)[d] or 0
        if isinstance(index, int):
            offset += (index % n if n else 0) * stride[d]
        stride = (*stride[:d], *stride[d + 1 :])
    return view(x, [*dims(x)[:d], *dims(x)[d + 1 :]], stride, offset)


@shape("slice")
def slice_(a: Arguments) -> Array:
    x: Array = a["self"]
    d = at(a["dim"], rank(x))
    n = dims(x)[d]
    bounds = (a["start"], a["end"], a["step"])
    if n is None or UNKNOWN in bounds:
        whole = bounds[0] in (None, 0) and bounds[1] is None and bounds[2] in (None, 1)
        return view(x, [*dims(x)[:d], n if whole else None, *dims(x)[d + 1 :]], None)
    r = range(*slice(*bounds).indices(n))
    stride, offset = x.stride, x.offset
    if stride is not None:
        offset += (r.start if r else min(r.start, n)) * stride[d]
        stride = (*stride[:d], stride[d] * (r.step or 1), *stride[d + 1 :])
    return view(x, [*dims(x)[:d], len(r), *dims(x)[d + 1 :]], stride, offset)


def narrow(x: Array, d: int, start: int, length: int) -> Array:
    return slice_({"self": x, "dim": d, "start": start, "end": start + length, "step": 1})


@shape("split", "split_with_sizes")
def split(a: Arguments) -> list[Array]:
    x: Array = a["self"]
    d = at(a["dim"], rank(x))
    n = dims(x)[d]
    size = a["split_size"] if "split_size" in a else a["split_sizes"]
    if isinstance(size, int):
        if n is None:
            raise Unclear
        parts = [min(size, n - i) for i in range(0, max(n, 1), max(size, 1))]
    else:
        sizes: list[Value] = list(known(size))
        if UNKNOWN in sizes or n is None:
            return [view(x, [*dims(x)[:d], None, *dims(x)[d + 1 :]], None) for _ in sizes]
        parts = sizes
    out, start = [], 0
    for p in parts:
        out.append(narrow(x, d, start, p))
        start += p
    return out


@shape("chunk")
def chunk(a: Arguments) -> list[Array]:
    x: Array = a["self"]
    d, chunks = at(a["dim"], rank(x)), known(a["chunks"])
    n = dims(x)[d]
    if n is None:
        return [view(x, [*dims(x)[:d], None, *dims(x)[d + 1 :]], None) for _ in range(chunks)]
    return split({"self": x, "dim": d, "split_size": -(-n // chunks)})


@shape("unbind")
def unbind(a: Arguments) -> list[Array]:
    x: Array = a["self"]
    d = at(a["dim"], rank(x))
    n = dims(x)[d]
    if n is None:
        raise Unclear
    return [select({"self": x, "dim": d, "index": i}) for i in range(n)]


@shape("diagonal")
def diagonal(a: Arguments) -> Array:
    x: Array = a["self"]
    d0, d1 = at(a["dim1"], rank(x)), at(a["dim2"], rank(x))
    k = known(a["offset"])
    rest = [d for d in range(rank(x)) if d not in (d0, d1)]
    n0, n1 = dims(x)[d0], dims(x)[d1]
    size = None if n0 is None or n1 is None else max(min(n0 + min(k, 0), n1 - max(k, 0)), 0)
    stride = x.stride and [*(x.stride[d] for d in rest), x.stride[d0] + x.stride[d1]]
    return view(x, [*(dims(x)[d] for d in rest), size], stride)


@shape("unfold")
def unfold(a: Arguments) -> Array:
    x: Array = a["self"]
    d = at(a["dimension"], rank(x))
    n = dims(x)[d]
    size, step = known(a["size"]), known(a["step"])
    if n is None:
        raise Unclear
    out = [*dims(x)[:d], (n - size) // step + 1, *dims(x)[d + 1 :], size]
    stride = x.stride and [*x.stride[:d], x.stride[d] * step, *x.stride[d + 1 :], x.stride[d]]
    return view(x, out, stride)


@shape("as_strided")
def as_strided(a: Arguments) -> Array:
    offset = a.get("storage_offset")
    return view(a["self"], size_list(a["size"]), known(a["stride"]), offset or a["self"].offset)


@shape("detach", "alias")
def detach(a: Arguments) -> Array:
    x: Array = a["self"]
    return replace(x, requires_grad=False, role="")


@shape("view_as_real")
def view_as_real(a: Arguments) -> Array:
    x: Array = a["self"]
    stride = x.stride and [*(s * 2 for s in x.stride), 1]
    return replace(view(x, [*dims(x), 2], stride), dtype=_real(x.dtype))


@shape("view_as_complex")
def view_as_complex(a: Arguments) -> Array:
    x: Array = a["self"]
    stride = x.stride and [s // 2 for s in x.stride[:-1]]
    back = {"float32": "complex64", "float64": "complex128", "float16": "complex32"}
    return replace(view(x, dims(x)[:-1], stride), dtype=back.get(x.dtype or ""))


def _real(dtype: str | None) -> str | None:
    return {"complex64": "float32", "complex128": "float64", "complex32": "float16"}.get(
        dtype or ""
    )
