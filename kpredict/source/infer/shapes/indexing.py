"""Indexing, gathering, joining, and arrays made from nothing."""

from __future__ import annotations

import math

from kpredict.source.infer.shapes.pointwise import broadcast, category, dense_stride, promote
from kpredict.source.infer.shapes.registry import (
    Arguments,
    Unclear,
    at,
    dims,
    fresh,
    known,
    like,
    rank,
    shape,
    size_list,
)  # fmt: skip
from kpredict.source.infer.values import UNKNOWN, Array, Device, Dim


@shape("embedding")
def embedding(a: Arguments) -> Array:
    w, i = a["weight"], a["indices"]
    return like(w, (*dims(i), dims(w)[1]))


@shape("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(a: Arguments) -> tuple[Array, ...]:
    w, o = a["weight"], a["offsets"]
    out = like(w, (dims(o)[0], dims(w)[1]))
    rest = fresh((dims(o)[0],), "int64", w.device)
    return out, rest, rest, rest


@shape("index_select")
def index_select(a: Arguments) -> Array:
    x, i = a["self"], a["index"]
    s = list(dims(x))
    if s:
        s[at(a["dim"], len(s))] = i.numel
    return like(x, s)


@shape("gather", "take")
def gather(a: Arguments) -> Array:
    return like(a["self"], a["index"].shape)


@shape("index", "_unsafe_index")
def index(a: Arguments) -> Array:
    """Advanced indexing by integer arrays; a boolean one leaves its size to the device."""
    x: Array = a["self"]
    given = list(a["indices"])
    if any(isinstance(i, Array) and i.dtype in ("bool", "uint8", None) for i in given):
        return fresh(None, x.dtype, x.device)  # as many as the device finds
    used = [k for k, i in enumerate(given) if isinstance(i, Array)]
    common = broadcast(i.shape for i in given if isinstance(i, Array))
    if common is None:
        raise Unclear
    together = used == list(range(used[0], used[-1] + 1))
    s = list(dims(x))
    rest_front = [s[k] for k in range(used[0])] if together else []
    others = [s[k] for k in range(len(s)) if k not in used and (not together or k > used[0])]
    return like(x, (*rest_front, *common, *others))


@shape("cat")
def cat(a: Arguments) -> Array:
    parts = [p for p in known(a["tensors"]) if isinstance(p, Array)]
    parts = [p for p in parts if p.shape != (0,)] or parts
    if len(parts) != len(a["tensors"]):
        raise Unclear
    d = at(a["dim"], rank(parts[0]))
    total: Dim = 0
    for p in parts:
        n = dims(p)[d]
        total = None if total is None or n is None else total + n
    s = [
        next((dims(p)[i] for p in parts if dims(p)[i] is not None), None)
        for i in range(rank(parts[0]))
    ]
    s[d] = total
    dtype = parts[0].dtype
    for p in parts[1:]:
        dtype = None if dtype is None or p.dtype is None else promote(dtype, p.dtype)
    return like(parts[0], s, dtype)


@shape("stack")
def stack(a: Arguments) -> Array:
    parts = known(a["tensors"])
    if not parts or not all(isinstance(p, Array) for p in parts):
        raise Unclear
    d = at(a["dim"], rank(parts[0]) + 1)
    return like(parts[0], (*dims(parts[0])[:d], len(parts), *dims(parts[0])[d:]))


@shape("repeat")
def repeat(a: Arguments) -> Array:
    x: Array = a["self"]
    times = size_list(a["repeats"])
    s = (1,) * (len(times) - rank(x)) + dims(x)
    return like(
        x, [None if n is None or t is None else n * t for n, t in zip(s, times, strict=True)]
    )


@shape("constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
       "replication_pad1d", "replication_pad2d", "replication_pad3d")  # fmt: skip
def pad(a: Arguments) -> Array:
    x: Array = a["self"]
    widths = known(a["pad"] if "pad" in a else a["padding"])
    s = list(dims(x))
    for i in range(len(widths) // 2):
        lo, hi, n = widths[2 * i], widths[2 * i + 1], s[-1 - i]
        s[-1 - i] = None if n is None or lo is UNKNOWN or hi is UNKNOWN else n + lo + hi
    return like(x, s)


@shape("multinomial")
def multinomial(a: Arguments) -> Array:
    return like(a["self"], (*dims(a["self"])[:-1], known(a["num_samples"])), "int64")


@shape("searchsorted", "bucketize")
def searchsorted(a: Arguments) -> Array:
    x = a["self"]
    if not isinstance(x, Array):
        raise Unclear
    return like(x, x.shape, "int32" if a.get("out_int32") else "int64")


def _dtype(a: Arguments, default: str | None) -> str | None:
    d = a.get("dtype")
    return d if isinstance(d, str) else None if d is UNKNOWN else default


def placed(a: Arguments) -> str:
    """The CPU unless the call says otherwise; a device we cannot read is taken for the GPU."""
    d = a.get("device")
    if d is None:
        return "cpu"
    if isinstance(d, Device):
        return d.type
    return d.split(":")[0] if isinstance(d, str) else "cuda"


@shape(
    "empty", "zeros", "ones", "rand", "randn", "full", "empty_strided", "normal_", "empty_permuted"
)
def made(a: Arguments) -> Array:
    default: str | None = "float32"
    if "fill_value" in a:
        v = a["fill_value"]
        default = "bool" if isinstance(v, bool) else "int64" if isinstance(v, int) else "float32"
        default = None if v is UNKNOWN else default
    return fresh(size_list(a["size"]), _dtype(a, default), placed(a))


@shape("randint")
def randint(a: Arguments) -> Array:
    return fresh(size_list(a["size"]), _dtype(a, "int64"), placed(a))


@shape("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided")
def new(a: Arguments) -> Array:
    x: Array = a["self"]
    device = x.device if a.get("device") is None else placed(a)
    return fresh(size_list(a["size"]), _dtype(a, x.dtype), device)


@shape("randperm")
def randperm(a: Arguments) -> Array:
    n = a["n"]
    return fresh((n if isinstance(n, int) else None,), _dtype(a, "int64"), placed(a))


@shape("arange")
def arange(a: Arguments) -> Array:
    start, end, step = a.get("start", 0), a["end"], a.get("step", 1)
    whole = all(isinstance(v, int) for v in (start, end, step))
    n = None
    if all(isinstance(v, (int, float)) for v in (start, end, step)) and step:
        n = max(math.ceil((end - start) / step), 0)
    elif UNKNOWN in (start, end, step):
        known_floats = any(isinstance(v, float) for v in (start, end, step))
        return fresh((None,), _dtype(a, "float32" if known_floats else None), placed(a))
    return fresh((n,), _dtype(a, "int64" if whole else "float32"), placed(a))


@shape("linspace", "logspace")
def linspace(a: Arguments) -> Array:
    n = a["steps"]
    return fresh((n if isinstance(n, int) else None,), _dtype(a, "float32"), placed(a))


@shape("eye")
def eye(a: Arguments) -> Array:
    n, m = a["n"], a.get("m", a["n"])
    s = [v if isinstance(v, int) else None for v in (n, m)]
    return fresh(s, _dtype(a, "float32"), placed(a))


@shape("tril_indices", "triu_indices")
def tril_indices(a: Arguments) -> Array:
    return fresh((2, None), "int64", placed(a))


@shape("scalar_tensor")
def scalar_tensor(a: Arguments) -> Array:
    return fresh((), _dtype(a, "float32"), placed(a))


@shape("diag_embed")
def diag_embed(a: Arguments) -> Array:
    x: Array = a["self"]
    return like(x, (*dims(x), dims(x)[-1]))


@shape("lerp", "addcmul", "addcdiv", "polygamma", "nan_to_num")
def first(a: Arguments) -> Array:
    arrays = [v for v in a.values() if isinstance(v, Array)]
    s = broadcast(v.shape for v in arrays)
    x = arrays[0]
    stride = dense_stride(x) if s == x.shape else None
    dtype = "float32" if x.dtype is not None and category(x.dtype) < 2 else x.dtype
    return fresh(s, dtype, "cuda" if any(v.device == "cuda" for v in arrays) else x.device, stride)


@shape("one_hot")
def one_hot(a: Arguments) -> Array:
    n = a["num_classes"]
    if n is UNKNOWN or n == -1:
        raise Unclear
    return like(a["self"], (*dims(a["self"]), n))
