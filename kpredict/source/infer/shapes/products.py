"""Matrix products, convolutions, attention, pooling, Fourier and linear algebra."""

from __future__ import annotations

from kpredict.source.infer.shapes.pointwise import channels_last, dense_stride
from kpredict.source.infer.shapes.registry import (
    Arguments,
    Unclear,
    dims,
    fresh,
    known,
    like,
    rank,
    shape,
    sizes,
)  # fmt: skip
from kpredict.source.infer.values import UNKNOWN, Array, Dim


@shape("mm", "bmm", "_int_mm", "_scaled_mm")
def mm(a: Arguments) -> Array:
    x, y = a["self"], a.get("mat2", a.get("other"))
    return like(x, (*dims(x)[:-1], dims(y)[-1]), _wider(x, a))


@shape("addmm", "baddbmm", "addbmm")
def addmm(a: Arguments) -> Array:
    x, y = a.get("mat1", a.get("batch1")), a.get("mat2", a.get("batch2"))
    assert isinstance(x, Array)
    assert isinstance(y, Array)
    return like(x, (*dims(x)[:-1], dims(y)[-1]))


@shape("mv", "addmv")
def mv(a: Arguments) -> Array:
    m = a["mat"] if "mat" in a else a["self"]
    return like(m, dims(m)[:-1])


@shape("dot", "vdot")
def dot(a: Arguments) -> Array:
    return like(a["self"], ())


@shape("addr", "ger")
def ger(a: Arguments) -> Array:
    x, y = a.get("vec1", a["self"]), a.get("vec2", a.get("vec2"))
    assert isinstance(x, Array)
    assert isinstance(y, Array)
    return like(x, (dims(x)[0], dims(y)[0]))


def _wider(x: Array, a: Arguments) -> str | None:
    out = a.get("out_dtype")
    return out if isinstance(out, str) else x.dtype


@shape("convolution", "cudnn_convolution", "_convolution", "cudnn_convolution_transpose")
def convolution(a: Arguments) -> Array:
    x, w = a["input"], a["weight"]
    s, k = dims(x), dims(w)
    n = len(k) - 2
    if len(s) != n + 2:
        raise Unclear
    stride, pad, dil = (_wide(known(a[key]), n) for key in ("stride", "padding", "dilation"))
    spatial: list[Dim] = []
    for i in range(n):
        size, kernel = s[2 + i], k[2 + i]
        if size is None or kernel is None:
            spatial.append(None)
        elif a.get("transposed"):
            extra = _wide(known(a["output_padding"]), n)[i]
            spatial.append((size - 1) * stride[i] - 2 * pad[i] + dil[i] * (kernel - 1) + extra + 1)
        else:
            spatial.append((size + 2 * pad[i] - dil[i] * (kernel - 1) - 1) // stride[i] + 1)
    groups = known(a["groups"])
    channels = k[0] if not a.get("transposed") else None if k[1] is None else k[1] * groups
    out = (s[0], channels, *spatial)
    last = x.sizes is not None and n == 2 and (_is_last(x) or _is_last(w)) and None not in out
    return fresh(out, x.dtype, x.device, channels_last(out) if last else None)  # type: ignore[arg-type]


def _is_last(x: Array) -> bool:
    return (
        x.sizes is not None
        and x.ndim == 4
        and x.stride == channels_last(x.sizes)
        and not x.is_contiguous
    )


def _wide(value: object, n: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * n
    if isinstance(value, (tuple, list)) and UNKNOWN not in value:
        return tuple(value) * (n if len(value) == 1 else 1)
    raise Unclear


@shape("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(a: Arguments) -> tuple[Array, Array]:
    out = pooled(a)
    return out, fresh(out.shape, "int64", out.device, out.stride)


@shape("avg_pool2d", "avg_pool3d", "avg_pool1d")
def pooled(a: Arguments) -> Array:
    x: Array = a["self"]
    kernel = a["kernel_size"]
    n = len(kernel) if isinstance(kernel, tuple) else 2
    k = _wide(known(kernel), n)
    stride = _wide(known(a["stride"]) or k, n)
    pad, dil = _wide(known(a["padding"]), n), _wide(a.get("dilation", 1), n)
    spatial: list[Dim] = []
    for i in range(n):
        size = dims(x)[rank(x) - n + i]
        if size is None:
            spatial.append(None)
            continue
        top = size + 2 * pad[i] - dil[i] * (k[i] - 1) - 1
        count = (-(-top // stride[i]) if a.get("ceil_mode") else top // stride[i]) + 1
        if a.get("ceil_mode") and (count - 1) * stride[i] >= size + pad[i]:
            count -= 1
        spatial.append(count)
    out = (*dims(x)[: rank(x) - n], *spatial)
    last = _is_last(x) and None not in out
    return fresh(out, x.dtype, x.device, channels_last(out) if last else None)  # type: ignore[arg-type]


@shape("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "upsample_nearest2d", "upsample_bilinear2d",
       "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "im2col_",
       "upsample_nearest1d", "upsample_linear1d", "upsample_nearest3d", "upsample_trilinear3d",
       "_upsample_nearest_exact2d", "_upsample_nearest_exact1d")  # fmt: skip
def resized(a: Arguments) -> Array:
    x: Array = a["self"]
    size = known(a["output_size"])
    out = (*dims(x)[: rank(x) - len(size)], *(v if isinstance(v, int) else None for v in size))
    last = _is_last(x) and None not in out
    return fresh(out, x.dtype, x.device, channels_last(out) if last else None)  # type: ignore[arg-type]


@shape("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(a: Arguments) -> tuple[Array, Array]:
    out = resized(a)
    return out, fresh(out.shape, "int64", out.device)


@shape("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(a: Arguments) -> Array:
    x, g = a["input"], a["grid"]
    return like(x, (*dims(x)[:2], *dims(g)[1:-1]))


@shape("im2col")
def im2col(a: Arguments) -> Array:
    x: Array = a["self"]
    k, pad, dil, st = (
        _wide(known(a[n]), 2) for n in ("kernel_size", "padding", "dilation", "stride")
    )
    b, c, h, w = sizes(x)
    count = 1
    for i, size in enumerate((h, w)):
        count *= (size + 2 * pad[i] - dil[i] * (k[i] - 1) - 1) // st[i] + 1
    return like(x, (b, c * k[0] * k[1], count))


@shape("pixel_shuffle")
def pixel_shuffle(a: Arguments) -> Array:
    x, r = a["self"], known(a["upscale_factor"])
    *rest, c, h, w = sizes(x)
    return like(x, (*rest, c // (r * r), h * r, w * r))


@shape("pixel_unshuffle")
def pixel_unshuffle(a: Arguments) -> Array:
    x, r = a["self"], known(a["downscale_factor"])
    *rest, c, h, w = sizes(x)
    return like(x, (*rest, c * r * r, h // r, w // r))


@shape(
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)
def attention(a: Arguments) -> tuple[Array, ...]:
    """The memory-efficient kernel writes batch, sequence, heads in this order; the others keep
    the query's order."""
    q, v = a["query"], a["value"]
    b, h, n, _ = sizes(q)
    e = sizes(v)[-1]
    stride: tuple[int, ...] | None = (n * h * e, e, h * e, 1)
    if "attn_bias" not in a or "return_debug_mask" in a:
        stride = dense_stride(fresh((b, h, n, e), q.dtype, q.device, q.stride))
    out = fresh((b, h, n, e), q.dtype, q.device, stride)
    lse = fresh((b, h, n), "float32", q.device)
    seed = fresh((), "int64", "cpu")
    return out, lse, seed, seed, seed, seed, seed, seed, seed


@shape("_cdist_forward")
def cdist(a: Arguments) -> Array:
    x, y = a["x1"], a["x2"]
    return like(x, (*dims(x)[:-1], dims(y)[-2]))


@shape("_cudnn_rnn")
def cudnn_rnn(a: Arguments) -> tuple[Array, ...]:
    x, h = a["input"], a["hx"]
    ways = 2 if a["bidirectional"] else 1
    b, t = dims(x)[:2]
    width = known(a["hidden_size"]) * ways
    out = like(x, (b, t, width))
    if a.get("batch_first") and b is not None and t is not None:  # written time by time
        out = fresh((b, t, width), x.dtype, x.device, (width, b * width, 1))
    empty = fresh((0,), "uint8", x.device)
    return (
        out,
        like(h, h.shape),
        like(h, h.shape) if a.get("cx") is not None else empty,
        empty,
        empty,
    )


@shape("_thnn_fused_gru_cell")
def gru_cell(a: Arguments) -> tuple[Array, Array]:
    h: Array = a["hx"]
    return like(h, h.shape), like(h, (dims(h)[0], None if dims(h)[1] is None else dims(h)[1] * 5))  # type: ignore[operator]


@shape("_thnn_fused_lstm_cell")
def lstm_cell(a: Arguments) -> tuple[Array, Array, Array]:
    c: Array = a["cx"]
    gates: Array = a["input_gates"]
    return like(c, c.shape), like(c, c.shape), like(c, gates.shape)


@shape("_native_multi_head_attention")
def native_multi_head_attention(a: Arguments) -> tuple[Array, Array | None]:
    q, k = a["query"], a["key"]
    b, t, _ = dims(q)
    weights: tuple[Dim, ...] = (b, t, dims(k)[1])
    if a.get("average_attn_weights") is False:
        weights = (b, a["num_head"], t, dims(k)[1])
    return like(q, q.shape), like(q, weights) if a.get("need_weights") else None


@shape("_transformer_encoder_layer_fwd")
def transformer_encoder_layer(a: Arguments) -> Array:
    return like(a["src"], a["src"].shape)


@shape("affine_grid_generator")
def affine_grid(a: Arguments) -> Array:
    n, _, h, w = known(a["size"])
    return like(a["theta"], (n, h, w, 2))


@shape("_trilinear")
def trilinear(a: Arguments) -> Array:
    x, w = a["i1"], a["i2"]
    return like(x, (*dims(x)[:-1], dims(w)[0]))


@shape("col2im")
def col2im(a: Arguments) -> Array:
    x: Array = a["self"]
    (kh, kw), (h, w) = known(a["kernel_size"]), known(a["output_size"])
    *batch, c, _ = dims(x)
    return like(x, (*batch, None if c is None else c // (kh * kw), h, w))


@shape("max_unpool2d")
def max_unpool2d(a: Arguments) -> Array:
    x: Array = a["self"]
    return like(x, (*dims(x)[:-2], *known(a["output_size"])))


@shape("_pdist_forward")
def pdist(a: Arguments) -> Array:
    n = dims(a["self"])[0]
    return like(a["self"], (None if n is None else n * (n - 1) // 2,))


@shape("multi_margin_loss", "multilabel_margin_loss_forward")
def margin_loss(a: Arguments) -> Array | tuple[Array, Array]:
    x: Array = a["self"]
    loss = like(x, dims(x)[:-1] if a["reduction"] == 0 else ())
    return loss if "margin" in a else (loss, like(x, x.shape))
