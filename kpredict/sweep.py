"""Sizes to go through: `n=64,512` or `n=1e2..1e8`; and where between two of them a plan turns.

In: what the user wrote; bounds at sizes, asked for one by one. Out: a Sweep; the size up to which
launches set the time. Nothing is interpolated in what is reported: each size was predicted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import log
from typing import NamedTuple

from kpredict.bounds import Bound
from kpredict.model import KpredictError

MOST_SIZES = 40
CLOSE = 1.01  # where two sizes this near differ, the turn is found
MOST_STEPS = 8

_RANGE = re.compile(r"(.+?)\.\.(.+?)(?::x(\d+(?:\.\d+)?))?")
_HINT = "Write n=64,512 or n=1e2..1e8 for every power of ten, n=64..4096:x2 to double each time."


class Sweep(NamedTuple):
    """The sizes that the dimension or input `name` takes, in order."""

    name: str
    sizes: tuple[int, ...]


def parse_sweep(text: str) -> Sweep:
    """`n=64,512` as it stands; `n=100..5000` → 100, 1000, 5000: times ten, or times F with `:xF`;
    the last is the end given.

    Raises KpredictError.
    """
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name) or not rest:
        raise KpredictError(f"--sweep {text!r} is not NAME=SIZES.", _HINT)
    match = _RANGE.fullmatch(rest)
    if match is None:
        return Sweep(name, tuple(sorted({_size(word, text) for word in rest.split(",")})))
    first, last, factor = _size(match[1], text), _size(match[2], text), float(match[3] or 10)
    if first >= last or factor <= 1:
        raise KpredictError(f"--sweep {text!r} does not go up.", _HINT)
    sizes: list[int] = []
    step = 0
    while (size := round(first * factor**step)) < last:
        sizes += [size] if size not in sizes else []
        step += 1
        if len(sizes) > MOST_SIZES:
            raise KpredictError(
                f"--sweep {text!r} has more than {MOST_SIZES} sizes.", "Give it a larger factor."
            )
    return Sweep(name, (*sizes, last))


def _size(word: str, text: str) -> int:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if value < 1 or not value.is_integer():
        raise KpredictError(f"--sweep {text!r}: {word} is no size.", _HINT)
    return int(value)


def narrow(
    at: Callable[[int], Bound | None], below: int, above: int, bounds: tuple[Bound, Bound]
) -> tuple[int, int]:
    """Sizes near each other between which launches stop to set the time.

    They do at `below` and no longer at `above`, as `bounds` say; `at` predicts the bound at another
    size (None: it cannot be). Work grows about as a power of the size, so the first guesses land
    beside the turn, on either side of it; every third step halves the rest, whatever the law.
    """
    low, high = bounds
    for step in range(1, MOST_STEPS + 1):
        if above - below <= 1 or above / below <= CLOSE:
            break
        share = _share(low, high) if step % 3 else 0.5
        size = _near(below * (above / below) ** share, below, above)
        found = at(size)
        if found is None:
            break
        if found.limited_by == "launches":
            below, low = size, found
        else:
            above, high = size, found
    return below, above


def _share(low: Bound, high: Bound) -> float:
    """How far from the lower size towards the higher one both times are equal, if their ratio is a
    power of the size."""
    short, over = (log(max(b.device, 1e-9) / max(b.launches, 1e-9)) for b in (low, high))
    return short / (short - over) if short < over else 0.5


def _near(guess: float, below: int, above: int) -> int:
    """A size a little beyond the guess, seen from the end that is nearer to it, so that the turn
    comes to lie between; a multiple of a power of two, since shapes must often divide."""
    guess *= CLOSE ** (0.4 if guess * guess < below * above else -0.4)
    grain = 1
    while grain * 2 <= guess * (CLOSE - 1) / 8:
        grain *= 2
    return min(max(round(guess / grain) * grain, below + 1), above - 1)
