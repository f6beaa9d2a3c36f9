# ruff: noqa
# mypy: ignore-errors
"""Views, joins and repeats (TensorShape.cpp, TensorTransformations.cpp)."""

import torch


def chunk(input, chunks, dim=0):
    if not known(input.dim()) or not known(input.shape[dim]):
        return several_of(chunks, aten.slice(input, dim, 0, unknown()))
    return aten.split(input, -(-input.shape[dim] // chunks), dim)


def tensor_split(input, indices_or_sections, dim=0):
    if not known(input.dim()) or not known(indices_or_sections):
        return several_of(indices_or_sections, aten.slice(input, dim, 0, unknown()))
    n = input.shape[dim]
    if isinstance(indices_or_sections, int):
        if not known(n):
            return several_of(indices_or_sections, aten.slice(input, dim, 0, unknown()))
        least, more = n // indices_or_sections, n % indices_or_sections
        out, start = [], 0
        for i in range(indices_or_sections):
            end = start + least + (1 if i < more else 0)
            out.append(aten.slice(input, dim, start, end))
            start = end
        return tuple(out)
    ends = [*indices_or_sections, n]
    return tuple(aten.slice(input, dim, a, b) for a, b in zip([0, *ends[:-1]], ends))


def split(input, split_size_or_sections, dim=0):
    if isinstance(split_size_or_sections, int):
        return aten.split(input, split_size_or_sections, dim)
    return aten.split_with_sizes(input, split_size_or_sections, dim)


def narrow(input, dim, start, length):
    if not isinstance(start, int) and isinstance(start, torch.Tensor):
        start = start.item()
    return aten.slice(input, dim, start, start + length)


def movedim(input, source, destination):
    n = input.dim()
    if not known(n):
        return aten.permute(input, unknown())
    src = [source] if isinstance(source, int) else list(source)
    dst = [destination] if isinstance(destination, int) else list(destination)
    src = [s % n for s in src]
    dst = [d % n for d in dst]
    rest = [d for d in range(n) if d not in src]
    order = []
    k = 0
    for i in range(n):
        if i in dst:
            order.append(src[dst.index(i)])
        else:
            order.append(rest[k])
            k = k + 1
    return aten.permute(input, order)


moveaxis = movedim


def swapaxes(input, axis0, axis1):
    return aten.transpose(input, axis0, axis1)


swapdims = swapaxes


def adjoint(input):
    return aten.transpose(input, -2, -1)


def numpy_T(input):
    return input.T


def ravel(input):
    return input.contiguous().view(-1)


def unflatten(input, dim, sizes):
    if not known(input.dim()):
        return aten.view(input, unknown())
    d = dim % input.dim()
    return aten.view(input, (*input.shape[:d], *sizes, *input.shape[d + 1 :]))


def broadcast_to(input, size):
    return aten.expand(input, size)


def broadcast_tensors(*tensors):
    shape = tensors[0].shape
    for t in tensors[1:]:
        shape = _broadcast(shape, t.shape)
    return [aten.expand(t, shape) for t in tensors]


def atleast_1d(input):
    return input.reshape(1) if input.dim() == 0 else input


def atleast_2d(input):
    return (
        input.reshape(1, 1)
        if input.dim() == 0
        else input.unsqueeze(0)
        if input.dim() == 1
        else input
    )


def hstack(tensors):
    return aten.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def vstack(tensors):
    return aten.cat([atleast_2d(t) for t in tensors], 0)


def column_stack(tensors):
    return aten.cat([t.unsqueeze(1) if t.dim() == 1 else t for t in tensors], 1)


def concat(tensors, dim=0):
    return aten.cat(tensors, dim)


concatenate = concat


def meshgrid(*tensors, indexing="ij"):
    if len(tensors) == 1 and not isinstance(tensors[0], torch.Tensor):
        tensors = tensors[0]
    shape = [t.numel() for t in tensors]
    n = len(tensors)
    out = []
    for i, t in enumerate(tensors):
        view = [1] * n
        view[i] = -1
        out.append(aten.expand(aten.view(t, tuple(view)), tuple(shape)))
    if indexing == "xy":
        out = [t.transpose(0, 1) for t in out]
    return out


def repeat_interleave(input, repeats=None, dim=None, output_size=None):
    if isinstance(repeats, int):
        if dim is None:
            input = input.flatten()
            dim = 0
        x = aten.clone(
            aten.expand(
                aten.unsqueeze(input, dim + 1 if dim >= 0 else dim),
                _with(input.shape, dim, repeats),
            ),
            memory_format=torch.contiguous_format,
        )
        return x.flatten(dim, dim + 1) if dim >= 0 else x.flatten(dim - 1, dim)
    sync("repeat_interleave", input)
    if repeats is None:
        return aten.repeat_interleave(input, output_size=output_size)
    indices = aten.repeat_interleave(repeats, output_size=output_size)
    if dim is None:
        return aten.index_select(input.flatten(), 0, indices)
    return aten.index_select(input, dim, indices)


def _with(shape, dim, n):
    d = dim % len(shape)
    return (*shape[: d + 1], n, *shape[d + 1 :])


def tile(input, *dims):
    reps = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return aten.repeat(input, (1,) * (input.dim() - len(reps)) + tuple(reps))


def fliplr(input):
    return aten.flip(input, (1,))


def flipud(input):
    return aten.flip(input, (0,))


def diag(input, diagonal=0):
    if input.dim() == 1:
        return aten.diag_embed(input, diagonal)
    return aten.clone(aten.diagonal(input, diagonal))


def index_copy(input, dim, index, source):
    return aten.index_copy(input, dim, index, source)


def index_put_(input, indices, values, accumulate=False):
    return aten.index_put_(input, indices, values, accumulate)


def one_hot(input, num_classes=-1):
    if known(num_classes) and num_classes == -1:
        num_classes = int(aten.max(input).item()) + 1
    out = torch.zeros((*input.shape, num_classes), dtype=torch.int64, device=input.device)
    return aten.scatter_(out, -1, input.unsqueeze(-1), 1)


def vander(x, N=None, increasing=False):
    """TensorFactories.cpp linalg_vander: ones beside repeated values, multiplied up."""
    n = x.shape[0] if N is None else N
    out = torch.empty((x.shape[0], n), dtype=x.dtype, device=x.device)
    aten.fill_(out[:, :1], 1)
    rest = out[:, 1:]
    aten.copy_(rest, x.unsqueeze(-1))
    rest = aten.cumprod(aten.clone(rest, memory_format=torch.contiguous_format), -1)
    aten.copy_(out[:, 1:], rest)
    return out if increasing else aten.flip(out, (1,))


def hsplit(input, indices_or_sections):
    return tensor_split(input, indices_or_sections, 0 if input.dim() == 1 else 1)


def vsplit(input, indices_or_sections):
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input, indices_or_sections):
    return tensor_split(input, indices_or_sections, 2)


def atleast_3d(input):
    if input.dim() == 0:
        return input.reshape(1, 1, 1)
    if input.dim() == 1:
        return input.unsqueeze(0).unsqueeze(-1)
    return input.unsqueeze(-1) if input.dim() == 2 else input


def dstack(tensors):
    return aten.cat([atleast_3d(t) for t in tensors], 2)


row_stack = vstack


def cartesian_prod(*tensors):
    if len(tensors) == 1:
        return tensors[0]
    return aten.stack([t.flatten() for t in meshgrid(*tensors)], 1)


def block_diag(*tensors):
    tensors = [atleast_2d(t) for t in tensors]
    rows = sum([t.shape[0] for t in tensors])
    columns = sum([t.shape[1] for t in tensors])
    out = torch.zeros((rows, columns), dtype=tensors[0].dtype, device=tensors[0].device)
    for t in tensors:
        aten.copy_(out[: t.shape[0], : t.shape[1]], t)
    return out


def fill_diagonal_(input, fill_value, wrap=False):
    aten.fill_(aten.diagonal(input), fill_value)
    return input


def diagflat(input, offset=0):
    return aten.diag_embed(input.contiguous().view(-1), offset)


def sum_to_size(input, *size):
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    extra = input.dim() - len(size)
    dims = list(range(extra)) + [
        extra + i for i, n in enumerate(size) if n == 1 and input.shape[extra + i] != 1
    ]
    return aten.sum(input, dims, True).view(tuple(size)) if dims else input.view(tuple(size))


def take_along_dim(input, indices, dim=None):
    if dim is None:
        return aten.gather(input.flatten(), 0, indices.flatten())
    return aten.gather(input, dim, aten.remainder(indices, input.shape[dim]))


def circular_pad(input, pad):
    """PadNd.cpp: the middle, then two edges for each padded dim, copied into a new array."""
    shape = list(input.shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] = shape[-1 - i] + pad[2 * i] + pad[2 * i + 1]
    out = torch.empty(tuple(shape), dtype=input.dtype, device=input.device)
    aten.copy_(_middle(out, pad), input)
    for i in range(len(pad) // 2):
        for side in range(2):
            width = pad[2 * i + side]
            if width > 0:
                aten.copy_(
                    aten.slice(out, -1 - i, 0, width), aten.slice(out, -1 - i, width, 2 * width)
                )
    return out


def _middle(out, pad):
    for i in range(len(pad) // 2):
        size = out.shape[-1 - i]
        out = aten.slice(out, -1 - i, pad[2 * i], size - pad[2 * i + 1])
    return out


def pad_constant(input, pad, value):
    return aten.constant_pad_nd(input, pad, value)


def pixel_shuffle(input, upscale_factor):
    return aten.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input, downscale_factor):
    return aten.pixel_unshuffle(input, downscale_factor)


def to_dense(input):
    return missing("to_dense", input)


def new_tensor(input, data, dtype=None, device=None):
    return torch.tensor(data, dtype=input.dtype if dtype is None else dtype, device=input.device)


def type_as(input, other):
    return input.to(other.dtype)


def tensor_float(input):
    return input.float()


def masked_fill(input, mask, value):
    return aten.masked_fill(input, mask, value)
