"""Group norm, on contiguous arrays. To 2.13 the composite above it copies other layouts; 2.14 does
so inside, in both directions.

Read: aten/src/ATen/native/cuda/group_norm_kernel.cu of release 2.6.0; launches of 2.13.0, 2.14.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpredict.eager.copying import compact, zero
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous, kernel, workspace
from kpredict.eager.operands import view
from kpredict.eager.registry import rule
from kpredict.eager.summing import HALVES
from kpredict.model import Dim3, Launch, Op, Target, Tensor


@rule("aten.native_group_norm", source="native/cuda/group_norm_kernel.cu; 2.6.0")
def group_norm(op: Op, target: Target) -> Iterable[Launch]:
    """Row moments of each group, then: without weight and bias one elementwise pass; for inputs of
    one element per channel one as well; else a kernel that folds moments and parameters, and the
    elementwise pass."""
    weight, bias = op["weight"], op["bias"]
    n, c, hw, groups = op["N"], op["C"], op["HxW"], op["group"]
    out, mean, rstd = op.outputs
    x, copies = compact(op["input"])
    yield from copies
    if n == 0 or x.numel == 0:
        return
    per_group = c // groups * hw
    block: Dim3 = (32 if per_group < 512 else 512, 1, 1)
    yield kernel("RowwiseMomentsCUDAKernel", [x], [mean, rstd], because="moments of each group",
                 grid=(n * groups, 1, 1), block=block)  # fmt: skip
    moments = [_rows(mean, n * groups), _rows(rstd, n * groups)]
    if hw == 1 and (weight is not None or bias is not None):
        shape = (n, groups, c // groups)
        scales = [_shaped(t, (1, *shape[1:])) for t in (weight, bias) if t is not None]
        stats = [_shaped(t, (n, groups, 1)) for t in (mean, rstd)]
        yield from elementwise(
            [_shaped(out, shape)], [_shaped(x, shape), *stats, *scales], because="normalizes"
        )
    elif weight is None and bias is None:
        shape2 = (n * groups, per_group)
        ins = [_shaped(x, shape2), *moments]
        yield from elementwise([_shaped(out, shape2)], ins, because="normalizes")
    else:
        acc = _accumulates(x)
        a, b = (contiguous(x, shape=(n, c), dtype=acc) for _ in range(2))
        scales = [t for t in (weight, bias) if t is not None]
        yield kernel("ComputeFusedParamsCUDAKernel", [mean, rstd, *scales], [a, b],
                     grid=(-(-n * c // 256), 1, 1), block=(256, 1, 1))  # fmt: skip
        ins = [_shaped(x, (n * c, hw)), _rows(a, n * c), _rows(b, n * c)]
        yield from elementwise(
            [_shaped(out, (n * c, hw))], ins, compute=[x.dtype, acc, acc], because="normalizes"
        )


@rule("aten.native_group_norm_backward", source="native/cuda/group_norm_kernel.cu; 2.6.0")
def group_norm_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Sums per channel; for the input's gradient a product with the weight, a kernel that folds,
    and an elementwise pass; one kernel for the parameters' gradients (another beyond batch 128).
    With one element per channel no sums and no product."""
    n, hw = op["N"], op["HxW"]
    grad, copies = compact(op["grad_out"])
    x, more = compact(op["input"])
    yield from [*copies, *more]
    grads = [t if isinstance(t, Tensor) else None for t in op.outputs]
    parameters = [t for t in grads[1:] if t is not None]
    if n == 0:
        for t in parameters:
            yield from zero(t)
        return
    c = op["C"]
    acc = _accumulates(x)
    if hw == 1:
        sums: list[Tensor] = [grad, x]
    else:
        sums = [workspace(n * c, acc) for _ in range(2)]
        block: Dim3 = (32 if hw < 512 else 512, 1, 1)
        yield kernel("ComputeInternalGradientsCUDAKernel", [grad, x], sums,
                     grid=(n * c, 1, 1), block=block)  # fmt: skip
    if grads[0] is not None:
        yield from _input_gradient(op, grads[0], grad, x, sums, acc)
    if parameters:
        one_d = "1d" if hw == 1 else ""
        kind, grid, block = (
            (1, -(-c // 256), (256, 1, 1)) if n <= 128 else (2, -(-c // 32), (32, 16, 1))
        )
        yield kernel(
            f"GammaBeta{one_d}BackwardCUDAKernel{kind}", [op["mean"], op["rstd"], *sums],
            parameters, grid=(grid, 1, 1), block=block,
        )  # fmt: skip


def _input_gradient(
    op: Op, grad_in: Tensor, grad: Tensor, x: Tensor, sums: list[Tensor], acc: str
) -> Iterator[Launch]:
    weight, mean, rstd = op["weight"], op["mean"], op["rstd"]
    n, c, hw, groups = op["N"], op["C"], op["HxW"], op["group"]
    each = c // groups
    c2, c3 = (contiguous(x, shape=(n, groups), dtype=acc) for _ in range(2))
    scales = [] if weight is None else [weight]
    c1 = contiguous(x, shape=(n, groups, each), dtype=acc)
    if weight is not None and hw > 1:
        ins = [_shaped(rstd, (n, groups, 1)), _shaped(weight, (1, groups, each))]
        yield from elementwise([c1], ins, result=acc, because="rstd times weight")
    one_d = "1d" if hw == 1 else ""
    yield kernel(
        f"Compute{one_d}BackwardFusedParamsCUDAKernel", [mean, rstd, *scales, *sums], [c2, c3],
        grid=(n, groups, 1), block=(32 if each < 512 else 512, 1, 1),
    )  # fmt: skip
    rows = n * groups
    t = x.dtype
    if weight is None:
        shape: tuple[int, ...] = (rows, each * hw)
        ins = [_shaped(grad, shape), _shaped(x, shape), *(_rows(p, rows) for p in (rstd, c2, c3))]
        compute = [t, t, t if hw == 1 else acc, acc, acc]
    elif hw == 1:
        shape = (n, groups, each)
        stats = [_shaped(p, (n, groups, 1)) for p in (rstd, c2, c3)]
        scale = _shaped(weight, (1, groups, each))
        ins = [_shaped(grad, shape), _shaped(x, shape), stats[0], scale, *stats[1:]]
        compute = [t, t, t, t, acc, acc]
    else:
        shape = (rows, each, hw)
        ins = [_shaped(grad, shape), _shaped(x, shape), _shaped(c1, (rows, each, 1))]
        ins += [_shaped(p, (rows, 1, 1)) for p in (c2, c3)]
        compute = [t, t, acc, acc, acc]
    yield from elementwise([_shaped(grad_in, shape)], ins, compute=compute, because="gradient")


def _accumulates(x: Tensor) -> str:
    return "float32" if x.dtype in HALVES else x.dtype


def _shaped(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`t.view(shape)` of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return view(t, shape, tuple(reversed(strides)))


def _rows(t: Tensor, n: int) -> Tensor:
    return _shaped(t, (n, 1))
