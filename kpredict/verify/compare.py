"""Two plans → their Comparison: predicted and measured, eager and compiled, old and new alike.

In: two plans, the left one being the claim. Out: one row per launch with a verdict, and totals.
The right plan agrees when every count, in total and of each launch, lies inside the left one's
interval: a name that differs or another order is shown, but is no disagreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kpredict.model import ZERO, Count, Kind, Launch, Plan
from kpredict.verify.align import align, name_key, packet, token
from kpredict.verify.measured import INSIDE_LIBRARY


class Verdict(StrEnum):
    EQUAL = "equal"
    INSIDE = "inside"  # of the interval, which is wider than one number
    MOVED = "moved"  # the same launch at another place
    NAME = "name differs"
    OUTSIDE = "outside"  # paired, but the count is not in the interval
    MISSING = "missing"  # on the left only
    EXTRA = "extra"  # on the right only


@dataclass(frozen=True, slots=True)
class Row:
    """One launch of either side, or one of each that are the same; indexes into the plans."""

    verdict: Verdict
    left: Launch | None = None
    right: Launch | None = None
    at: tuple[int | None, int | None] = (None, None)

    @property
    def op(self) -> str:
        ops = (self.left or self.right or _NOTHING).ops
        return ops[0] if ops else ""


_NOTHING = Launch(Kind.SYNC, "")


@dataclass(frozen=True, slots=True)
class Total:
    """The counts of one kind on both sides; they agree when the right is inside the left."""

    what: str
    left: Count
    right: Count

    @property
    def agrees(self) -> bool:
        return self.left.lo <= self.right.lo and self.right.hi <= self.left.hi


@dataclass(frozen=True, slots=True)
class Comparison:
    rows: tuple[Row, ...]
    totals: tuple[Total, ...]
    labels: tuple[str, str] = ("predicted", "measured")

    @property
    def agrees(self) -> bool:
        wrong = (Verdict.MISSING, Verdict.EXTRA, Verdict.OUTSIDE)
        return all(t.agrees for t in self.totals) and all(r.verdict not in wrong for r in self.rows)

    @property
    def identical(self) -> bool:
        """Every launch is equal or inside its interval."""
        return all(row.verdict in (Verdict.EQUAL, Verdict.INSIDE) for row in self.rows)

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in Verdict if found[verdict]}

    @property
    def mismatches(self) -> tuple[Row, ...]:
        fine = (Verdict.EQUAL, Verdict.INSIDE)
        return tuple(row for row in self.rows if row.verdict not in fine)

    @property
    def exit_code(self) -> int:
        return 0 if self.agrees else 1


def compare(
    left: Plan, right: Plan, labels: tuple[str, str] = ("predicted", "measured")
) -> Comparison:
    """Align both plans and judge each launch.

    Memsets that a library call makes for itself are inside that call: part of no prediction.
    """
    left_at, right_at = _own(left), _own(right)
    pairs = align([left.launches[i] for i in left_at], [right.launches[j] for j in right_at])
    rows = [
        _row(left, right, None if i is None else left_at[i], None if j is None else right_at[j])
        for i, j in pairs
    ]
    totals = tuple(
        Total(what, _sum(left, left_at, kind), _sum(right, right_at, kind))
        for what, kind in _TOTALS
    )
    return Comparison(tuple(_with_moved(_joined(rows))), totals, labels)


_TOTALS = (
    ("kernels", Kind.KERNEL), ("library kernels", Kind.LIBRARY), ("memcpy", Kind.MEMCPY),
    ("memset", Kind.MEMSET), ("syncs", Kind.SYNC),
)  # fmt: skip


def _own(plan: Plan) -> list[int]:
    return [i for i, launch in enumerate(plan.launches) if launch.because != INSIDE_LIBRARY]


def _sum(plan: Plan, at: Iterable[int], kind: Kind) -> Count:
    found = (plan.launches[i] for i in at)
    return sum((launch.count for launch in found if launch.kind is kind), ZERO)


def _row(left: Plan, right: Plan, i: int | None, j: int | None) -> Row:
    a = None if i is None else left.launches[i]
    b = None if j is None else right.launches[j]
    return Row(verdict(a, b), a, b, (i, j))


def verdict(left: Launch | None, right: Launch | None) -> Verdict:
    """What one row says. Names count for kernels and copies, never inside a library."""
    if left is None:
        return Verdict.EXTRA
    if right is None:
        return Verdict.MISSING
    if left.kind is not right.kind or name_key(left) != name_key(right):
        return Verdict.NAME
    if left.count == right.count:
        return Verdict.EQUAL
    inside = left.count.lo <= right.count.lo and right.count.hi <= left.count.hi
    return Verdict.INSIDE if inside else Verdict.OUTSIDE


def _joined(rows: Iterable[Row]) -> list[Row]:
    """Library calls of one op call that only one side tells apart are one row.

    A profiler does not show where one call of cuDNN ends and the next begins.
    """
    done: list[Row] = []
    for row in rows:
        last = done[-1] if done else None
        if last and last.left and last.right and (joined := _join(last, row)):
            done[-1] = joined
        else:
            done.append(row)
    return done


def _with_moved(rows: Sequence[Row]) -> list[Row]:
    """A launch missing here and extra there is one that moved, shown at its left place."""
    known = {packet(op) for row in rows if row.left for op in row.left.ops}
    elsewhere: dict[Hashable, list[int]] = {}
    for i, row in enumerate(rows):
        if row.verdict is Verdict.EXTRA and row.right:
            elsewhere.setdefault(token(row.right, known), []).append(i)
    gone: set[int] = set()
    done: list[Row] = []
    for row in rows:
        if row.verdict is Verdict.MISSING and row.left:
            places = elsewhere.get(token(row.left, known), [])
            if places:
                there = rows[places[0]]
                same = verdict(row.left, there.right)
                if same in (Verdict.EQUAL, Verdict.INSIDE):
                    gone.add(places.pop(0))
                    row = Row(Verdict.MOVED, row.left, there.right, (row.at[0], there.at[1]))
        done.append(row)
    return [row for i, row in enumerate(done) if i not in gone]


def _join(last: Row, row: Row) -> Row | None:
    a, b = last.left, last.right
    more = row.left if row.right is None else row.right if row.left is None else None
    if a is None or b is None or more is None or last.verdict is not Verdict.OUTSIDE:
        return None
    if not more.kind is a.kind is b.kind is Kind.LIBRARY or _packets(more).isdisjoint(_packets(a)):
        return None
    if row.right is None:
        a = replace(a, count=a.count + more.count)
    else:
        b = replace(b, count=b.count + more.count)
    return Row(verdict(a, b), a, b, last.at)


def _packets(launch: Launch) -> set[str]:
    return {packet(op) for op in launch.ops}
