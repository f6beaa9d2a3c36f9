"""Which launch reads what which launch wrote: launches joined by the storages they touch.

In: launches in stream order. Out: a plan's round trips. Linear in the number of accesses, and
without a graph library: the one question asked needs a single pass, and importing one takes longer
than answering it for a large model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kpredict.model import Launch, RoundTrip, Tensor


@dataclass(slots=True)
class _Written:
    """An array from one launch that writes it to the next one that does."""

    writer: int
    tensor: Tensor
    bytes: int
    readers: dict[int, None] = field(default_factory=dict)


def round_trips(launches: Sequence[Launch]) -> tuple[RoundTrip, ...]:
    """Arrays one launch writes and a later one reads: the write and every read, in bytes.

    A storage written again is a new array: later readers depend on the last writer. Ordered by
    writer, then by first reader.
    """
    current: dict[int, _Written] = {}
    read: list[_Written] = []
    for i, launch in enumerate(launches):
        for access in launch.reads:
            array = current.get(access.tensor.storage)
            if array is not None:
                if not array.readers:
                    read.append(array)
                array.readers[i] = None
                array.bytes += access.bytes
        for access in launch.writes:
            storage = access.tensor.storage
            before = current.get(storage)
            if before is not None and before.writer == i:  # written in parts
                before.tensor = access.tensor
                before.bytes += access.bytes
            else:
                current[storage] = _Written(i, access.tensor, access.bytes)
    read.sort(key=lambda array: array.writer)  # stable: by first reader within
    return tuple(RoundTrip(a.tensor, a.writer, tuple(a.readers), a.bytes) for a in read)
