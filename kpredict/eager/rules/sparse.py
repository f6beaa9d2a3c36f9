"""Sparse COO tensors: indices and values, sorted and merged by Thrust, multiplied by cuSPARSE.

Read: aten/src/ATen/native/sparse/{SparseTensor,SparseTensorMath}.cpp, sparse/cuda/SparseCUDATensor*
and SparseBlasLegacy.cpp, native/TensorConversions.cpp of release 2.6.0; what Thrust launches as of
2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kpredict.eager import thrust
from kpredict.eager.calling import Host
from kpredict.eager.copying import compact, copy, fill, to
from kpredict.eager.elementwise import elementwise, indexed
from kpredict.eager.launches import contiguous, kernel, library, workspace
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.eager.rules.joining import join
from kpredict.eager.shaping import fresh, permute, squeeze
from kpredict.model import Launch, Op, Target, Tensor

_TENSOR = "native/sparse/SparseTensor.cpp; 2.6.0"
_MATH = "native/sparse/cuda/SparseCUDATensorMath.cu; 2.6.0"
_KEYS_PER_BLOCK = 4


@rule(
    "sparse.aten._sparse_coo_tensor_with_dims_and_tensors",
    "sparse.aten._sparse_coo_tensor_with_dims", "sparse.aten._sparse_coo_tensor_unsafe",
    "sparse.aten._indices", "sparse.aten._values", "sparse.aten.indices", "sparse.aten.values",
    "sparse.aten._nnz", "sparse.aten.is_coalesced", "sparse.aten._coalesced_",
    "sparse.aten.sparse_dim", "sparse.aten.dense_dim", "sparse.aten.detach", "sparse.aten.alias",
    "sparse.aten.crow_indices", "sparse.aten.col_indices", "sparse.aten.zero_",
    source=_TENSOR,
)  # fmt: skip
def parts(op: Op, target: Target) -> Iterable[Launch]:
    """Putting indices and values together and taking them apart launches nothing."""
    return []


@rule("sparse.aten.clone", "sparse.aten._to_copy", source=f"{_TENSOR} clone_sparse")
def clone(op: Op, target: Target) -> Iterator[Launch]:
    """A copy of the indices and one of the values, across devices too."""
    for made, part in zip(op.out.parts, op["self"].parts, strict=True):
        yield from copy(made, part)


@rule("sparse.aten.mul.Tensor", "sparse.aten.mul.Scalar",
      source="native/sparse/SparseTensorMath.cpp; 2.6.0")  # fmt: skip
def scaled(op: Op, target: Target) -> Iterator[Launch]:
    """Times one number: a copy of the indices, a kernel for the values."""
    indices, values = op["self"].parts
    yield from copy(op.out.parts[0], indices)
    yield from elementwise([op.out.parts[1]], [values], because="times a number")


@rule("sparse.aten._coalesce", source="native/sparse/cuda/SparseCUDATensor.cu; 2.6.0")
def coalesce(op: Op, target: Target) -> Iterable[Launch]:
    """Indices become one number each, are sorted and made unique by Thrust, which waits for the
    count; one kernel adds the values up; three small ones per dim make indices again."""
    host = Host(target)
    _coalesced(host, op["self"], op.out.parts)
    return host.launches


def _coalesced(host: Host, x: Tensor, made: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    indices, values = x.parts
    dims, n = indices.shape
    if n < 2:
        for to_part, part in zip(made, x.parts, strict=True):
            host.add(copy(to_part, part))
        return made
    keys = _flattened(host, indices, copied=True)
    order, firsts = workspace(n, "int64"), workspace(n, "int64")
    for numbers in (order, firsts):
        host.add(thrust.transform([], numbers, because="numbers the elements"))
    host.add(thrust.merge_sort(keys, [order]))
    host.add(thrust.unique_by_key(keys, [keys, firsts]))
    kept = made[0].shape[1]
    if made[1].numel:
        values, copies = compact(values)
        host.add(copies)
        width = max(values.numel // n, 1)
        grid = (-(-kept // _KEYS_PER_BLOCK), -(-width // (32 * _KEYS_PER_BLOCK)), 1)
        host.add(
            [kernel("coalesceValuesKernel", [firsts, order, values], [made[1]], grid=grid,
                    block=(32, _KEYS_PER_BLOCK, 1), because="adds up what shares an index")]
        )  # fmt: skip
    if dims > 1:
        left = narrow(keys, 0, 0, kept)
        for d in reversed(range(dims)):
            row = squeeze(narrow(made[0], 0, d, 1), 0)
            host.add(copy(row, left))
            host.add(elementwise([left], [left], because="divided by the size of a dim"))
            host.add(elementwise([row], [row, left], because="the rest is the index"))
    return made


def _flattened(host: Host, indices: Tensor, *, copied: bool) -> Tensor:
    """`at::sparse::flatten_indices`: several indices as one number."""
    dims, n = indices.shape
    keys = workspace(n, "int64")
    if dims == 1:
        if not copied:
            return squeeze(indices, 0)
        host.add(copy(keys, squeeze(indices, 0)))
        return keys
    host.add(indexed(keys, because="numbers the elements"))
    host.add(elementwise([keys], [keys], reads=[keys, indices], because="indices as one number"))
    return keys


@rule("sparse.aten._to_sparse", source="native/TensorConversions.cpp dense_to_sparse; 2.6.0")
def to_sparse(op: Op, target: Target) -> Iterable[Launch]:
    """nonzero, whose count the host reads, a copy of the indices (unique ones when the values are
    slices), a look-up of the values and a copy of them."""
    host, x = Host(target), op["self"]
    indices, values = op.out.parts
    dims, n = indices.shape
    whole = dims == x.ndim
    found = n if whole else min(2 * n * x.numel // max(x.shape[0], 1), x.numel)
    places = fresh((found, x.ndim), "int64")
    places = view(places, (found, x.ndim), (1, found))
    host.call("aten.nonzero.default", places, self=x)
    turned = permute(places, (1, 0))
    if whole:
        host.add(copy(indices, turned))
    else:
        outs = (indices, workspace(0, "int64"), workspace(0, "int64"))
        host.call("aten.unique_dim.default", *outs, self=narrow(turned, 0, 0, dims), dim=1,
                  sorted=True, return_inverse=False, return_counts=False)  # fmt: skip
    rows = tuple(narrow(indices, 0, d, 1) for d in range(dims))
    looked_up = contiguous(values, shape=(1, *values.shape))
    host.call("aten.index.Tensor", looked_up, self=x, indices=rows)
    host.add(copy(values, squeeze(looked_up, 0)))
    return host.launches


@rule("sparse.aten._to_dense", source="native/TensorConversions.cpp sparse_to_dense; 2.6.0")
def to_dense(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then the sparse tensor is added."""
    host, x = Host(target), op["self"]
    if x.layout.startswith("sparse_coo"):
        host.add(fill(op.out, because="zeros"))
        _add_into(host, op.out, x)
    return host.launches


@rule("sparse.aten.add", source=_MATH)
def add(op: Op, target: Target) -> Iterable[Launch]:
    """Two sparse tensors are put one after the other. A sparse one is added to a dense one element
    by element if coalesced, else through index_add."""
    host, x, other = Host(target), op["self"], op["other"]
    if x.parts:
        dims = (1, 0)
        for out, pair, d in zip(op.out.parts, zip(x.parts, other.parts, strict=True), dims,
                                strict=True):  # fmt: skip
            host.add(join(out, list(pair), d))
        return host.launches
    if op.name != "aten.add_.Tensor":
        host.add(copy(op.out, x))
    _add_into(host, op.out, other)
    return host.launches


def _add_into(host: Host, out: Tensor, x: Tensor) -> None:
    indices, values = x.parts
    values, casts = to(values, out.dtype)
    host.add(casts)
    if values.numel == 0:
        return
    if x.layout.endswith("coalesced"):
        name = "sparseElementwiseKernel" + ("Scalar" if values.ndim == 1 else "")
        touched = replace(values, storage=out.storage)
        host.add([kernel(name, [touched, indices, values], [touched])])
        return
    keys = _flattened(host, indices, copied=False)
    rows = out.numel // max(values.numel // values.shape[0], 1)
    table = view(out, (rows, out.numel // rows), (out.numel // rows, 1))
    slices = view(values, (values.shape[0], out.numel // rows), (out.numel // rows, 1))
    host.call("aten.index_add_.default", table, self=table, dim=0, index=keys, source=slices,
              alpha=1)  # fmt: skip


@rule("sparse.aten.addmm", "sparse.aten._sparse_addmm", "sparse.aten.mm", "sparse.aten.mv",
      source="native/sparse/cuda/SparseBlasLegacy.cpp; 2.6.0")  # fmt: skip
def multiply(op: Op, target: Target) -> Iterable[Launch]:
    """Coalesced; row numbers as int32 become row starts, column numbers int32; cuSPARSE multiplies
    into a column-major copy of the result, which is copied back. An addend is copied in first."""
    host, out = Host(target), op.out
    x, other = (op["mat1"], op["mat2"]) if "mat1" in op.args else (op["self"], _right(op))
    if "mat1" not in op.args:
        host.add(fill(out, because="zeros to add to"))
    if not x.layout.endswith("coalesced"):
        n = x.parts[0].shape[1]
        made = (fresh((2, n), "int64"), workspace(n, x.dtype))
        x = replace(x, parts=_coalesced(host, x, made))
    indices, values = x.parts
    n = indices.shape[1]
    starts, columns, rows = (workspace(k, "int32") for k in (x.shape[0] + 1, n, n))
    host.add(copy(rows, squeeze(narrow(indices, 0, 0, 1), 0)))
    host.add([library("cusparseXcoo2csr", [rows], [starts])])
    host.add(copy(columns, squeeze(narrow(indices, 0, 1, 1), 0)))
    if op.get("beta", 0) == 0:
        host.add(fill(out, because="the result starts at 0"))
    else:
        host.add(copy(out, op["self"]))
    matrix = out if out.ndim == 2 else view(out, (out.numel, 1), (1, out.numel))
    turned = permute(matrix, (1, 0))
    into = turned
    if not turned.is_contiguous:
        into = contiguous(turned)
        host.add(copy(into, turned, because="cuSPARSE wants it column-major"))
    if not other.is_contiguous and not (other.ndim == 2 and permute(other, (1, 0)).is_contiguous):
        other, copies = compact(other)
        host.add(copies)
    reads = [starts, columns, values, other, into]
    host.add([library("cusparseSpMM", reads, [into], hi=3)])
    if into is not turned:
        host.add(copy(turned, into, because="back into the result"))
    return host.launches


def _right(op: Op) -> Tensor:
    other: Tensor = op["mat2"] if "mat2" in op.args else op["vec"]
    return other
