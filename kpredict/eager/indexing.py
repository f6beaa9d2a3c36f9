"""The loops behind indexing: one thread per element, or whole rows moved as vectors.

In: the operands of one index, gather or scatter kernel. Out: launches. Follows
aten/src/ATen/native/cuda/IndexKernel.cu, ScatterGatherKernel.cu, IndexKernelUtils.h and Nonzero.cu
(2.13.0 headers, main of 2026).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kpredict.eager import cub
from kpredict.eager.copying import compact
from kpredict.eager.elementwise import THREADS, blocks
from kpredict.eager.iterator import Iterator, iterate
from kpredict.eager.launches import Array, accesses, kernel, memcpy, sync, workspace
from kpredict.eager.shaping import fresh
from kpredict.model import Access, Launch, Tensor

INDEX = "index_elementwise_kernel"
"""The kernel of everything indexed element by element except gather and scatter."""

ROW_ALIGNMENT = 16
Fast = Callable[[Iterator], str | None]


def per_element(
    name: str,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    *,
    reads: Iterable[Array],
    writes: Iterable[Array],
    because: str = "",
    fast: Fast | None = None,
    per_thread: int = 4,
) -> list[Launch]:
    """One launch of `name` per piece of the iterator that 31 bits can address.

    `fast` names the kernel that moves whole rows where a piece allows it. `reads` and `writes` are
    the arrays really touched, which the restrided operands are not. A thread takes 4 elements in
    index kernels, 8 in gather and scatter kernels.
    """
    it = iterate(outputs, inputs)
    if it.numel == 0:
        return []
    pieces = it.pieces()
    read, written = (_shared(accesses(a), len(pieces)) for a in (reads, writes))
    found: list[Launch] = []
    for piece in pieces:
        rows = fast(piece) if fast else None
        if rows:
            why = f"{because}; rows are dense and 16-byte aligned".removeprefix("; ")
            found.append(kernel(rows, read, written, because=why))
        else:
            grid = blocks(piece.numel, per_thread)
            found.append(
                kernel(name, read, written, because=because, grid=grid, block=(THREADS, 1, 1))
            )
    return found


def _shared(arrays: tuple[Access, ...], n: int) -> list[Access]:
    return [Access(a.tensor, a.bytes // n) for a in arrays]


def gathers_rows(step: int) -> Fast:
    """Whether whole rows can be gathered: operands are out, source, index; `step` is the byte
    stride of the source's indexed dim (fast_gather_kernel_eligible)."""

    def fast(it: Iterator) -> str | None:
        return "vectorized_gather_kernel" if _moves_rows(it, 0, 1, step) else None

    return fast


def scatters_rows(step: int, kernel_name: str) -> Fast:
    """Whether whole rows can be added: operands are self, source, index; `step` is the byte stride
    of self's indexed dim (fast_scatter_add_kernel_eligible)."""

    def fast(it: Iterator) -> str | None:
        return kernel_name if _moves_rows(it, 1, 0, step) else None

    return fast


def _moves_rows(it: Iterator, dense: int, indexed: int, step: int) -> bool:
    """Two dims: rows that lie dense on both sides, and one index for each. `indexed` is the operand
    that stands still along the rows, the other one advances from row to row."""
    if len(it.shape) != 2:
        return False
    index = it.operands[2]
    size = it.operands[0].itemsize
    numbers = (
        it.operands[0].address, it.operands[1].address, it.shape[0] * size, step,
        it.operands[dense].strides[1],
    )  # fmt: skip
    return (
        index.strides == (0, index.itemsize)
        and it.operands[dense].strides[0] == it.operands[indexed].strides[0] == size
        and it.operands[indexed].strides[1] == 0
        and all(n % ROW_ALIGNMENT == 0 for n in numbers)
    )


def part(t: Tensor, other: Tensor) -> Access:
    """What is touched of `t` when as many elements as `other` has are picked from it."""
    return Access(t, min(t.nbytes, other.numel * t.itemsize))


def nonzero(x: Tensor, n: int) -> tuple[tuple[Tensor, ...], list[Launch]]:
    """`x.nonzero()` with `n` results: their indices, one vector per dim, and what finds them.

    A count (CUB reduce), which the host reads and waits for; a selection (CUB select) of flat
    positions; for more than one dim a kernel that takes them apart. Above 2^31 - 1 elements the
    first two go in chunks of 2^30.
    """
    x, found = compact(x)
    total = workspace(1, "int32")
    columns = tuple(fresh((n,), "int64") for _ in range(x.ndim))
    chunks = 1 if x.numel < 2**31 - 1 else -(-x.numel // 2**30)
    for chunk in _chunks(x, chunks):
        found += cub.reduce(chunk, total, accumulates="int32")
    host = Tensor((chunks,), (1,), "int32", "cpu")
    found.append(memcpy("DtoH", total, host, because="how many there are"))
    found.append(sync("the host reads how many elements there are"))
    for chunk in _chunks(x, chunks):
        if x.ndim:
            found += cub.select([chunk], columns[:1], chunk.numel)
    if x.ndim > 1 and n > 0:
        found.append(
            kernel("write_indices", columns[:1], columns, because="positions to one index per dim")
        )
    return columns, found


def _chunks(x: Tensor, n: int) -> Iterable[Tensor]:
    size = -(-x.numel // n)
    return [
        fresh((min(size, x.numel - i * size),), x.dtype) if n > 1 else x for i in range(n)
    ]  # fmt: skip
