"""Round trips: who reads what whom wrote."""

from __future__ import annotations

from kpredict.graph import round_trips
from kpredict.model import Access, Kind, Launch, RoundTrip, Tensor


def array(storage: int) -> Tensor:
    return Tensor((4,), (1,), "float32", "cuda", storage)


def launch(reads: list[int], writes: list[int]) -> Launch:
    """A kernel that touches whole arrays, by the ids of their storages."""
    return Launch(
        Kind.KERNEL, "k",
        reads=tuple(Access.of(array(s)) for s in reads),
        writes=tuple(Access.of(array(s)) for s in writes),
    )  # fmt: skip


def test_every_read_of_what_was_written_counts() -> None:
    launches = [launch([0], [1]), launch([1, 1], [2]), launch([1], [3])]
    assert round_trips(launches) == (RoundTrip(array(1), 0, (1, 2), 16 + 2 * 16 + 16),)


def test_inputs_and_results_make_no_round_trip() -> None:
    assert round_trips([launch([0], [1]), launch([0], [2])]) == ()


def test_an_array_written_again_is_a_new_one() -> None:
    in_place = [launch([], [1]), launch([1], [1]), launch([1], [2])]
    assert [(r.writer, r.readers) for r in round_trips(in_place)] == [(0, (1,)), (1, (2,))]


def test_ordered_by_writer_then_by_first_reader() -> None:
    launches = [launch([], [1, 2]), launch([], [3]), launch([3, 2], []), launch([1], [])]
    found = [(r.writer, r.tensor.storage) for r in round_trips(launches)]
    assert found == [(0, 2), (0, 1), (1, 3)]


def test_parts_written_by_one_launch_are_one_array() -> None:
    (trip,) = round_trips([launch([], [1, 1]), launch([1], [])])
    assert trip.bytes == 3 * 16
