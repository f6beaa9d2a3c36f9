"""Short constructors for what rules yield. The predictor adds op, line, module and phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from kpredict.model import ONE, Access, Basis, Count, Dim3, Kind, Launch, Tensor, row_major

Array = Tensor | Access

_fresh_storage = count(-2, -1)  # temporaries of host code: ids no captured tensor has


def accesses(arrays: Iterable[Array]) -> tuple[Access, ...]:
    """Each array as an Access; CPU arrays are dropped, since no kernel reads them from the GPU."""
    return tuple(
        a if isinstance(a, Access) else Access.of(a)
        for a in arrays
        if (a.tensor if isinstance(a, Access) else a).is_cuda
    )


def kernel(
    name: str,
    reads: Iterable[Array] = (),
    writes: Iterable[Array] = (),
    *,
    because: str = "",
    grid: Dim3 | None = None,
    block: Dim3 | None = None,
    basis: Basis = Basis.HOST_CODE,
) -> Launch:
    """One kernel. `name` is the family as a profiler shows it, without template arguments."""
    return Launch(
        Kind.KERNEL, name, ONE, accesses(reads), accesses(writes), basis, because,
        grid=grid, block=block,
    )  # fmt: skip


def library(
    name: str,
    reads: Iterable[Array] = (),
    writes: Iterable[Array] = (),
    *,
    lo: int = 1,
    hi: int = 1,
    expected: int | None = None,
    because: str = "",
    flops: int = 0,
) -> Launch:
    """One call into a closed library, which launches lo..hi kernels, `expected` most likely."""
    return Launch(
        Kind.LIBRARY, name, Count(lo, hi), accesses(reads), accesses(writes), Basis.LIBRARY,
        because, expected=lo if expected is None else expected, flops=flops,
    )  # fmt: skip


def memcpy(direction: str, src: Tensor, dst: Tensor, *, because: str = "") -> Launch:
    """A copy by the copy engine; `direction` is "HtoD", "DtoH" or "DtoD"."""
    return Launch(
        Kind.MEMCPY, f"Memcpy {direction}", ONE, accesses([src]), accesses([dst]),
        Basis.HOST_CODE, because,
    )  # fmt: skip


def memset(dst: Array, *, because: str = "") -> Launch:
    return Launch(
        Kind.MEMSET, "Memset", ONE, (), accesses([dst]), Basis.HOST_CODE, because
    )  # fmt: skip


def sync(because: str) -> Launch:
    """The host waits for the device."""
    return Launch(Kind.SYNC, "synchronize", ONE, (), (), Basis.HOST_CODE, because)


def workspace(numel: int, dtype: str) -> Tensor:
    """A temporary array that host code allocates: 1-D, contiguous, on the GPU, its own memory."""
    return Tensor((numel,), (1,), dtype, "cuda", next(_fresh_storage))


def contiguous(like: Tensor, *, shape: tuple[int, ...] | None = None, dtype: str = "") -> Tensor:
    """A fresh row-major array with the shape (or `shape`) and dtype of `like`."""
    sizes = like.shape if shape is None else shape
    return Tensor(sizes, row_major(sizes), dtype or like.dtype, like.device, next(_fresh_storage))


def called(op: str, launches: Iterable[Launch]) -> list[Launch]:
    """What a rule yields for another op its host code calls: launches that bear that op's name."""
    return [replace(launch, ops=launch.ops or (op,)) for launch in launches]
