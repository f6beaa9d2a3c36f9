# ruff: noqa
# mypy: ignore-errors
"""Gradients of matrix products, convolution, attention, normalization and losses."""

import torch


def _first(grad, first, second):
    """mm_mat1_backward: in the layout of the first factor."""
    if first.stride()[0] == 1 and first.stride()[1] == first.shape[0]:
        return aten.mm(second, grad.t()).t()
    return aten.mm(grad, second.t())


def _second(grad, first, second):
    if second.stride()[0] == 1 and second.stride()[1] == second.shape[0]:
        return aten.mm(grad.t(), first).t()
    return aten.mm(first.t(), grad)


def mm(grad, needs, self, mat2, **_):
    out = {}
    if "self" in needs:
        out["self"] = _first(grad, self, mat2)
    if "mat2" in needs:
        out["mat2"] = _second(grad, self, mat2)
    return out


def addmm(grad, needs, mat1, mat2, beta=1, alpha=1, **_):
    out = {"self": grad}
    if "mat1" in needs:
        out["mat1"] = _first(grad, mat1, mat2)
    if "mat2" in needs:
        out["mat2"] = _second(grad, mat1, mat2)
    return out


def bmm(grad, needs, self, mat2, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.bmm(grad, mat2.transpose(1, 2))
    if "mat2" in needs:
        out["mat2"] = aten.bmm(self.transpose(1, 2), grad)
    return out


def baddbmm(grad, needs, batch1, batch2, **_):
    out = {"self": grad}
    if "batch1" in needs:
        out["batch1"] = aten.bmm(grad, batch2.transpose(1, 2))
    if "batch2" in needs:
        out["batch2"] = aten.bmm(batch1.transpose(1, 2), grad)
    return out


def mv(grad, needs, self, vec, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.mul(grad.unsqueeze(1), vec)
    if "vec" in needs:
        out["vec"] = aten.mv(self.t(), grad)
    return out


def dot(grad, needs, self, tensor, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.mul(grad, tensor)
    if "tensor" in needs:
        out["tensor"] = aten.mul(grad, self)
    return out


def convolution(
    grad,
    needs,
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    **_,
):
    sizes = None if bias is None else bias.shape
    mask = ("input" in needs, "weight" in needs, "bias" in needs)
    a, b, c = aten.convolution_backward(
        grad,
        input,
        weight,
        sizes,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        mask,
    )
    return {"input": a, "weight": b, "bias": c}


def native_layer_norm(grad, needs, input, normalized_shape, weight, bias, result, **_):
    mask = ("input" in needs, "weight" in needs, "bias" in needs)
    a, b, c = aten.native_layer_norm_backward(
        grad, input, normalized_shape, result[1], result[2], weight, bias, mask
    )
    return {"input": a, "weight": b, "bias": c}


def native_group_norm(grad, needs, input, weight, bias, N, C, HxW, group, result, **_):
    mask = ("input" in needs, "weight" in needs, "bias" in needs)
    a, b, c = aten.native_group_norm_backward(
        grad, input, result[1], result[2], weight, N, C, HxW, group, mask
    )
    return {"input": a, "weight": b, "bias": c}


def _fused_rms_norm(grad, needs, input, normalized_shape, weight, result, **_):
    mask = ("input" in needs, "weight" in needs)
    a, b = aten._fused_rms_norm_backward(grad, input, normalized_shape, result[1], weight, mask)
    return {"input": a, "weight": b}


def cudnn_batch_norm(
    grad, needs, input, weight, bias, running_mean, running_var, training, epsilon, result, **_
):
    if training:
        a, b, c = aten.cudnn_batch_norm_backward(
            input, grad, weight, running_mean, running_var, result[1], result[2], epsilon, result[3]
        )
    else:
        a, b, c = aten.native_batch_norm_backward(
            grad,
            input,
            weight,
            running_mean,
            running_var,
            result[1],
            result[2],
            False,
            epsilon,
            ("input" in needs, "weight" in needs, "bias" in needs),
        )
    return {"input": a, "weight": b, "bias": c}


def native_batch_norm(
    grad, needs, input, weight, bias, running_mean, running_var, training, eps, result, **_
):
    a, b, c = aten.native_batch_norm_backward(
        grad,
        input,
        weight,
        running_mean,
        running_var,
        result[1],
        result[2],
        training,
        eps,
        ("input" in needs, "weight" in needs, "bias" in needs),
    )
    return {"input": a, "weight": b, "bias": c}


def native_dropout(grad, p, result, **_):
    return {"input": aten.native_dropout_backward(grad, result[1], 1 / (1 - p))}


def _softmax(grad, self, dim, result, **_):
    return {"self": aten._softmax_backward_data(grad, result, dim, self.dtype)}


def _log_softmax(grad, self, dim, result, **_):
    return {"self": aten._log_softmax_backward_data(grad, result, dim, self.dtype)}


_safe_softmax = _softmax


def nll_loss_forward(grad, self, target, weight, reduction, ignore_index, result, **_):
    return {
        "self": aten.nll_loss_backward(
            grad, self, target, weight, reduction, ignore_index, result[1]
        )
    }


def nll_loss2d_forward(grad, self, target, weight, reduction, ignore_index, result, **_):
    return {
        "self": aten.nll_loss2d_backward(
            grad, self, target, weight, reduction, ignore_index, result[1]
        )
    }


def mse_loss(grad, needs, self, target, reduction=1, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.mse_loss_backward(grad, self, target, reduction)
    if "target" in needs:
        out["target"] = aten.mse_loss_backward(grad, target, self, reduction)
    return out


def smooth_l1_loss(grad, needs, self, target, reduction=1, beta=1.0, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.smooth_l1_loss_backward(grad, self, target, reduction, beta)
    if "target" in needs:
        out["target"] = aten.smooth_l1_loss_backward(grad, target, self, reduction, beta)
    return out


def huber_loss(grad, needs, self, target, reduction=1, delta=1.0, **_):
    out = {}
    if "self" in needs:
        out["self"] = aten.huber_loss_backward(grad, self, target, reduction, delta)
    if "target" in needs:
        out["target"] = aten.huber_loss_backward(grad, target, self, reduction, delta)
    return out


def binary_cross_entropy(grad, self, target, weight=None, reduction=1, **_):
    return {"self": aten.binary_cross_entropy_backward(grad, self, target, weight, reduction)}


def binary_cross_entropy_with_logits(
    grad, needs, self, target, weight=None, pos_weight=None, reduction=1, **_
):
    if pos_weight is not None:
        t = aten.mul(target, pos_weight)
        x = aten.mul_(
            aten.sub_(aten.mul(aten.sub(aten.add(t, 1), target), aten.sigmoid(self)), t), grad
        )
    else:
        x = aten.mul_(aten.sub_(aten.sigmoid(self), target), grad)
    if weight is not None:
        x = aten.mul_(x, weight)
    if reduction == 1:
        x = aten.div_(x, self.numel())
    return {"self": x}


def embedding(grad, weight, indices, padding_idx=-1, scale_grad_by_freq=False, **_):
    return {
        "weight": aten.embedding_dense_backward(
            grad, indices, weight.shape[0], padding_idx, scale_grad_by_freq
        )
    }


def _scaled_dot_product_efficient_attention(
    grad, needs, query, key, value, attn_bias, dropout_p=0.0, is_causal=False, result=None, **_
):
    mask = ("query" in needs, "key" in needs, "value" in needs, "attn_bias" in needs)
    a, b, c, d = aten._scaled_dot_product_efficient_attention_backward(
        grad,
        query,
        key,
        value,
        attn_bias,
        result[0],
        result[1],
        result[2],
        result[3],
        dropout_p,
        mask,
        is_causal,
    )
    return {"query": a, "key": b, "value": c, "attn_bias": d}


def _scaled_dot_product_flash_attention(
    grad, needs, query, key, value, dropout_p=0.0, is_causal=False, result=None, **_
):
    a, b, c = aten._scaled_dot_product_flash_attention_backward(
        grad,
        query,
        key,
        value,
        result[0],
        result[1],
        result[2],
        result[3],
        query.shape[2],
        key.shape[2],
        dropout_p,
        is_causal,
        result[6],
        result[7],
    )
    return {"query": a, "key": b, "value": c}


def _scaled_dot_product_cudnn_attention(
    grad, needs, query, key, value, attn_bias, dropout_p=0.0, is_causal=False, result=None, **_
):
    a, b, c = aten._scaled_dot_product_cudnn_attention_backward(
        grad,
        query,
        key,
        value,
        result[0],
        result[1],
        result[6],
        result[7],
        attn_bias,
        None,
        None,
        query.shape[2],
        key.shape[2],
        dropout_p,
        is_causal,
    )
    return {"query": a, "key": b, "value": c}


def max_pool2d_with_indices(
    grad, self, kernel_size, stride, padding, dilation, ceil_mode, result, **_
):
    return {
        "self": aten.max_pool2d_with_indices_backward(
            grad, self, kernel_size, stride, padding, dilation, ceil_mode, result[1]
        )
    }


def avg_pool2d(
    grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, **_
):
    return {
        "self": aten.avg_pool2d_backward(
            grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    }


def _adaptive_avg_pool2d(grad, self, **_):
    return {"self": aten._adaptive_avg_pool2d_backward(grad, self)}


def upsample_nearest2d(grad, self, output_size, scales_h=None, scales_w=None, **_):
    return {
        "self": aten.upsample_nearest2d_backward(grad, output_size, self.shape, scales_h, scales_w)
    }


def upsample_bilinear2d(grad, self, output_size, align_corners, scales_h=None, scales_w=None, **_):
    return {
        "self": aten.upsample_bilinear2d_backward(
            grad, output_size, self.shape, align_corners, scales_h, scales_w
        )
    }


def _euclidean_dist(grad, needs, x1, x2, result, **_):
    """_euclidean_dist_backward."""
    ratio = aten.div(grad, result)
    ratio = aten.masked_fill_(ratio, aten.eq(result, 0), 0)
    out = {}
    if "x1" in needs:
        whole = aten.mul(x1, aten.sum(ratio, (-1,), True))
        out["x1"] = aten.sub(whole, torch.matmul(ratio, x2))
    if "x2" in needs:
        whole = aten.mul(x2, aten.sum(ratio, (-2,), False).unsqueeze(-1))
        out["x2"] = aten.sub(whole, torch.matmul(ratio.mT, x1))
    return out
