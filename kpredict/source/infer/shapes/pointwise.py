"""Pointwise ops: broadcasting, type promotion, and the memory order of what they return.

Follows aten/src/ATen/TensorIterator.cpp (compute_shape, compute_types, allocate_or_resize_outputs)
and c10/core/ScalarType (promoteTypes).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kpredict.source.infer.shapes.registry import Arguments, Unclear, device_of, fresh, shape
from kpredict.source.infer.values import UNKNOWN, Array, Dim, Value

COMPARISONS = frozenset(
    "eq ne lt le gt ge isnan isinf isfinite isneginf isposinf signbit logical_and logical_or "
    "logical_xor logical_not isclose isreal".split()
)
INTEGERS = frozenset("uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool".split())
FLOATING_RESULT = frozenset(
    "div true_divide reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin "
    "acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma atan2 logit "
    "mean var std softmax log_softmax nan_to_num_ special_xlog1py special_entr sinc deg2rad "
    "rad2deg xlogy logaddexp logaddexp2 i0 special_i1".split()
)
_ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64", "complex32", "complex64", "complex128"]  # fmt: skip


_OPERANDS = ("self", "other", "condition", "mask", "tensor1", "tensor2", "exponent", "weight")


def category(dtype: str) -> int:
    """0 bool, 1 integer, 2 floating, 3 complex."""
    if dtype == "bool":
        return 0
    if dtype in INTEGERS:
        return 1
    return 3 if dtype.startswith("complex") else 2


def promote(a: str, b: str) -> str:
    """The dtype that holds both."""
    if a == b:
        return a
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    if category(a) == 3 or category(b) == 3:
        real = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
        back = {v: k for k, v in real.items()} | {"bfloat16": "complex64"}
        return back.get(promote(real.get(a, a), real.get(b, b)), "complex64")
    if a not in _ORDER or b not in _ORDER:
        raise Unclear
    return max(a, b, key=_ORDER.index)


def result_type(values: Iterable[Value]) -> str | None:
    """torch.result_type of arrays and numbers: those with dims, then those without, then numbers;
    a lower class counts only when its category is higher."""
    classes: list[str | None] = [None, None, None]
    for v in values:
        if isinstance(v, Array):
            if (v.dtype is None or v.shape is None) and v.dtype is None:
                return None
            level, dtype = (1 if v.shape == () else 0), v.dtype
        elif isinstance(v, bool):
            level, dtype = 2, "bool"
        elif isinstance(v, int):
            level, dtype = 2, "int64"
        elif isinstance(v, float):
            level, dtype = 2, "float32"
        elif isinstance(v, complex):
            level, dtype = 2, "complex64"
        else:
            continue
        before = classes[level]
        classes[level] = dtype if before is None else promote(before, dtype)
    found = None
    for dtype in classes:  # type: ignore[assignment]
        if dtype is None:
            continue
        if found is None:
            found = dtype
        elif category(dtype) > category(found):
            complex_of_float = {
                "float16": "complex32",
                "float32": "complex64",
                "float64": "complex128",
            }
            found = complex_of_float.get(found, dtype) if category(dtype) == 3 else dtype
    return found


def broadcast(shapes: Iterable[Sequence[Dim] | None]) -> tuple[Dim, ...] | None:
    """The common shape; None when a rank is unknown. Raises Unclear when they do not fit."""
    out: list[Dim] = []
    for dims in shapes:
        if dims is None:
            return None
        if len(dims) > len(out):
            out = [*[1] * (len(dims) - len(out)), *out]
        for i, d in enumerate(reversed(dims), 1):
            have = out[-i]
            if have == 1:
                out[-i] = d
            elif d == 1 or d == have:
                pass
            elif have is None:
                out[-i] = d
            elif d is not None:
                raise Unclear
    return tuple(out)


def preserved_stride(out: tuple[int, ...], arrays: Iterable[Array]) -> tuple[int, ...] | None:
    """The strides TensorIterator gives a new output: the inputs' order of dims, made dense.

    The first operand decides between two dims unless it is broadcast in one of them.
    """
    operands: list[tuple[int, ...]] = []
    for a in arrays:
        if a.stride is None or a.sizes is None:
            return None
        pad = len(out) - len(a.sizes)
        operands.append(
            (0,) * pad
            + tuple(0 if n == 1 and m != 1 else st
                    for n, m, st in zip(a.sizes, out[pad:], a.stride, strict=True))
        )  # fmt: skip
    order = list(range(len(out) - 1, -1, -1))  # fastest first

    def before(x: int, y: int) -> int:
        """-1: x is faster than y, 1: slower, 0: no operand tells."""
        for st in operands:
            if st[x] == 0 or st[y] == 0:
                continue
            if st[x] != st[y]:
                return -1 if st[x] < st[y] else 1
            if out[x] > out[y]:
                return 1
        return 0

    for i in range(1, len(order)):  # insertion sort, as compare() is no total order
        j = i
        for k in range(i - 1, -1, -1):
            c = before(order[k], order[j])
            if c > 0:
                order[k], order[j] = order[j], order[k]
                j = k
            elif c < 0:
                break
    strides, step = [0] * len(out), 1
    for d in order:
        strides[d] = step
        step *= max(out[d], 1)
    return tuple(strides)


def pointwise(a: Arguments, name: str = "", dtype: str | None = None) -> Array:
    """The result of any op that torch tags pointwise."""
    arrays = [v for v in a.values() if isinstance(v, Array)]
    if not arrays:
        raise Unclear
    numbers = [a[k] for k in ("self", "other", "value", "exponent", "min", "max") if k in a]
    full = [x for x in arrays if x.device == "cuda" or x.shape != ()] or arrays
    dims = broadcast(x.shape for x in arrays)
    if any(a.get(k) is UNKNOWN for k in _OPERANDS):  # it may be an array of any shape
        dims = None
        dtype = "bool" if name in COMPARISONS else dtype
        return fresh(None, dtype, device_of(arrays))
    if dtype is None:
        if name in COMPARISONS:
            dtype = "bool"
        elif any(v is UNKNOWN for v in numbers) and all(
            x.dtype is not None and category(x.dtype) < 2 for x in arrays
        ):
            dtype = None  # an unknown number might be a float
        else:
            data = arrays[1:] if name == "where" else arrays
            dtype = result_type([*data, *(n for n in numbers if not isinstance(n, Array))])
        if dtype is not None and name in FLOATING_RESULT and category(dtype) < 2:
            dtype = "float32"
        if name == "div" and a.get("rounding_mode") is not None and dtype == "float32":
            dtype = result_type(arrays)
        if name in ("abs", "angle") and dtype is not None and category(dtype) == 3:
            dtype = {"complex64": "float32", "complex128": "float64"}.get(dtype)
    stride = None
    if dims is not None and None not in dims:
        whole: tuple[int, ...] = dims  # type: ignore[assignment]
        stride = preserved_stride(whole, full)
        if stride is None and math.prod(whole) > 1:
            out = fresh(whole, dtype, device_of(arrays))
            return Array(out.shape, out.dtype, out.device, out.storage)  # order unknown
    return fresh(dims, dtype, device_of(arrays), stride)


@shape("where")
def where(a: Arguments) -> Array:
    return pointwise(a, "where")


@shape("masked_fill")
def masked_fill(a: Arguments) -> Array:
    """In a contiguous clone of the array, as large as both together."""
    out = pointwise({"self": a["self"], "mask": a["mask"]}, dtype=a["self"].dtype)
    return fresh(out.shape, out.dtype, out.device)


@shape("clone", "relu", "dropout", "hardtanh", "contiguous_copy")
def same(a: Arguments) -> Array:
    """As the input, in dtype too; `memory_format` may ask for another order."""
    x: Array = a["self"] if "self" in a else a["input"]
    fmt = a.get("memory_format")
    if fmt == "contiguous_format" or (x.sizes is not None and x.stride is None):
        return fresh(x.shape, x.dtype, x.device)
    if fmt in ("channels_last", "channels_last_3d") and x.sizes is not None:
        return fresh(x.shape, x.dtype, x.device, channels_last(x.sizes))
    stride = dense_stride(x)
    return fresh(x.shape, x.dtype, x.device, stride)


def dense_stride(x: Array) -> tuple[int, ...] | None:
    """What `empty_like(x)` has: its own strides if dense, else the same order made dense."""
    if x.sizes is None or x.stride is None:
        return None
    return preserved_stride(x.sizes, [x])


def channels_last(s: tuple[int, ...]) -> tuple[int, ...]:
    order = [1, *range(len(s) - 1, 1, -1), 0]
    strides, step = [0] * len(s), 1
    for d in order:
        strides[d] = step
        step *= s[d]
    return tuple(strides)


@shape("_to_copy")
def to_copy(a: Arguments) -> Array:
    x: Array = a["self"]
    copied = same({"self": x, "memory_format": a.get("memory_format")})
    dtype, device = a.get("dtype"), a.get("device")
    return Array(
        copied.shape,
        (x.dtype if dtype is None else dtype if dtype is not UNKNOWN else None),
        x.device if device is None else device if isinstance(device, str) else "cuda",
        copied.storage,
        copied.stride,
    )


@shape("native_dropout")
def native_dropout(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["input"]
    out = same({"self": x})
    return out, fresh(x.shape, "bool", x.device, out.stride)


@shape("real", "imag")
def real(a: Arguments) -> Array:
    x: Array = a["self"]
    return fresh(
        x.shape,
        {"complex64": "float32", "complex128": "float64"}.get(x.dtype or "", x.dtype),
        x.device,
    )


@shape("complex", "polar")
def make_complex(a: Arguments) -> Array:
    return pointwise(a, dtype="complex64")


@shape("frexp")
def frexp(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["self"]
    return same(a), fresh(x.shape, "int32", x.device)


@shape("bernoulli", "rand_like", "randn_like", "empty_like", "zeros_like", "ones_like", "full_like",
       "randint_like")  # fmt: skip
def made_like(a: Arguments) -> Array:
    x: Array = a["self"]
    stride = dense_stride(x)
    dtype, device = a.get("dtype"), a.get("device")
    return fresh(
        x.shape, dtype if isinstance(dtype, str) else None if dtype is UNKNOWN else x.dtype,
        device if isinstance(device, str) else x.device, stride,
    )  # fmt: skip


@shape("hardswish", "floor_divide", "lift_fresh", "rrelu_with_noise", "poisson", "binomial", "isin")
def untagged(a: Arguments) -> Array:
    """Pointwise ops that torch does not tag so."""
    if "elements" in a:
        return pointwise({"self": a["elements"]}, dtype="bool")
    return pointwise(a)


@shape("log_sigmoid_forward")
def log_sigmoid(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["self"]
    return pointwise(a), fresh((0,), x.dtype, x.device)


@shape("glu")
def glu(a: Arguments) -> Array:
    x: Array = a["self"]
    if x.shape is None or not isinstance(a["dim"], int):
        raise Unclear
    s = list(x.shape)
    half = s[a["dim"]]
    s[a["dim"]] = None if half is None else half // 2
    return fresh(s, x.dtype, x.device)
