"""How float32 products are made at this moment: exactly, or from TF32 on the matrix units.

The user's code chooses, by `torch.set_float32_matmul_precision`, `torch.backends.*.allow_tf32` or
`fp32_precision`, for cuBLAS and for cuDNN's convolutions and recurrences apart. cuDNN takes TF32
unless told otherwise, cuBLAS does not.

Private API touched: `torch._C._get_fp32_precision_getter`.
"""

from __future__ import annotations

from functools import cache

import torch
from torch._ops import OpOverload


def precision_of(func: OpOverload) -> str:
    """ "tf32" or "ieee": what a library call of this op does with float32, as set just now."""
    kind = _kind(func)
    return "tf32" if torch._C._get_fp32_precision_getter("cuda", kind) == "tf32" else "ieee"


@cache
def _kind(func: OpOverload) -> str:
    """Whose setting it heeds; an op that multiplies nothing has no use for the answer."""
    name = func.name()
    return "conv" if "convolution" in name else "rnn" if "cudnn_rnn" in name else "matmul"
