"""Eigenvalues of general matrices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.calling import Host
from kpredict.eager.copying import copy, read_by_host, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.matrices import batch_of, check_info, column_major, per_matrix, tensors_of
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.eager.summing import truth_of
from kpredict.model import Launch, Op, Target, Tensor

_EIG = (
    "aten/src/ATen/native/BatchLinearAlgebra.cpp, 2.6; cuda/linalg/BatchLinearAlgebraLib.cpp and "
    "cuda/BatchLinearAlgebraEig.cu, main of 2026"
)
_REAL = {"complex64": "float32", "complex128": "float64"}


def _parts(a: Tensor) -> list[Tensor]:
    """The real array, or views of the real and the imaginary part."""
    if not a.is_complex:
        return [a]
    steps = [2 * step for step in a.stride]
    return [view(a, a.shape, steps, at, _REAL[a.dtype]) for at in (0, 1)]


def _ask_if_finite(host: Host, a: Tensor) -> None:
    """`isfinite().all().item()`: |x| is not infinity and x is x, of each part; the host waits."""
    finite = []
    for part in _parts(a):
        size = contiguous(part)
        itself, bounded, both = (contiguous(part, dtype="bool") for _ in range(3))
        host.call("aten.eq.Tensor", itself, self=part, other=part)
        host.call("aten.abs.default", size, self=part)
        host.call("aten.ne.Scalar", bounded, self=size, other=float("inf"))
        finite.append(host.call("aten.mul.Tensor", both, self=itself, other=bounded))
    if len(finite) == 2:
        host.call("aten.bitwise_and_.Tensor", finite[0], self=finite[0], other=finite[1])
    _ask(host, finite[0])


def _ask(host: Host, x: Tensor) -> None:
    answer = contiguous(x, shape=())
    host.add([*truth_of(answer, x, None, host.target), *read_by_host(answer)])


@rule("aten.linalg_eig", "aten._linalg_eigvals", source=_EIG)
def eig(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns, error codes, cuSOLVER `Xgeev` per matrix, the check of errors. With
    vectors the host first asks whether all is finite. Of a real matrix it asks whether all values
    are real, supposed not: values and vectors are then put together as complex numbers."""
    host = Host(target)
    a = op["self"]
    values, *vectors = tensors_of(op)
    if vectors:
        _ask_if_finite(host, a)
    info = contiguous(a, shape=(max(batch_of(a), 1),), dtype="int32")
    host.add(zero(info, because="error codes"))
    if a.numel == 0:
        return [*host.launches, *check_info(info, target)]
    work = column_major(a)
    host.add(copy(work, a, because="cuSOLVER overwrites its input"))
    n = a.shape[-1]
    parts = values if a.is_complex else contiguous(a, shape=(*a.shape[:-2], 2 * n))
    found = vectors if a.is_complex or not vectors else [column_major(a)]
    written = [parts, *found, info]
    host.add(per_matrix("cusolverDnXgeev", a, [work], written, 25 * n**3))
    if not a.is_complex:
        halves = [narrow(parts, parts.ndim - 1, at, n) for at in (0, n)]
        real = contiguous(halves[1], dtype="bool")
        host.call("aten.eq.Scalar", real, self=halves[1], other=0.0)
        _ask(host, real)
        host.add(elementwise([values], halves, because="real and imaginary parts together"))
        if vectors:
            name = "linalg_eig_make_complex_eigenvectors_kernel"
            blocks = -(-a.numel // 256)
            reads = [values, *found]
            host.add([kernel(name, reads, vectors, grid=(blocks, 1, 1), block=(256, 1, 1))])
    host.add(check_info(replace(info, shape=info.shape if a.ndim > 2 else (1,)), target))
    return host.launches
