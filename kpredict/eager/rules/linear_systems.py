"""Linear systems, inverses and determinants, from factors and triangles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.calling import Host
from kpredict.eager.copying import copy, expand, fill, like, zero
from kpredict.eager.elementwise import elementwise, indexed
from kpredict.eager.launches import contiguous, sync, workspace
from kpredict.eager.matrices import (
    LETTER,
    batch_of,
    check_info,
    cloned_column_major,
    column_major,
    error_codes,
    factor_lu,
    per_matrix,
    pointers,
    solve_triangle,
    solve_triangular,
    solver,
    tensors_of,
    turned,
    unpack_pivots,
)
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.eager.rules.gathering import scatter_into
from kpredict.eager.shaping import unsqueeze
from kpredict.model import Launch, Op, Target, Tensor

_HOST = "aten/src/ATen/native/BatchLinearAlgebra.cpp, 2.6"
_CUDA = f"{_HOST}; cuda/linalg, 2.6 and what 2.13 was seen to launch"


@rule("aten.cholesky_solve", "aten._cholesky_solve_helper", source=_CUDA)
def cholesky_solve(op: Op, target: Target) -> Iterable[Launch]:
    """Copies of both in columns, an error code, then cuSOLVER `Xpotrs` per matrix; a batch with one
    right-hand side in one call."""
    solution, copies = cloned_column_major(op["self"])
    yield from copies
    info = workspace(1, "int32")
    a = op["input2"] if "input2" in op.args else op["A"]
    if op["self"].shape[-1] == 1 and batch_of(solution) > 1:
        factor, copies = cloned_column_major(a)
        yield from (*copies, *zero(info), *pointers(batch_of(a)), *pointers(batch_of(a)))
        name = f"cusolverDn{LETTER[a.dtype]}potrsBatched"
        yield solver(name, [factor, solution], [solution, info])
        return
    yield from zero(info, because="error code")
    factor, copies = cloned_column_major(a)
    yield from copies
    yield from per_matrix("cusolverDnXpotrs", solution, [factor, solution], [solution, info])


@rule("aten.cholesky_inverse", source=_CUDA)
def cholesky_inverse(op: Op, target: Target) -> Iterable[Launch]:
    """A copy in columns, then the solve with the identity matrix."""
    out, copies = cloned_column_major(op["self"])
    yield from copies
    one = column_major(op["self"])
    diagonal = narrow(one, -1 % one.ndim, 0, 1)
    yield from (*zero(one, because="the identity"), *fill(diagonal, because="the identity"))
    info = workspace(1, "int32")
    yield from zero(info, because="error code")
    yield from per_matrix("cusolverDnXpotrs", out, [out, one], [one, info])
    yield from copy(op.out, one)


def solve_lu(
    host: Host, lu: Tensor, pivots: Tensor, b: Tensor, out: Tensor, *, left: bool, adjoint: bool
) -> None:
    """linalg_lu_solve: by two triangular solves and a permutation of rows, or by `getrs`."""
    if out.numel == 0:
        return
    target = host.target
    if not left:
        adjoint, out, b = not adjoint, turned(out), turned(b)
    if not (b.storage == out.storage >= 0 and b.stride == out.stride):
        host.add(copy(out, b, because="solved in place"))
    if not turned(lu).is_contiguous:
        lu, copies = cloned_column_major(lu)
        host.add(copies)
    n, k, matrices = lu.shape[-1], out.shape[-1], batch_of(out)
    letter = LETTER[lu.dtype]
    way = "triangles"
    if n == k:
        way = "batched" if n <= 16 else "triangles"
    elif n <= 8:
        way = "batched"
    elif n <= 64:
        few = matrices <= 2 and (k <= 64 or adjoint or n <= 32)
        way = "looped" if few else "batched" if k <= 8 else "triangles"
    elif n <= 128 and k <= 2:
        way = "looped" if matrices <= 2 else "batched"
    if way == "batched":
        host.add([*pointers(matrices), *pointers(matrices)])
        host.add([solver(f"cublas{letter}getrsBatched", [lu, pivots, out], [out])])
        return
    if way == "looped":
        info = workspace(1, "int32")
        host.add(zero(info, because="error code"))
        name = f"cusolverDn{letter}getrs"
        host.add(per_matrix(name, out, [lu, pivots, out], [out, info]))
        return
    perm = unpack_pivots(host, pivots, n)
    if not adjoint:
        identity = contiguous(perm, shape=(n,))
        host.add(indexed(identity, because="to invert the permutation"))
        inverse = contiguous(perm)
        host.add(copy(inverse, perm, because="the result starts as a copy"))
        expanded = expand(identity, perm.shape)
        host.add(scatter_into(inverse, -1, perm, expanded, target, adds=False))
        rows = contiguous(out)
        host.add(copy(rows, out, because="rows in another order need a copy"))
        picks = expand(unsqueeze(inverse, inverse.ndim), out.shape)
        host.add(scatter_into(rows, -2, picks, out, target, adds=False))
        host.add(solve_triangular(lu, rows, out))
        host.add(solve_triangle(lu, out))
        return
    host.add(solve_triangle(lu, out))
    host.add(solve_triangle(lu, out))
    rows = like(out)
    host.add(copy(rows, out, because="rows in another order need a copy"))
    picks = expand(unsqueeze(perm, perm.ndim), out.shape)
    host.add(scatter_into(out, -2, picks, rows, target, adds=False))


@rule("aten.linalg_lu_solve", source=_CUDA)
def lu_solve(op: Op, target: Target) -> Iterable[Launch]:
    """The right-hand side is copied; then `getrs` for small systems, else two triangular solves
    around a permutation of the rows made of arange and scatter kernels."""
    host = Host(target)
    solve_lu(host, op["LU"], op["pivots"], op["B"], op.out, left=op["left"], adjoint=op["adjoint"])
    return host.launches


def _solve(
    host: Host, a: Tensor, b: Tensor, result: Tensor, lu: Tensor, pivots: Tensor, info: Tensor,
    *, left: bool,
) -> None:  # fmt: skip
    host.add(factor_lu(a, lu, pivots, info))
    if b.ndim == 1 or b.ndim == lu.ndim - 1:
        b, result = unsqueeze(b, b.ndim), unsqueeze(result, result.ndim)
    solve_lu(host, lu, pivots, b, result, left=left, adjoint=False)


@rule("aten._linalg_solve_ex", source=_CUDA)
def solve(op: Op, target: Target) -> Iterable[Launch]:
    """LU factors, then their solver; the check of errors if asked for."""
    host = Host(target)
    result, lu, pivots, info = tensors_of(op)
    _solve(host, op["A"], op["B"], result, lu, pivots, info, left=op["left"])
    if op["check_errors"]:
        host.add(check_info(info, target))
    return host.launches


@rule("aten.linalg_inv_ex", source=_CUDA)
def inverse(op: Op, target: Target) -> Iterable[Launch]:
    """The result starts as the identity (two fills) and is solved for in place."""
    host = Host(target)
    result, info = tensors_of(op)
    a = op["A"]
    n = a.shape[-1]
    step = sum(result.stride[-2:])
    diagonal = replace(result, shape=(*result.shape[:-2], n), stride=(*result.stride[:-2], step))
    host.add(zero(result, because="the identity"))
    host.add(fill(diagonal, because="the identity"))
    pivots = contiguous(a, shape=a.shape[:-1], dtype="int32")
    lu = column_major(a)
    host.add(factor_lu(a, lu, pivots, info))
    solve_lu(host, lu, pivots, result, result, left=True, adjoint=False)
    if op["check_errors"]:
        host.add(check_info(info, target))
    return host.launches


@rule("aten.linalg_solve_triangular", source=_CUDA)
def triangular(op: Op, target: Target) -> Iterable[Launch]:
    """The right-hand side is copied into the result, which `trsm` solves in place; a matrix that
    is neither row- nor column-major is copied too."""
    a, b, out = op["self"], op["B"], op.out
    if out.numel == 0:
        return []
    shape = out.shape[:-2]
    return solve_triangular(expand(a, (*shape, *a.shape[-2:])), expand(b, out.shape), out)


@rule("aten.triangular_solve", source=_CUDA)
def triangular_solve(op: Op, target: Target) -> Iterable[Launch]:
    """Both are copied in columns, then `trsm`."""
    solution, factor = tensors_of(op)
    yield from copy(solution, expand(op["self"], solution.shape))
    yield from copy(factor, expand(op["A"], factor.shape))
    yield from solve_triangle(factor, solution)


@rule("aten.linalg_ldl_solve", source=_CUDA)
def ldl_solve(op: Op, target: Target) -> Iterable[Launch]:
    """The right-hand side is copied, the pivots are widened, the host waits for the device; then
    cuSOLVER `Xsytrs` per matrix."""
    factor, pivots, b, out = op["LD"], op["pivots"], op["B"], op.out
    if factor.numel == 0 or pivots.numel == 0:
        return
    if not turned(factor).is_contiguous:
        factor, copies = cloned_column_major(factor)
        yield from copies
    yield from copy(out, expand(b, out.shape), because="solved in place")
    swaps = contiguous(pivots, dtype="int64")
    yield from copy(swaps, pivots, because="cuSOLVER wants 64-bit pivots")
    yield sync("the host waits for the device before it asks for the workspace")
    info = workspace(1, "int32")
    yield from zero(info, because="error code")
    yield from per_matrix("cusolverDnXsytrs", out, [factor, swaps, out], [out, info])


def sign_of_permutation(host: Host, pivots: Tensor) -> Tensor:
    """lu_det_P: 1 or -1 as the number of row swaps is even or odd."""
    n = pivots.shape[-1]
    order, swapped = contiguous(pivots, shape=(n,)), contiguous(pivots, dtype="bool")
    count = contiguous(pivots, shape=pivots.shape[:-1], dtype="int64")
    host.add(indexed(order, because="where no row is swapped"))
    host.call("aten.ne.Tensor", swapped, self=order, other=pivots)
    host.call("aten.sum.dim_IntList", count, self=swapped, dim=(-1,), keepdim=False, dtype="int64")
    host.call("aten.fmod_.Scalar", count, self=count, other=2)
    host.call("aten.mul_.Tensor", count, self=count, other=-2)
    host.call("aten.add_.Tensor", count, self=count, other=1, alpha=1)
    return count


def _factor_for_determinant(host: Host, a: Tensor, lu: Tensor, pivots: Tensor) -> Tensor:
    """The factors (of the transpose if that saves the copy into columns); gives their diagonal."""
    source = turned(a) if a.is_contiguous and not a.is_complex else a
    host.add(factor_lu(source, lu, pivots, error_codes(a)))
    n = a.shape[-1]
    return replace(lu, shape=(*lu.shape[:-2], n), stride=(*lu.stride[:-2], sum(lu.stride[-2:])))


@rule("aten._linalg_det", source="aten/src/ATen/native/LinearAlgebra.cpp, 2.6")
def det(op: Op, target: Target) -> Iterable[Launch]:
    """LU factors; the product of the diagonal; the sign of the permutation by six small kernels;
    their product."""
    host = Host(target)
    result, lu, pivots = tensors_of(op)
    diagonal = _factor_for_determinant(host, op["A"], lu, pivots)
    product = contiguous(result)
    host.call("aten.prod.dim_int", product, self=diagonal, dim=-1, keepdim=False, dtype=None)
    sign = sign_of_permutation(host, pivots)
    host.call("aten.mul.Tensor", result, self=sign, other=product)
    return host.launches


@rule("aten._linalg_slogdet", source="aten/src/ATen/native/LinearAlgebra.cpp, 2.6")
def slogdet(op: Op, target: Target) -> Iterable[Launch]:
    """LU factors; the sign from the permutation and the diagonal's signs; the sum of the logarithms
    of the diagonal."""
    host = Host(target)
    sign, logabsdet, lu, pivots = tensors_of(op)
    diagonal = _factor_for_determinant(host, op["A"], lu, pivots)
    parity = sign_of_permutation(host, pivots)
    signs, product = contiguous(diagonal), contiguous(sign)
    host.call("aten.sgn.default", signs, self=diagonal)
    host.call("aten.prod.dim_int", product, self=signs, dim=-1, keepdim=False, dtype=None)
    host.call("aten.mul.Tensor", sign, self=product, other=parity)
    sizes = contiguous(diagonal, dtype=logabsdet.dtype)
    host.call("aten.abs.default", sizes, self=diagonal)
    host.add(elementwise([sizes], [sizes], because="log"))
    host.call("aten.sum.dim_IntList", logabsdet, self=sizes, dim=(-1,), keepdim=False, dtype=None)
    return host.launches
