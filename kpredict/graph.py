"""Which launch reads what which launch wrote: launches joined by the arrays between them.

In: launches in stream order. Out: an OpGraph, and a plan's round trips. The only module that knows
networkx. Linear in the number of accesses.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx

from kpredict.model import Access, Launch, RoundTrip, Tensor


class OpGraph:
    """Nodes are indexes into the launches; an edge carries the Access that the reader makes.

    A storage written again is a new array: later readers depend on the last writer.
    """

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._launches = launches
        self._graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        self._graph.add_nodes_from(range(len(launches)))
        last_writer: dict[int, int] = {}
        for i, launch in enumerate(launches):
            for access in launch.reads:
                writer = last_writer.get(access.tensor.storage)
                if writer is not None:
                    self._graph.add_edge(writer, i, access=access)
            for access in launch.writes:
                last_writer[access.tensor.storage] = i

    def round_trips(self) -> tuple[RoundTrip, ...]:
        """Arrays one launch writes and a later one reads: the write and every read, in bytes.

        Ordered by writer, then by first reader.
        """
        return tuple(trip for writer in self._graph for trip in self._trips_of(writer))

    def _trips_of(self, writer: int) -> list[RoundTrip]:
        reads: dict[int, list[tuple[int, Access]]] = {}
        access: Access
        for _, reader, access in self._graph.out_edges(writer, data="access"):
            reads.setdefault(access.tensor.storage, []).append((reader, access))
        found = []
        for storage, accesses in reads.items():
            tensor, written = _written(self._launches[writer], storage)
            readers = tuple(dict.fromkeys(reader for reader, _ in accesses))
            total = written + sum(access.bytes for _, access in accesses)
            found.append(RoundTrip(tensor, writer, readers, total))
        return found


def _written(launch: Launch, storage: int) -> tuple[Tensor, int]:
    """The array of `storage` that `launch` writes, and how many bytes of it, in parts or whole."""
    parts = [access for access in launch.writes if access.tensor.storage == storage]
    return parts[-1].tensor, sum(access.bytes for access in parts)


def round_trips(launches: Sequence[Launch]) -> tuple[RoundTrip, ...]:
    """The round trips of launches in stream order."""
    return OpGraph(launches).round_trips()
