"""Reductions, scans, sorting and the losses that end in one number."""

from __future__ import annotations

from collections.abc import Sequence

from kpredict.source.infer.shapes.pointwise import category, pointwise, same
from kpredict.source.infer.shapes.registry import (
    Arguments,
    at,
    dims,
    fresh,
    known,
    like,
    rank,
    shape,
)  # fmt: skip
from kpredict.source.infer.values import UNKNOWN, Array, Dim


def reduced(x: Array, dim: object, keepdim: object) -> tuple[Dim, ...]:
    """The shape after `dim` (None, () : all dims; a number or numbers) is reduced."""
    if dim is None or dim == ():
        if keepdim is not True:
            return ()
        return (1,) * rank(x)
    known(dim)
    listed: Sequence[int] = dim if isinstance(dim, (tuple, list)) else (dim,)
    gone = {at(d, rank(x)) for d in listed}
    keep = bool(known(keepdim))
    return tuple(1 if d in gone else n for d, n in enumerate(dims(x)) if keep or d not in gone)


def _dtype(a: Arguments, name: str = "") -> str | None:
    x: Array = a["self"]
    if isinstance(a.get("dtype"), str):
        found: str = a["dtype"]
        return found
    if a.get("dtype") is UNKNOWN:
        return None
    return x.dtype


@shape("sum", "prod", "nansum")
def sum_(a: Arguments) -> Array:
    dtype = _dtype(a)
    if dtype is not None and category(dtype) < 2 and a.get("dtype") is None:
        dtype = "int64"
    return like(a["self"], reduced(a["self"], a.get("dim"), a.get("keepdim", False)), dtype)


@shape("mean", "amax", "amin", "logsumexp", "var", "std", "nanmean", "trace")
def mean(a: Arguments) -> Array:
    return like(a["self"], reduced(a["self"], a.get("dim"), a.get("keepdim", False)), _dtype(a))


@shape("norm", "linalg_vector_norm", "frobenius_norm", "nuclear_norm", "linalg_matrix_norm")
def norm(a: Arguments) -> Array:
    x: Array = a["self"]
    dtype = {"complex64": "float32", "complex128": "float64"}.get(x.dtype or "", _dtype(a))
    return like(x, reduced(x, a.get("dim"), a.get("keepdim", False)), dtype)


@shape("var_mean", "std_mean", "aminmax")
def var_mean(a: Arguments) -> tuple[Array, Array]:
    return mean(a), mean(a)


@shape("any", "all", "equal", "is_nonzero")
def any_(a: Arguments) -> Array:
    x: Array = a["self"]
    return like(x, reduced(x, a.get("dim"), a.get("keepdim", False)), "bool")


@shape("argmax", "argmin", "count_nonzero")
def argmax(a: Arguments) -> Array:
    x: Array = a["self"]
    return like(x, reduced(x, a.get("dim"), a.get("keepdim", False)), "int64")


@shape("max", "min", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin")
def max_(a: Arguments) -> Array | tuple[Array, Array]:
    x: Array = a["self"]
    if isinstance(a.get("other"), Array):
        return pointwise(a)
    if "dim" not in a:
        return like(x, ())
    s = reduced(x, a["dim"], a.get("keepdim", False))
    return like(x, s), like(x, s, "int64")


@shape("flip", "roll", "renorm",
       "tril", "triu", "index_fill", "index_copy", "index_add", "index_put", "_index_put_impl",
       "scatter", "scatter_add", "scatter_reduce", "index_reduce", "put", "masked_scatter",
       "fill_diagonal", "slice_scatter", "select_scatter", "copy", "fill", "zero", "normal",
       "uniform", "random", "exponential", "geometric", "cauchy", "log_normal")  # fmt: skip
def as_input(a: Arguments) -> Array:
    x: Array = a["self" if "self" in a else "mean"]
    dtype = _dtype(a)
    if a.get("half_to_float") is True:
        dtype = "float32"
    if "dim" in a and "dtype" in a and a["dtype"] is None and dtype and category(dtype) < 2:
        dtype = "int64"  # cumsum, cumprod
    out = same({"self": x})
    return Array(out.shape, dtype, out.device, out.storage, out.stride)


@shape("sort", "topk", "msort")
def sort(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["self"]
    s = list(dims(x))
    if "k" in a and s:
        k = a["k"]
        s[at(a["dim"], len(s))] = k if isinstance(k, int) else None
    return like(x, s), like(x, s, "int64")


@shape("argsort")
def argsort(a: Arguments) -> Array:
    return like(a["self"], dims(a["self"]), "int64")


@shape("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss",
       "binary_cross_entropy_with_logits")  # fmt: skip
def loss(a: Arguments) -> Array:
    x: Array = a["self"]
    if a.get("reduction", 1) == 0:
        return pointwise({k: v for k, v in a.items() if isinstance(v, Array)})
    return like(x, ())


@shape("nll_loss_forward", "nll_loss2d_forward")
def nll(a: Arguments) -> tuple[Array, Array]:
    x, y = a["self"], a["target"]
    return like(x, y.shape if a["reduction"] == 0 else ()), like(x, ())


@shape("_ctc_loss")
def ctc(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["log_probs"]
    return like(x, (dims(x)[1],)), like(x, (dims(x)[1], None, None))


@shape("native_layer_norm", "_fused_rms_norm")
def native_layer_norm(a: Arguments) -> tuple[Array, ...]:
    x: Array = a["input"]
    n = len(known(a["normalized_shape"]))
    stat = None if x.shape is None else (*x.shape[: len(x.shape) - n], *(1,) * n)
    wide = "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
    stats = tuple(like(x, stat, wide) for _ in range(2 if "bias" in a else 1))
    return (fresh(x.shape, x.dtype, x.device), *stats)


@shape("native_group_norm")
def native_group_norm(a: Arguments) -> tuple[Array, ...]:
    x: Array = a["input"]
    n, groups = a["N"], a["group"]
    s = (n if isinstance(n, int) else None, groups if isinstance(groups, int) else None)
    return fresh(x.shape, x.dtype, x.device), like(x, s), like(x, s)


@shape("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit_no_training",
       "_native_batch_norm_legit", "_batch_norm_impl_index")  # fmt: skip
def native_batch_norm(a: Arguments) -> tuple[Array, ...]:
    x: Array = a["input"]
    c = (dims(x)[1],) if x.shape is not None and len(x.shape) > 1 else None
    training = a.get("training", False) is True
    stats = [like(x, c if training else (0,), "float32") for _ in range(2)]
    out = same({"self": x})
    extra = (
        [fresh((0,), "uint8", x.device)]
        if "epsilon" in a or "exponential_average_factor" in a
        else []
    )
    return (out, *stats, *extra)


@shape("histc", "_histogramdd_from_bin_cts")
def histc(a: Arguments) -> Array:
    return like(a["self"], (a["bins"],))


@shape("nonzero")
def nonzero(a: Arguments) -> Array:
    """As many rows as the device finds."""
    x: Array = a["self"]
    return fresh((None, x.ndim), "int64", x.device)


@shape("masked_select")
def masked_select(a: Arguments) -> Array:
    x: Array = a["self"]
    return fresh((None,), x.dtype, x.device)


@shape("bincount")
def bincount(a: Arguments) -> Array:
    return fresh((None,), "int64", a["self"].device)


@shape("_unique2", "unique_consecutive", "unique_dim")
def unique(a: Arguments) -> tuple[Array, ...]:
    x: Array = a["self"]
    values = fresh((None,) if a.get("dim") is None else None, x.dtype, x.device)
    return values, fresh(None, "int64", x.device), fresh((None,), "int64", x.device)


@shape("_softmax", "_log_softmax", "_safe_softmax", "_masked_softmax")
def softmax(a: Arguments) -> Array:
    """Always row-major."""
    x: Array = a["self"]
    return like(x, x.shape, "float32" if a.get("half_to_float") is True else x.dtype)


@shape("cumsum", "cumprod", "logcumsumexp")
def scan(a: Arguments) -> Array:
    """Always row-major; integers are summed in 64 bits."""
    x: Array = a["self"]
    dtype = _dtype(a)
    if dtype is not None and category(dtype) < 2 and a.get("dtype") is None:
        dtype = "int64"
    return like(x, x.shape, dtype)


@shape("repeat_interleave")
def repeat_interleave(a: Arguments) -> Array:
    n = a.get("output_size")
    return fresh((n if isinstance(n, int) else None,), "int64", a["repeats"].device)
