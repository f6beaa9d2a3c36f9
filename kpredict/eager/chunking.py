"""multi_tensor_apply: how many launches a list of tensors takes, and their grids.

In: lists of tensors. Out: launches. Follows ATen/native/cuda/MultiTensorApply.cuh (2.13.0 header):
every tensor is cut in chunks of 65536 elements, one block each; a launch is sent when its table of
tensors or its table of blocks is full. The tables hold what fits a kernel's arguments: 32 KB for
wheels built with CUDA 13, 4 KB before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kpredict.eager.launches import Array, kernel
from kpredict.model import Access, Launch, Target, Tensor

CHUNK = 65536
_BLOCK = (512, 1, 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Tensors per launch by the number of lists, with and without a scalar each; blocks."""

    tensors: tuple[int, ...]
    with_scalars: tuple[int, ...]
    with_complex_doubles: tuple[int, ...]
    blocks: int


_LARGE = Limits((770, 448, 336, 252, 210), (672, 448, 336, 252, 210), (504, 420), 2240)
_SMALL = Limits((110, 64, 48, 36, 30), (96, 64, 48, 36, 30), (72, 60), 320)


def limits(target: Target) -> Limits:
    """CUDA 13 wheels of 2.10 and later use the large tables; all others the small ones."""
    release = tuple(int(n) for n in target.torch.split("+")[0].split(".")[:2])
    return _LARGE if target.cuda >= 13 and release >= (2, 10) else _SMALL


@dataclass(slots=True)
class _Batch:
    """What is collected for the next launch; `tensors` counts the entries of its table."""

    blocks: int = 0
    tensors: int = 0
    parts: list[tuple[int, int]] = field(default_factory=list)  # tensor, its chunks in this launch


def multi_tensor_apply(
    lists: Sequence[Sequence[Tensor]],
    target: Target,
    *,
    writes: Sequence[int],
    reads: Sequence[int],
    scalars: bool = False,
    also_reads: Sequence[Array] = (),
    because: str = "",
) -> list[Launch]:
    """The launches over `lists`, of which those at `reads` are read and at `writes` written.

    `scalars`: each tensor comes with a number of its own, which takes room in the tables.
    """
    table = limits(target)
    depth = len(lists)
    tensors_max = (table.with_scalars if scalars else table.tensors)[depth - 1]
    if scalars and depth < 3 and lists[0] and lists[0][0].dtype == "complex128":
        tensors_max = table.with_complex_doubles[depth - 1]
    found: list[Launch] = []
    batch = _Batch()

    def send() -> None:
        found.append(
            kernel(
                "multi_tensor_apply_kernel",
                [_part(lists[d][i], n) for d in reads for i, n in batch.parts] + list(also_reads),
                [_part(lists[d][i], n) for d in writes for i, n in batch.parts],
                grid=(batch.blocks, 1, 1), block=_BLOCK, because=because,
            )
        )  # fmt: skip

    for i, tensor in enumerate(lists[0]):
        if tensor.numel == 0:
            continue
        batch.tensors += 1
        left = -(-tensor.numel // CHUNK)
        while left:
            taken = min(left, table.blocks - batch.blocks)
            left -= taken
            batch.blocks += taken
            batch.parts.append((i, taken))
            if batch.blocks == table.blocks or (not left and batch.tensors == tensors_max):
                send()
                batch = _Batch(tensors=1) if left else _Batch()
    if batch.blocks:
        send()
    return found


def _part(t: Tensor, chunks: int) -> Access:
    """What `chunks` chunks of a tensor touch; its last chunk may be short."""
    return Access(t, min(t.nbytes, chunks * CHUNK * t.itemsize))
