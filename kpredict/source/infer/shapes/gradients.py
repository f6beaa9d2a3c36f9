"""What the `*_backward` ops return: gradients as large as what they belong to."""

from __future__ import annotations

from kpredict.source.infer.shapes.registry import Arguments, fresh, known, like, shape
from kpredict.source.infer.values import Array


@shape(
    "_softmax_backward_data", "_log_softmax_backward_data", "nll_loss_backward",
    "nll_loss2d_backward", "mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward",
    "binary_cross_entropy_backward", "max_pool2d_with_indices_backward", "avg_pool2d_backward",
    "_adaptive_avg_pool2d_backward", "glu_backward", "log_sigmoid_backward",
)  # fmt: skip
def like_input(a: Arguments) -> Array:
    x: Array = a["self"] if "self" in a else a["output"]
    return like(x, x.shape)


@shape("native_dropout_backward")
def like_gradient(a: Arguments) -> Array:
    x: Array = a["grad_output"]
    return like(x, x.shape)


@shape("_cdist_backward")
def cdist_backward(a: Arguments) -> Array:
    return like(a["x1"], a["x1"].shape)


@shape("select_backward", "slice_backward", "diagonal_backward")
def of_a_view(a: Arguments) -> Array:
    return like(a["grad_output"], known(a["input_sizes"]))


@shape("upsample_nearest2d_backward", "upsample_bilinear2d_backward")
def of_an_upsampling(a: Arguments) -> Array:
    return like(a["grad_output"], known(a["input_size"]))


@shape("embedding_dense_backward")
def of_a_table(a: Arguments) -> Array:
    g: Array = a["grad_output"]
    width = None if g.shape is None else g.shape[-1]
    return like(g, (known(a["num_weights"]), width))


@shape(
    "convolution_backward", "native_layer_norm_backward", "native_group_norm_backward",
    "_fused_rms_norm_backward", "cudnn_batch_norm_backward", "native_batch_norm_backward",
)  # fmt: skip
def of_a_layer(a: Arguments) -> tuple[Array | None, ...]:
    """Input, weight, bias; None where the mask says that it is not wanted."""
    g: Array = a["grad_output"] if "grad_output" in a else a["grad_out"]
    x: Array = a["input"]
    weight = a.get("weight")
    w = weight if isinstance(weight, Array) else None
    bias = None
    if w is not None and w.shape is not None:
        transposed = a.get("transposed") is True and w.shape[1] is not None
        wide = None if g.shape is None or len(g.shape) < 2 else g.shape[1]
        bias = fresh((wide,) if "stride" in a and transposed else w.shape[:1], w.dtype, w.device)
        if "normalized_shape" in a:
            bias = like(w, w.shape)
    found = (like(x, x.shape), None if w is None else like(w, w.shape), bias)
    mask = a.get("output_mask")
    if not isinstance(mask, (tuple, list)):
        return found
    return tuple(f if on else None for f, on in zip(found, mask, strict=False))


@shape("_prelu_kernel_backward")
def of_prelu(a: Arguments) -> tuple[Array, Array]:
    x: Array = a["self"]
    return like(x, x.shape), like(x, x.shape)


@shape(
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
)
def of_attention(a: Arguments) -> tuple[Array | None, ...]:
    """Gradients lie as the arrays do: batch, sequence, heads or as they came."""
    out: list[Array | None] = []
    for name in ("query", "key", "value"):
        x: Array = a[name]
        out.append(fresh(x.shape, x.dtype, x.device, x.stride))
    if "attn_bias" in a and "grad_input_mask" in a:
        bias = a["attn_bias"]
        out.append(like(bias, bias.shape) if isinstance(bias, Array) else None)
    return tuple(out)
