"""Mismatches of a verification → rows of `[[tool.kpredict.rule]]` that make this machine exact.

In: a Verification. Out: UserRows, and in words what could not be told. A row pins what one op call
launched, for the arrays it read: a library's interval to the number seen, a wrong rule to the
launches seen. The profiler's op calls tell which launches belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from kpredict.eager.user_rules import UserRow, arrays_read
from kpredict.model import Kind, Launch, Mode
from kpredict.verify.align import packet
from kpredict.verify.check import Verification
from kpredict.verify.compare import Row, Verdict


@dataclass(frozen=True, slots=True)
class Calibration:
    rows: tuple[UserRow, ...]
    untold: tuple[str, ...] = ()


def calibrate(found: Iterable[Verification]) -> Calibration:
    """Rows for everything that was measured otherwise than predicted, eager plans only.

    Inductor names and counts its own kernels; only the library calls in compiled code are ATen ops.
    One op with the same arrays that was measured in two ways is not told.
    """
    seen: dict[tuple[str, tuple[str, ...]], UserRow] = {}
    contradicted: set[tuple[str, tuple[str, ...]]] = set()
    untold: dict[str, None] = {}
    for verification in found:
        because = f"measured on {verification.machine}"
        for checked in verification.checked:
            if checked.mode is not Mode.EAGER:
                continue
            for call in _calls(checked.comparison.rows):
                if not _differs(call):
                    continue
                row = _row(call, because)
                if isinstance(row, str):
                    untold[row] = None
                    continue
                key = (row.op, row.arrays or ())
                if key in seen and seen[key].launches != row.launches:
                    contradicted.add(key)
                seen[key] = row
    for op, arrays in sorted(contradicted):
        untold[f"{op} with {', '.join(arrays)}: measured in two ways"] = None
    rows = [row for key, row in sorted(seen.items()) if key not in contradicted]
    return Calibration(tuple(rows), tuple(untold))


def _calls(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Consecutive rows of one op, a matched library call always being a call of its own."""
    for _, group in groupby(zip(rows, _owners(rows), strict=True), key=lambda pair: pair[1]):
        call: list[Row] = []
        for row, _ in group:
            alone = row.left is not None and row.left.kind is Kind.LIBRARY and row.right is not None
            if alone and all(r.left is not None for r in call):
                if call:
                    yield call
                    call = []
                yield [row]
            else:
                call.append(row)
        if call:
            yield call


def _owners(rows: Sequence[Row]) -> list[str]:
    """The predicted op of each row; for what was only measured the neighbour it ran inside of."""
    owners = [packet(row.left.ops[0]) if row.left and row.left.ops else "" for row in rows]
    for order in (range(1, len(rows)), reversed(range(len(rows) - 1))):
        step = -1 if isinstance(order, range) else 1
        for i in order:
            right = rows[i].right
            if not owners[i] and right and owners[i + step] in map(packet, right.ops):
                owners[i] = owners[i + step]
    return [owner or packet(row.op) for owner, row in zip(owners, rows, strict=True)]


def _differs(call: Sequence[Row]) -> bool:
    """Anything that a row can put right: a count, a name, an interval."""
    return any(r.verdict not in (Verdict.EQUAL, Verdict.MOVED) for r in call)


def _row(call: Sequence[Row], because: str) -> UserRow | str:
    """The row for one op call, or why there is none."""
    predicted = [r.left for r in call if r.left is not None]
    measured = [r.right for r in call if r.right is not None]
    if not predicted:
        return f"{call[0].op}: it was not predicted at all, so its arrays are not known"
    op, arrays = predicted[0].ops[0], arrays_read(predicted)
    names = [(x.name, arrays_read([x])) for x in predicted]
    if len(call) > 1 and len(set(names)) < len(names):
        return f"{op} with {', '.join(arrays)}: several calls in a row cannot be told apart"
    return UserRow(op, tuple(_written(x) for x in measured), arrays, because)


def _written(launch: Launch) -> str:
    """A launch as a row writes it."""
    match launch.kind:
        case Kind.LIBRARY:
            return f"library {launch.count}"
        case Kind.MEMCPY:
            return f"memcpy {launch.name.removeprefix('Memcpy ')}"
        case Kind.MEMSET:
            return "memset"
        case Kind.SYNC:
            return "sync"
        case _:
            return launch.name


def toml(found: Calibration) -> str:
    """The rows for a pyproject.toml; what is untold as comments."""
    lines: list[str] = []
    for row in found.rows:
        lines += ["[[tool.kpredict.rule]]", f"op = {_quoted(row.op)}"]
        if row.arrays is not None:
            lines.append(f"arrays = [{', '.join(map(_quoted, row.arrays))}]")
        lines.append(f"launches = [{', '.join(map(_quoted, row.launches))}]")
        lines += [f"because = {_quoted(row.because)}", ""]
    lines += [f"# not told: {text}" for text in found.untold]
    return "\n".join(lines).rstrip("\n") + "\n" if lines else "# Everything is as predicted.\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
