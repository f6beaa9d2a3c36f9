# ruff: noqa
# mypy: ignore-errors
"""Linear layers, norms, embeddings of torch.nn.functional."""

import torch


def linear(input, weight, bias=None):
    return torch.linear(input, weight, bias)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    return torch.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    return torch.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Squares averaged over neighbouring channels: one padded 3-d pooling."""
    if not known(input.shape):
        return missing("local_response_norm", input)
    squares = aten.mul(input, input).unsqueeze(1)
    if input.dim() == 3:
        padded = aten.constant_pad_nd(squares, (0, 0, size // 2, (size - 1) // 2))
        mean = aten.avg_pool2d(padded, (size, 1), (1, 1)).squeeze(1)
    else:
        n, c = input.shape[0], input.shape[1]
        flat = squares.view(n, 1, c, input.shape[2], -1)
        padded = aten.constant_pad_nd(flat, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = aten.avg_pool3d(padded, (size, 1, 1), (1, 1, 1)).squeeze(1).view(input.shape)
    return input / aten.pow(aten.add(aten.mul(mean, alpha), k), beta)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    denominator = aten.linalg_vector_norm(input, p, dim, True)
    denominator = aten.clamp_min(denominator, eps)
    return input / aten.expand(denominator, input.shape)


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    if max_norm is not None:
        with torch.no_grad():
            aten.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    return aten.embedding(
        weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse
    )


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    if offsets is None and input.dim() == 2:
        offsets = torch.arange(
            0, input.numel(), input.shape[1], dtype=input.dtype, device=input.device
        )
        input = input.reshape(-1)
    number = 0 if mode == "sum" else 1 if mode == "mean" else 2
    if grad_enabled() and weight.requires_grad:
        return aten._embedding_bag(
            weight,
            input,
            offsets,
            scale_grad_by_freq,
            number,
            sparse,
            per_sample_weights,
            include_last_offset,
            -1,
        )[0]
    return aten._embedding_bag_forward_only(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        number,
        sparse,
        per_sample_weights,
        include_last_offset,
        -1,
    )[0]


def one_hot(tensor, num_classes=-1):
    return torch.one_hot(tensor, num_classes)


def multi_head_attention_forward(*args, **kwargs):
    return missing("multi_head_attention_forward", *args)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    return torch.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return torch.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input, p=2.0):
    return aten._pdist_forward(input.contiguous(), p)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    return torch.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    return torch.rms_norm(input, normalized_shape, weight, eps)


def bilinear(input1, input2, weight, bias=None):
    return torch.bilinear(input1, input2, weight, bias)
