"""Convolutions PyTorch does itself where cuDNN does not: columns of patches and a GEMM per sample.

Source: aten/src/ATen/native/cuda/ConvolutionMM2d.cu, NaiveDilatedConvolution.cu,
NaiveConvolutionTranspose2d.cu and 3d.cu, 2.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from kpredict.eager.convolving import Convolution
from kpredict.eager.copying import compact, copy, fill, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.gemm import blas_call, gemm_name
from kpredict.eager.launches import contiguous, kernel, workspace
from kpredict.eager.reducing import reduce
from kpredict.eager.rules.joining import join
from kpredict.model import Launch, Target, Tensor


@dataclass(frozen=True, slots=True)
class _Sample:
    """The arrays of one sample: its planes, the columns of patches, and the names of kernels."""

    conv: Convolution
    target: Target

    @property
    def names(self) -> tuple[str, str]:
        """To columns and back."""
        if self.conv.input.ndim == 5:
            return "vol2col_kernel", "vol2im_kernel"
        return "im2col_kernel", "col2im_kernel"

    @property
    def needs_columns(self) -> bool:
        """A 1x1 filter with stride 1 and no padding reads the input as it is (2-D only)."""
        conv = self.conv
        if conv.input.ndim == 5 or (conv.is_dilated and not conv.transposed):
            return True
        ones = (*conv.weight.shape[2:], *conv.stride, *(conv.dilation if conv.transposed else ()))
        return any(n != 1 for n in ones) or any(conv.padding)

    @property
    def columns(self) -> Tensor:
        """Patches by positions; positions are the smaller side's, channels the larger side's."""
        conv = self.conv
        positions = (conv.input if conv.transposed else conv.output).shape[2:]
        return workspace(prod(conv.weight.shape[1:]) * prod(positions), conv.input.dtype)

    def gemm(self, reads: list[Tensor], written: Tensor, kind: str) -> Launch:
        """`kind`: "planes" (columns times weight), "columns" (the reverse) or "weight"."""
        conv = self.conv
        positions = prod((conv.input if conv.transposed else conv.output).shape[2:])
        rows, patch = conv.weight.shape[0], prod(conv.weight.shape[1:])
        m, n, k = {
            "planes": (positions, rows, patch),
            "columns": (positions, patch, rows),
            "weight": (patch, rows, positions),
        }[kind]
        dtype = conv.input.dtype
        return blas_call(
            gemm_name(dtype), m, n, k, reads, [written], self.target, dtype=dtype,
            because="one GEMM per sample",
        )  # fmt: skip

    def to_columns(self, planes: Tensor, columns: Tensor) -> Iterator[Launch]:
        if self.needs_columns:
            yield kernel(self.names[0], [planes], [columns], because="patches as columns")

    def from_columns(self, columns: Tensor, planes: Tensor) -> Launch:
        return kernel(self.names[1], [columns], [planes], because="adds patches up")


def _one(t: Tensor) -> Tensor:
    """One sample of a batch."""
    return replace(t, shape=(1, *t.shape[1:]))


def slow_forward(
    x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor, conv: Convolution, target: Target
) -> Iterator[Launch]:
    """Per sample: patches to columns, a GEMM; transposed: a GEMM, columns to patches, and one more
    GEMM for the bias. Groups one after the other, on copies of their channels."""
    x, copies = compact(x)
    w, more = compact(weight)
    yield from (*copies, *more)
    parts = []
    for _ in range(conv.groups):
        part, pieces = _group(conv, x, w) if conv.groups > 1 else (conv, [])
        yield from pieces
        yield from _forward_of_group(part, bias, target)
        parts.append(part.output)
    if conv.groups > 1:
        yield from join(out, parts, 1)


def _cut(t: Tensor, dim: int, groups: int) -> Tensor:
    """A view of one group's channels."""
    return replace(t, shape=(*t.shape[:dim], t.shape[dim] // groups, *t.shape[dim + 1 :]))


def _share(t: Tensor, dim: int, groups: int) -> Tensor:
    """A fresh array for one group's part of `t`."""
    return contiguous(t, shape=_cut(t, dim, groups).shape)


def _group(conv: Convolution, x: Tensor, w: Tensor) -> tuple[Convolution, list[Launch]]:
    """The convolution of one group, and the copies that cut its channels out."""

    pieces: list[Launch] = []
    fresh: list[Tensor] = []
    for t, dim in ((x, 1), (w, 0)):
        channels, copies = compact(_cut(t, dim, conv.groups))
        pieces += copies
        fresh.append(channels)
    part = replace(
        conv, input=fresh[0], weight=fresh[1], groups=1,
        output=_share(conv.output, 1, conv.groups),
    )  # fmt: skip
    return part, pieces


def _forward_of_group(conv: Convolution, bias: Tensor | None, target: Target) -> Iterator[Launch]:
    sample = _Sample(conv, target)
    x, w, out = conv.input, conv.weight, conv.output
    columns = sample.columns
    if conv.transposed:
        ones = contiguous(out, shape=out.shape[2:])
        if bias is not None:
            yield from fill(ones, because="a row of ones, to add the bias by a GEMM")
        for _ in range(x.shape[0]):
            yield sample.gemm([_one(x), w], columns, "columns")
            yield sample.from_columns(columns, _one(out))
            if bias is not None:
                yield blas_call(
                    gemm_name(x.dtype), prod(out.shape[2:]), out.shape[1], 1, [ones, bias],
                    [_one(out)], target, dtype=x.dtype, because="adds the bias",
                )  # fmt: skip
        return
    per_plane = x.ndim == 5 or conv.is_dilated
    if bias is None:
        yield from zero(out)
    elif not per_plane:
        over = replace(bias, shape=out.shape, stride=(0, bias.stride[0], 0, 0))
        yield from copy(out, over, because="starts from the bias")
    for _ in range(x.shape[0]):
        if bias is not None and per_plane:
            for _ in range(out.shape[1]):
                plane = contiguous(out, shape=out.shape[2:])
                value = replace(bias, shape=(), stride=())
                yield from copy(plane, value, because="each plane starts from its bias")
        yield from sample.to_columns(_one(x), columns)
        source = columns if sample.needs_columns else _one(x)
        yield sample.gemm([source, w, _one(out)], _one(out), "planes")


def slow_backward(
    x: Tensor, grad: Tensor, weight: Tensor, dx: Tensor | None, dw: Tensor | None,
    db: Tensor | None, conv: Convolution, target: Target,
) -> Iterator[Launch]:  # fmt: skip
    """Per sample and gradient one GEMM, with patches to or from columns."""
    x, copies = compact(x)
    w, more = compact(weight)
    grad, last = compact(grad)
    yield from (*copies, *more, *last)
    conv = replace(conv, input=x, weight=w, output=grad)
    for _ in range(conv.groups):
        part, pieces = _group(conv, x, w) if conv.groups > 1 else (conv, [])
        yield from pieces
        yield from _backward_of_group(part, dx, dw, db, target)
    if conv.groups > 1:
        for t, dim in ((dx, 1), (dw, 0), (db, 0)):
            if t is not None:
                yield from join(t, [_share(t, dim, conv.groups)] * conv.groups, dim)


def _backward_of_group(
    conv: Convolution, dx: Tensor | None, dw: Tensor | None, db: Tensor | None, target: Target
) -> Iterator[Launch]:
    sample = _Sample(conv, target)
    x, w, grad, columns = conv.input, conv.weight, conv.output, sample.columns
    batch = range(x.shape[0])
    space = [d for d in range(grad.ndim) if d != 1]
    if conv.transposed:
        if dx is not None:
            for _ in batch:
                yield from sample.to_columns(_one(grad), columns)
                yield sample.gemm([columns, w], _one(dx), "planes")
        for t in (dw, db):
            yield from zero(t) if t is not None else []
        if dw is not None:
            for _ in batch:
                yield from sample.to_columns(_one(grad), columns)
                yield sample.gemm([columns, _one(x), dw], dw, "weight")
        if db is not None:
            yield from reduce([db], grad, space, target, because="the bias' gradient")
        return
    if grad.ndim == 5 or conv.is_dilated:
        for t in (dw, db):
            yield from zero(t) if t is not None else []
        for _ in batch:
            if dx is not None:
                yield sample.gemm([_one(grad), w], columns, "columns")
                yield sample.from_columns(columns, _one(dx))
            if dw is not None:
                yield from sample.to_columns(_one(x), columns)
                yield sample.gemm([columns, _one(grad), dw], dw, "weight")
            if db is not None:
                part = contiguous(db)
                yield from reduce([part], _one(grad), space, target, because="one sample's")
                yield from elementwise([db], [db, part])
        return
    if dx is not None:
        for _ in batch:
            yield sample.gemm([_one(grad), w], columns, "columns")
            yield sample.from_columns(columns, _one(dx))
    if db is not None:
        yield from reduce([db], grad, space, target, because="the bias' gradient")
    if dw is not None:
        yield from zero(dw)
        for _ in batch:
            yield from sample.to_columns(_one(x), columns)
            source = columns if sample.needs_columns else _one(x)
            yield sample.gemm([source, _one(grad), dw], dw, "weight")
