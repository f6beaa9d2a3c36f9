"""Two sequences of launches side by side: who corresponds to whom.

In: two tuples of launches. Out: index pairs in order, None where one side has no partner. Equal
launches anchor the alignment (Myers' difference algorithm); around places where both sides have
something left over, the best pairing by op and name is found. Not by position: one launch too many
shifts nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from kpredict.model import Kind, Launch
from kpredict.verify.names import family, without_number

Pair = tuple[int | None, int | None]

_MOST_EDITS = 800  # beyond, Myers' memory grows too large and difflib is good enough
_MOST_CELLS = 250_000
_NEAR = 40  # pairs between two leftovers that may belong together


def align(left: Sequence[Launch], right: Sequence[Launch]) -> list[Pair]:
    """Every launch of both sides exactly once, in order on both sides."""
    known = {packet(op) for launch in left for op in launch.ops}
    a = [token(launch, known) for launch in left]
    b = [token(launch, known) for launch in right]
    pairs: list[Pair] = []
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *_edit_script(a, b), (len(a), len(b))]):
        pairs += [(x, None) for x in range(i + 1, next_i)]
        pairs += [(None, y) for y in range(j + 1, next_j)]
        if next_i < len(a):
            pairs.append((next_i, next_j))
    return _settled(left, right, pairs)


def _settled(left: Sequence[Launch], right: Sequence[Launch], pairs: list[Pair]) -> list[Pair]:
    """Pair leftovers near each other anew: anchors between them may have caught the wrong one."""
    done: list[Pair] = []
    at = 0
    for first, last in _windows(pairs, _NEAR):
        done += pairs[at:first]
        window = pairs[first:last]
        at = last
        if (paired := _best(left, right, window)) is not None:
            done += paired
            continue
        within = 0  # too many to try them all: only what is left over side by side
        for start, stop in _windows(window, 1):
            done += window[within:start]
            done += _best(left, right, window[start:stop]) or window[start:stop]
            within = stop
        done += window[within:]
    return done + pairs[at:]


def _windows(pairs: Sequence[Pair], near: int) -> Iterator[tuple[int, int]]:
    """Slices that hold all leftovers; those within `near` pairs of each other are in one."""
    odd = [n for n, (i, j) in enumerate(pairs) if i is None or j is None]
    start = 0
    for k, n in enumerate(odd):
        if k + 1 == len(odd) or odd[k + 1] - n > near:
            yield odd[start], n + 1
            start = k + 1


def packet(op: str) -> str:
    """`aten.add.Tensor` and `aten.add` → `aten.add`."""
    namespace, _, rest = op.partition(".")
    return f"{namespace}.{rest.split('.')[0]}" if rest else op


def name_key(launch: Launch) -> str:
    """What two launches of one kind must share to be called by the same name."""
    if launch.kind in (Kind.LIBRARY, Kind.SYNC):
        return ""  # which kernel a library chose, or which call waited, is not predicted
    return without_number(family(launch.name))


def token(launch: Launch, known: set[str]) -> Hashable:
    """Kind, name, and the innermost op that the left side knows too."""
    packets = [packet(op) for op in launch.ops]
    if launch.name.startswith("triton_"):
        return (launch.kind, name_key(launch))
    op = next((p for p in packets if p in known), packets[0] if packets else "")
    return (launch.kind, name_key(launch), op)


def _edit_script(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Index pairs of equal elements of a shortest edit script (E. W. Myers, 1986)."""
    n, m = len(a), len(b)
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(n + m + 1):
        if edits > _MOST_EDITS:
            return _by_difflib(a, b)
        history.append(furthest.copy())
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            while x < n and x - k < m and a[x] == b[x - k]:
                x += 1
            furthest[k] = x
            if x >= n and x - k >= m:
                return _walk_back(history, n, m)
    return []


def _walk_back(history: Sequence[dict[int, int]], n: int, m: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    x, y = n, m
    for edits in range(len(history) - 1, -1, -1):
        furthest, k = history[edits], x - y
        down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
        before = k + 1 if down else k - 1
        start_x = furthest[before]
        start_y = start_x - before
        while x > start_x and y > start_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start_x, start_y
    return pairs[::-1]


def _by_difflib(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    blocks = SequenceMatcher(None, a, b, autojunk=True).get_matching_blocks()
    return [(block.a + i, block.b + i) for block in blocks for i in range(block.size)]


def _best(
    left: Sequence[Launch], right: Sequence[Launch], window: Sequence[Pair]
) -> list[Pair] | None:
    """The pairing of the highest likeness (Needleman and Wunsch, 1970); None if it is too large."""
    rows = [i for i, _ in window if i is not None]
    columns = [j for _, j in window if j is not None]
    if len(rows) * len(columns) > _MOST_CELLS:
        return None
    alike = [[likeness(left[i], right[j]) for j in columns] for i in rows]
    best = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    for i in reversed(range(len(rows))):
        for j in reversed(range(len(columns))):
            paired = best[i + 1][j + 1] + alike[i][j] if alike[i][j] else 0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    pairs: list[Pair] = []
    i = j = 0
    while i < len(rows) and j < len(columns):
        if alike[i][j] and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            pairs.append((rows[i], columns[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            pairs.append((rows[i], None))
            i += 1
        else:
            pairs.append((None, columns[j]))
            j += 1
    pairs += [(r, None) for r in rows[i:]]
    pairs += [(None, c) for c in columns[j:]]
    return pairs


def likeness(left: Launch, right: Launch) -> int:
    """0: not the same launch. The op says more than the name, since families are few."""
    computes = (Kind.KERNEL, Kind.LIBRARY)
    if left.kind is not right.kind and not (left.kind in computes and right.kind in computes):
        return 0
    same_op = not {packet(op) for op in left.ops}.isdisjoint(packet(op) for op in right.ops)
    same_kind = left.kind is right.kind
    same_name = same_kind and name_key(left) == name_key(right)
    if same_op:
        return 4 + 2 * same_kind + same_name
    return 2 if same_name else 0
