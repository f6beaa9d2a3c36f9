"""Weight norm over the first or the last dim: one kernel each way."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.launches import kernel
from kpredict.eager.registry import rule
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_WEIGHT_NORM = "aten/src/ATen/native/cuda/WeightNorm.cu, 2.6"


def _kernel(op: Op, v: Tensor, way: str) -> Launch:
    grid: Dim3 = (v.shape[0], 1, 1)
    block: Dim3 = (256, 1, 1)
    if op["dim"] == 0:
        name, why = f"weight_norm_{way}_first_dim_kernel", "one block per row"
    else:
        name, why = f"weight_norm_{way}_last_dim_kernel", "one block per 16 columns"
        grid, block = (-(-v.shape[-1] // 16), 1, 1), (16, 64, 1)
    outputs = [t for t in op.outputs if isinstance(t, Tensor)]
    return kernel(name, op.inputs, outputs, grid=grid, block=block, because=why)


@rule("aten._weight_norm_interface", source=_WEIGHT_NORM)
def weight_norm(op: Op, target: Target) -> Iterable[Launch]:
    """Norms and the scaled weight at once."""
    return [_kernel(op, op["v"], "fwd")]


@rule("aten._weight_norm_interface_backward", source=_WEIGHT_NORM)
def weight_norm_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Both gradients at once."""
    return [_kernel(op, op["saved_v"], "bwd")]
