"""An array, as its metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ITEMSIZE: Mapping[str, int] = {
    "bool": 1, "uint8": 1, "int8": 1, "quint8": 1, "qint8": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
    "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "qint32": 4, "complex32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes per element, by the name torch prints without its `torch.` prefix."""


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous array, in elements; a size of 0 counts as 1."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Tensor:
    """The metadata of one array: everything a launch decision can depend on, no data.

    `shape` and `stride` count elements; `offset` is the storage offset in elements; `storage` is
    an id that two tensors share exactly when they share memory. `device` is "cuda" or "cpu".
    `lazy` says "conj" or "neg" when the values are to be read conjugated or negated. A sparse
    tensor has no strides but `parts`, its indices and values; its `layout` is "sparse_coo",
    "sparse_coo_coalesced", "sparse_csr" …
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str = "cuda"
    storage: int = -1
    offset: int = 0
    lazy: str = ""
    layout: str = "strided"
    parts: tuple[Tensor, ...] = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def is_cuda(self) -> bool:
        return self.device == "cuda"

    @property
    def is_floating_point(self) -> bool:
        return self.dtype.startswith(("float", "bfloat"))

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")

    @property
    def nbytes(self) -> int:
        """Bytes of the distinct elements it touches: a dimension with stride 0 counts once."""
        if self.parts:
            return sum(t.nbytes for t in self.parts)
        n = math.prod(s for s, st in zip(self.shape, self.stride, strict=True) if st != 0 or s == 0)
        return n * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Row-major and dense, as `torch.Tensor.is_contiguous()` says (size-1 dims are free)."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size == 0:
                return True
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True

    def is_contiguous_in(self, order: tuple[int, ...]) -> bool:
        """Dense with the dims laid out as `order` says, outermost first."""
        expected = 1
        for d in reversed(order):
            if self.shape[d] != 1:
                if self.stride[d] != expected:
                    return False
                expected *= self.shape[d]
        return True

    @property
    def is_channels_last(self) -> bool:
        """NHWC (4-D) or NDHWC (5-D) dense layout."""
        if self.ndim not in (4, 5):
            return False
        return self.is_contiguous_in((0, *range(2, self.ndim), 1))

    @property
    def is_dense(self) -> bool:
        """Non-overlapping and dense: some permutation of the dims is contiguous."""
        expected = 1
        dims = [(st, s) for s, st in zip(self.shape, self.stride, strict=True) if s != 1]
        if any(s == 0 for _, s in dims):
            return True
        for stride, size in sorted(dims):
            if stride != expected:
                return False
            expected *= size
        return True

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"
