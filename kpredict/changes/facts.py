"""What the plans of a file's entries say about some lines of it."""

from __future__ import annotations

from collections.abc import Sequence

from kpredict.model import Entry, Launch, Mode

_COPIES = frozenset(("aten.copy_.default", "aten.clone.default", "aten._to_copy.default"))


def launches_on(entries: Sequence[Entry], first: int, last: int) -> list[Launch]:
    """The eager launches that come from lines first..last of the entries' file."""
    return [
        x
        for e in entries
        if Mode.EAGER in e.plans
        for _, plan in e.plans[Mode.EAGER]
        for x in plan.launches
        if any(s.file == e.file and first <= s.line <= last for s in x.lines)
    ]


def copies_on(entries: Sequence[Entry], first: int, last: int) -> list[tuple[str, str]]:
    """(dtype read, dtype written) of each copy that those lines make, casts among them."""
    return [
        (x.reads[0].tensor.dtype, x.writes[0].tensor.dtype)
        for x in launches_on(entries, first, last)
        if _COPIES.intersection(x.ops) and x.reads and x.writes
    ]


def touches(entry: Entry, first: int, last: int) -> bool:
    """Whether an entry runs something on lines first..last, or its graph breaks there."""
    return bool(launches_on([entry], first, last)) or any(
        b.line is not None and b.line.file == entry.file and first <= b.line.line <= last
        for b in (*entry.graph_breaks, *entry.skipped)
    )


def steps(entry: Entry) -> bool:
    """Whether an optimizer runs in it: in a phase of its own, or called on a line that launches."""
    lines = entry.source.splitlines()
    called = {n for n, line in enumerate(lines, 1) if ".step(" in line or "zero_grad(" in line}
    return any(phases.step is not None for phases in entry.plans.values()) or any(
        s.line in called and s.file == entry.file
        for phases in entry.plans.values()
        for _, plan in phases
        for x in plan.launches
        for s in x.lines
    )
