"""How many kernels one GEMM of a closed library is: one, or two when it splits the long sum.

A GEMM fills the GPU with one thread block per tile of the result. With fewer tiles than SMs and a
long K the libraries let several blocks share a tile (split-K): each writes a partial result and a
second kernel adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpredict.model import Target

if TYPE_CHECKING:
    from kpredict.eager.convolving import Convolution


@dataclass(frozen=True, slots=True)
class Split:
    lo: int
    hi: int
    expected: int
    because: str


def kernels_of(m: int, n: int, k: int, batch: int, dtype: str, target: Target) -> Split:
    """The interval for a batch of m by k times k by n."""
    return Split(1, 2, 1, "one kernel per GEMM, two if cuBLAS splits K")


def convolution_kernels(direction: str, conv: Convolution, layout: str, target: Target) -> Split:
    """The interval for one cuDNN convolution graph."""
    return Split(1, 3, 1, "cuDNN may convert layouts around its kernel")
