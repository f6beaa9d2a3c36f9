"""How many kernels one call of a closed library is: an interval, and the likely number.

cuBLAS and cuDNN choose inside. The rules here say what they can choose and why; the bounds come
from 100,000 measured calls on seven kinds of GPU (fp32, torch 2.1) and from profiler traces:
`benchmarks/library_calls.py` prints how many fall inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from kpredict.model import Target

if TYPE_CHECKING:
    from kpredict.eager.convolving import Convolution

_MOST_BATCH = 65535  # matrices in the third dim of a grid
_TILE = 128  # rows and columns of the largest common tile
_WAVES = 2  # tiles per SM up to which some GPU was seen to split
_SHORT = 128  # a sum of fewer products was never split
_HUGE = 1 << 21  # rows from which calls of several kernels were seen
_WHOLE = "one kernel: the tiles fill the GPU, or the sums are too short to share"


@dataclass(frozen=True, slots=True)
class Split:
    lo: int
    hi: int
    expected: int
    because: str


def kernels_of(m: int, n: int, k: int, batch: int, dtype: str, target: Target) -> Split:
    """The interval for a batch of m by k times k by n.

    A GEMM runs one block per tile of the result. With fewer tiles than the SMs take and a long K,
    several blocks may share a tile (split-K): each writes a part of the sum, and a second kernel
    adds the parts up. A batch is more tiles; beyond 65,535 matrices it is several launches.
    """
    tensor_cores = dtype in ("float16", "bfloat16", "tf32", "int8") or dtype.startswith("float8")
    return gemm_kernels(m, n, k, batch, target, tensor_cores=tensor_cores)


def gemm_kernels(
    m: int, n: int, k: int, batch: int, target: Target, *, tensor_cores: bool
) -> Split:
    """As `kernels_of`. Tensor cores work on larger tiles, so fewer fill the GPU."""
    if batch > _MOST_BATCH:
        parts = -(-batch // _MOST_BATCH)
        return Split(parts, parts + 1, parts, "a grid holds 65,535 matrices; the rest follow")
    if tensor_cores and max(m, n) >= _HUGE:
        return Split(1, 6, 4, "a result of millions of rows is taken in parts")
    tiles = batch * -(-m // _TILE) * -(-n // _TILE)
    if k < _SHORT or tiles > _WAVES * target.sms or (batch > 1 and tiles > target.sms // 4):
        return Split(1, 1, 1, _WHOLE)
    expected = 2 if _pays(m, n, k, batch, target.sms, tensor_cores) else 1
    return Split(1, 2, expected, "two kernels if cuBLAS splits the sums over K and adds the parts")


def _pays(m: int, n: int, k: int, batch: int, sms: int, tensor_cores: bool) -> bool:
    """Sharing a tile among s blocks saves k*(1 - 1/s) steps; adding up costs about a constant."""
    tile, cost = (128, 380) if tensor_cores else (32, 100)
    if batch > 1 or min(m, n) == 1:  # products with vectors have kernels of their own
        return False
    share = sms // (-(-m // tile) * -(-n // tile))
    return share > 1 and k * (1 - 1 / share) > cost


def convolution_kernels(direction: str, conv: Convolution, layout: str, target: Target) -> Split:
    """The interval for one cuDNN convolution graph; `direction` is "forward",
    "input gradient" or "weight gradient"."""
    return graph_kernels(
        direction, filter_size=prod(conv.weight.shape[2:]), channels=conv.input.shape[1],
        filters=conv.output.shape[1], image=prod(conv.input.shape[2:]), groups=conv.groups,
        dtype=conv.input.dtype, layout=layout, target=target,
    )  # fmt: skip


def graph_kernels(
    direction: str,
    *,
    filter_size: int,
    channels: int,
    filters: int,
    image: int,
    groups: int,
    dtype: str,
    layout: str,
    target: Target,
) -> Split:
    """What cuDNN does to one convolution depends on the layout first: tensor cores want channels
    last. Of row-major arrays it converts both inputs and the result, or takes an algorithm that
    works on planes: a direct one (offsets, then the product) or Winograd's (both inputs and the
    result transformed around a GEMM)."""
    if layout == "channels_last":
        if direction == "weight gradient":
            return Split(1, 3, 1, "already in the order tensor cores want; sums may be split")
        return Split(1, 2, 1, "already in the order tensor cores want")
    if groups > 1:
        return Split(1, 4, 1, "grouped convolutions have direct kernels; layouts may be converted")
    if dtype in ("float16", "bfloat16"):
        return Split(1, 5, 4, "two inputs and the result converted around a tensor-core kernel")
    if direction == "weight gradient":
        return Split(1, 4, 1, "a direct kernel, offsets before it, or Winograd's four")
    if direction == "input gradient":
        winograd = filter_size == 9 and min(channels, filters) >= 64
        why = "zeros or offsets before the kernel, or Winograd's four"
        return Split(1 if target.sm >= 80 else 2, 4, 4 if winograd else 2, why)
    if filter_size == 1:
        converts = target.sm >= 80
        why = "a direct kernel, offsets before it, or layouts converted for tensor cores"
        return Split(1, 4 if converts else 2, 1, why)
    if channels < 16 and target.sm < 80:
        return Split(1, 2, 2, "few channels: a direct kernel with its offsets")
    winograd = filter_size == 9 and channels >= 64 and filters >= 32 and image <= 32 * 32
    why = "offsets and a direct kernel, or the inputs and the result transformed around a GEMM"
    lo, hi = (2, 4) if target.sm < 80 else (1, 6 if filters < 64 else 4)
    return Split(lo, hi, 4 if winograd else 2, why)
