"""Numbers as people read them: bytes, times, counts and their likely value, lists of lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpredict.model import Count, Kind, Plan

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def size(n: int) -> str:
    """Decimal units, three digits: 20000000 → "20 MB"."""
    value, unit = float(n), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{value:.3g} {_UNITS[unit]}"


def time(microseconds: float) -> str:
    """Three digits: 0.5 → "0.5 us", 12345 → "12.3 ms", 2e6 → "2 s"."""
    for unit, one in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= 0.9995 * one:
            return f"{microseconds / one:.3g} {unit}"
    return f"{microseconds:.3g} us"


def plural(n: int | Count, noun: str, many: str = "") -> str:
    """`1 kernel`, `2 kernels`, `1..3 kernels`; `many` where the plural is not with an s."""
    one = n == 1 or n == Count(1, 1)
    return f"{n} {noun}" if one else f"{n} {many or noun + 's'}"


def expected(plan: Plan) -> int:
    """The most likely number of kernels."""
    return sum(
        launch.count.lo if launch.expected is None else launch.expected
        for launch in plan.launches
        if launch.kind in (Kind.KERNEL, Kind.LIBRARY)
    )


def likely(count: Count, guess: int) -> str:
    """`5` when exact, else the interval with its most likely value: `5..8 (~5)`."""
    return str(count) if count.exact else f"{count} (~{guess})"


def ranges(numbers: Iterable[int], prefix: str = "", limit: int = 0) -> str:
    """`1-3,7` for 1, 2, 3, 7; each part with the prefix; `limit` parts at most (0: all)."""
    parts: list[list[int]] = []
    for n in sorted(set(numbers)):
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    texts = [f"{prefix}{a}" if a == b else f"{prefix}{a}-{b}" for a, b in parts]
    if limit and len(texts) > limit:
        texts = [*texts[: limit - 1], "..", texts[-1]]
    return ",".join(texts).replace(",..,", "..")


def listed(words: Sequence[str], limit: int = 0) -> str:
    """`a, b, c`; beyond `limit` words (0: none) the rest as a number."""
    if limit and len(words) > limit:
        return ", ".join(words[:limit]) + f" and {len(words) - limit} more"
    return ", ".join(words)
