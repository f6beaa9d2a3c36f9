"""Which launch reads what which launch wrote: launches joined by the storages they touch.

In: launches in stream order. Out: an OpGraph to ask, and a plan's round trips. The only module
that knows networkx. Linear in the number of accesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

    def consumers(self, i: int) -> list[int]:
        """Launches that read what launch `i` wrote, in order."""
        return sorted(self._graph.successors(i))

    def producers(self, i: int) -> list[int]:
        """Launches that wrote what launch `i` reads, in order."""
        return sorted(self._graph.predecessors(i))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Every (writer, reader), each once, in order."""
        yield from sorted(set(self._graph.edges()))

    def components(self, nodes: Sequence[int]) -> list[list[int]]:
        """The groups of `nodes` that data flows between, each in order."""
        part = self._graph.subgraph(nodes)
        return sorted(sorted(group) for group in nx.weakly_connected_components(part))

    def round_trips(self) -> tuple[RoundTrip, ...]:
        """Arrays one launch writes and a later one reads: the write and every read, in bytes."""
        found: list[RoundTrip] = []
        for writer in self._graph.nodes:
            reads: dict[int, list[tuple[int, Access]]] = {}
            access: Access
            for _, reader, access in self._graph.out_edges(writer, data="access"):
                if reader != writer:
                    reads.setdefault(access.tensor.storage, []).append((reader, access))
            for storage, accesses in reads.items():
                tensor, size = _written(self._launches[writer], storage)
                total = size + sum(access.bytes for _, access in accesses)
                readers = tuple(sorted({reader for reader, _ in accesses}))
                found.append(RoundTrip(tensor, writer, readers, total))
        return tuple(found)


def _written(launch: Launch, storage: int) -> tuple[Tensor, int]:
    """The array of `storage` that `launch` writes, and how many bytes of it."""
    written = [a for a in launch.writes if a.tensor.storage == storage]
    return written[-1].tensor, sum(a.bytes for a in written)


def round_trips(launches: Sequence[Launch]) -> tuple[RoundTrip, ...]:
    """The round trips of launches in stream order."""
    return OpGraph(launches).round_trips()
