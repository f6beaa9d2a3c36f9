"""The sizes of a sweep, and the search for where launches stop to set the time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kpredict.bounds import Bound
from kpredict.model import KpredictError
from kpredict.sweep import CLOSE, Sweep, narrow, parse_sweep


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("n=1e2..1e5", (100, 1000, 10_000, 100_000)),
        ("n=64..1000:x2", (64, 128, 256, 512, 1000)),
        (" n = 1..20 ", (1, 10, 20)),
        ("n=2..5:x1.5", (2, 3, 4, 5)),
        ("n=1_000..10_000", (1000, 10_000)),
        ("n=512, 64", (64, 512)),
    ],
)
def test_sizes(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_sweep(text) == Sweep("n", sizes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n", "is not NAME=SIZES"),
        ("n=", "is not NAME=SIZES"),
        ("=5", "is not NAME=SIZES"),
        ("n=5,x", "x is no size"),
        ("n=5..2", "does not go up"),
        ("n=0..2", "0 is no size"),
        ("n=1..8:x1", "does not go up"),
        ("n=1.5..8", "1.5 is no size"),
        ("n=1e..8", "1e is no size"),
        ("n=1..1e400", "1e400 is no size"),
        ("n=1..1e9:x1.01", "more than 40 sizes"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(KpredictError, match=message):
        parse_sweep(text)


def law(factor: float, power: float, offset: float = 0.0) -> Callable[[int], Bound]:
    """Work that grows as a power of the size, against 20 us of launches."""

    def at(size: int) -> Bound:
        work = offset + factor * size**power
        return Bound(work, 0.0, work, 20.0)

    return at


@pytest.mark.parametrize(
    ("at", "below", "above", "turn"),
    [
        (law(3e-6, 1), 1_000_000, 10_000_000, 6_666_667),
        (law(3e-6, 1, 12), 1_000_000, 10_000_000, 2_666_667),
        (law(1e-9, 2), 100_000, 1_000_000, 141_421),
        (law(1e-12, 3, 1), 10_000, 100_000, 26_684),
        (law(1.0, 1), 10, 100, 20),
        (law(10.0, 1), 1, 10, 2),
    ],
)
def test_it_closes_in_on_the_turn(
    at: Callable[[int], Bound], below: int, above: int, turn: int
) -> None:
    asked: list[int] = []

    def watched(size: int) -> Bound:
        asked.append(size)
        return at(size)

    low, high = narrow(watched, below, above, (at(below), at(above)))
    assert low <= turn <= high
    assert high / low <= CLOSE or high - low == 1
    assert {low, high} <= {*asked, below, above}  # nothing is said of what was not predicted
    assert len(asked) <= 7
    assert all(size % 64 == 0 for size in asked if size > 100_000)


def test_a_size_that_cannot_be_predicted_ends_the_search() -> None:
    at = law(3e-6, 1)
    assert narrow(lambda _: None, 10**6, 10**7, (at(10**6), at(10**7))) == (10**6, 10**7)
