"""Sparse COO tensors on the pretended GPU: their metadata, and results that fake tensors lack.

How many elements a conversion finds is data and is supposed. Compressed layouts are not made here.

Private API touched: `torch._subclasses.fake_tensor.in_kernel_invocation_manager` and
`torch.utils._python_dispatch._disable_current_modes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager
from torch.utils._python_dispatch import _disable_current_modes

from kpredict.capture.values import Read, answers
from kpredict.model import Tensor

aten = torch.ops.aten
_COO = torch.sparse_coo


@contextmanager
def _as_kernel(t: torch.Tensor) -> Iterator[None]:
    """Ask a tensor without dispatching: nothing is heard of it, and a real one stays real."""
    if isinstance(t, FakeTensor):
        with in_kernel_invocation_manager(t.fake_mode):
            yield
    else:
        with _disable_current_modes():
            yield


def metadata(t: torch.Tensor, device: str) -> tuple[str, tuple[Tensor, ...]]:
    """The layout of a sparse tensor and its parts: indices (compressed and plain ones), values."""
    layout = str(t.layout).removeprefix("torch.")
    with _as_kernel(t):
        if t.layout is _COO:
            layout += "_coalesced" if t.is_coalesced() else ""
            parts = [t._indices(), t._values()]
        elif t.layout in (torch.sparse_csr, torch.sparse_bsr):
            parts = [t.crow_indices(), t.col_indices(), t.values()]
        else:
            parts = [t.ccol_indices(), t.row_indices(), t.values()]
        return layout, tuple(
            Tensor(tuple(p.shape), tuple(p.stride()), str(p.dtype).removeprefix("torch."), device)
            for p in parts
        )


def _inside(t: torch.Tensor) -> tuple[int, int, bool]:
    """Sparse dims, number of elements, whether sorted and unique."""
    with _as_kernel(t):
        return t.sparse_dim(), int(t._nnz()), t.is_coalesced()


def _coo(like: torch.Tensor, nnz: int, sparse_dim: int, *, coalesced: bool = False) -> torch.Tensor:
    """A fresh COO tensor with the shape and dtype of `like`."""
    indices = torch.empty((sparse_dim, nnz), dtype=torch.int64, device=like.device)
    values = torch.empty((nnz, *like.shape[sparse_dim:]), dtype=like.dtype, device=like.device)
    made = torch.sparse_coo_tensor(indices, values, like.shape, check_invariants=False)
    if coalesced:
        with _as_kernel(made):
            made._coalesced_(True)
    return made


@answers(aten._coalesce.default)
def coalesce(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """All indices are distinct unless stated."""
    (x,) = args
    sparse_dim, n, _ = _inside(x)
    return _coo(x, read.count(n, n, "distinct indices"), sparse_dim, coalesced=True)


@answers(aten._to_sparse.default)
@answers(aten._to_sparse.sparse_dim)
def to_sparse(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Half of the elements are not zero unless stated."""
    x, *given = args
    if x.layout is not torch.strided or kwargs.get("layout") not in (None, _COO):
        return NotImplemented
    sparse_dim = given[0] if given else x.dim() - (kwargs.get("dense_dim") or 0)
    slots = x.shape[:sparse_dim].numel()
    n = read.count(slots // 2, slots, "elements that are not zero")
    return _coo(x, n, sparse_dim, coalesced=True)


@answers(aten.clone.default)
def clone(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """As many elements as before: a fake clone has none."""
    x = args[0]
    if x.layout is not _COO:
        return NotImplemented
    sparse_dim, n, coalesced = _inside(x)
    return _coo(x, n, sparse_dim, coalesced=coalesced)


@answers(aten._to_copy.default)
def to_copy(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """As `clone`, of another dtype or on another device."""
    (x,) = args
    if x.layout is not _COO or kwargs.get("layout") not in (None, _COO):
        return NotImplemented
    sparse_dim, n, coalesced = _inside(x)
    like = torch.empty(
        x.shape, dtype=kwargs.get("dtype") or x.dtype, device=kwargs.get("device") or x.device
    )
    return _coo(like, n, sparse_dim, coalesced=coalesced)


@answers(aten.mul.Tensor)
def scaled(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Times one number: as many elements as before."""
    x, other = args
    number = not isinstance(other, torch.Tensor) or other.dim() == 0
    if not isinstance(x, torch.Tensor) or x.layout is not _COO or not number:
        return NotImplemented
    return clone(read, args[:1], {})


@answers(aten.add.Tensor)
def add(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The elements of both, one after the other; with a dense array a dense result."""
    x, other = args[:2]
    if not isinstance(other, torch.Tensor) or other.layout is not _COO:
        return NotImplemented
    if x.layout is torch.strided:
        return torch.empty_like(x)
    sparse_dim, n, _ = _inside(x)
    return _coo(x, n + _inside(other)[1], sparse_dim)


@answers(aten.mm.default)
@answers(aten.mv.default)
def product(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A sparse matrix times a dense one is dense and row-major."""
    x, other = args
    if x.layout is not _COO or other.layout is not torch.strided:
        return NotImplemented
    return torch.empty((x.shape[0], *other.shape[1:]), dtype=other.dtype, device=other.device)


@answers(aten.addmm.default)
@answers(aten._sparse_addmm.default)
def add_product(read: Read, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """As `product`."""
    return product(read, args[1:3], {})
