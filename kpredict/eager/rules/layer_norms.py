"""Layer norm and RMS norm: one vectorized kernel per direction, or two; the parameters' gradients.

Read: aten/src/ATen/native/cuda/layer_norm_kernel.cu; 2.6.0, and main of 2026 for the gradients of
the parameters and for RMS norm, as 2.13.0 launches them. Release 2.6 takes other gradient kernels
(GammaBetaBackwardSimpleCUDAKernel below 128 rows, two more above) and none for RMS norm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from kpredict.eager.copying import compact, zero
from kpredict.eager.launches import called, contiguous, kernel
from kpredict.eager.registry import rule
from kpredict.eager.summing import sum_to
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_VECTOR = 4
_VECTORIZED = ("float32", "float16", "bfloat16")
_COLUMNS = 32
_TALL = 64 * 1024


@rule(
    "aten.native_layer_norm", "aten._fused_rms_norm",
    source="native/cuda/layer_norm_kernel.cu LayerNormKernelImplInternal; 2.6.0, main of 2026",
)  # fmt: skip
def layer_norm(op: Op, target: Target) -> Iterable[Launch]:
    """Input and parameters are made contiguous. One kernel for float and half types when the row is
    a multiple of 4 (to 2^24) and all arrays are aligned to 4 elements; else row moments and a
    forward kernel: two."""
    x: Tensor = op["input"]
    arrays, copies = _compacted(x, op["weight"], op.get("bias"))
    yield from copies
    rows, size = _rows(op, x)
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    if rows == 0 or size == 0:
        return
    out, stats = outs[0], outs[1:]
    if size <= 2**24 and _vectorizes(size, x.dtype, [*arrays, out]):
        yield kernel(
            "vectorized_layer_norm_kernel", arrays, outs, because="rows are whole vectors of 4",
            grid=(rows, 1, 1), block=(32, 4, 1),
        )  # fmt: skip
        return
    why = "rows are no whole vectors of 4, or arrays not aligned"
    yield kernel("RowwiseMomentsCUDAKernel", arrays[:1], stats, because=why,
                 grid=(rows, 1, 1), block=(512, 1, 1))  # fmt: skip
    yield kernel("LayerNormForwardCUDAKernel", [*arrays, *stats], [out], because=why,
                 grid=(rows, 1, 1), block=(256, 1, 1))  # fmt: skip


@rule(
    "aten.native_layer_norm_backward", "aten._fused_rms_norm_backward",
    source="native/cuda/layer_norm_kernel.cu LayerNormBackwardKernelImplInternal; main of 2026",
)  # fmt: skip
def layer_norm_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for the input's gradient (vectorized under the forward's conditions) and one for
    the parameters'. With more than 65536 rows, too narrow to fill half of the SMs with 32 columns
    each, that one writes partial sums, and each parameter's are summed by a reduction. Without
    rows the parameters' are filled with 0."""
    grad, x, weight = op["grad_out"], op["input"], op["weight"]
    rms = "rms" in op.name
    rows, size = _rows(op, x)
    arrays, copies = _compacted(x, weight, op.get("bias"), grad)
    outs = list(op.outputs)
    if rows == 0:
        for t in outs[1:]:
            yield from zero(t) if isinstance(t, Tensor) else ()
    if rows == 0 or size == 0:
        return
    yield from copies
    source, gradient = arrays[0], arrays[-1]
    stats = [t for t in (op.get("mean"), op["rstd"]) if t is not None]
    if isinstance(outs[0], Tensor):
        scales = [arrays[1]] if weight is not None else []
        reads = [gradient, source, *stats, *scales]
        whole = _vectorizes(size, x.dtype, [gradient, source, *scales, outs[0]])
        name = (
            "layer_norm_grad_input_kernel_vectorized" if whole else "layer_norm_grad_input_kernel"
        )
        yield kernel(name, reads, [outs[0]], grid=(rows, 1, 1), block=(128, 1, 1))
    parameters = [t for t in outs[1 : 2 if rms else 3] if isinstance(t, Tensor)]
    if parameters:
        yield from _parameters([gradient, source, *stats], parameters, rows, size, target)


def _parameters(
    reads: list[Tensor], grads: list[Tensor], rows: int, size: int, target: Target
) -> Iterator[Launch]:
    name = "GammaBetaBackwardCUDAKernelTemplate"
    columns = -(-size // _COLUMNS)
    if rows > _TALL and size // _COLUMNS < target.sms // 2:
        parts = min(_TALL // 2 // columns, -(-rows // 32))
        partial = [contiguous(t, shape=(parts, size)) for t in grads]
        yield kernel(name, reads, partial, because=f"{rows} rows, summed in {parts} parts",
                     grid=(columns, parts, 1), block=(_COLUMNS, 1, 1))  # fmt: skip
        for grad, part in zip(grads, partial, strict=True):
            whole = contiguous(grad, shape=(size,))
            yield from called("aten.sum.dim_IntList", sum_to(whole, part, 0, target))
        return
    block: Dim3 = (_COLUMNS, _threads_down(rows), 1)
    yield kernel(name, reads, grads, grid=(columns, 1, 1), block=block)


def _threads_down(rows: int) -> int:
    """Threads along the rows: more for taller inputs."""
    return 1 if rows < 64 else 8 if rows < 128 else 16 if rows < 256 else 32


def _vectorizes(size: int, dtype: str, arrays: list[Tensor]) -> bool:
    aligned = all(t.offset % _VECTOR == 0 for t in arrays)
    return dtype in _VECTORIZED and size % _VECTOR == 0 and aligned


def _rows(op: Op, x: Tensor) -> tuple[int, int]:
    """How many rows are normalized and how long they are."""
    n = len(op["normalized_shape"])
    return prod(x.shape[: x.ndim - n]), prod(x.shape[x.ndim - n :])


def _compacted(*arrays: Tensor | None) -> tuple[list[Tensor], list[Launch]]:
    found: list[Tensor] = []
    copies: list[Launch] = []
    for t in arrays:
        if t is not None:
            dense, launches = compact(t)
            found.append(dense)
            copies += launches
    return found, copies
