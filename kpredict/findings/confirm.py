"""The deeper look: findings of the source held against what the file really dispatches.

In: findings, a Report of the same files. Where an entry was analysed and ran the finding's line,
the plan decides: launches there confirm it, none remove it. What no entry ran stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kpredict.findings.budgets import budget_of
from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Budget
from kpredict.model import Count, Entry, Kind, Launch, Mode, Report
from kpredict.source.infer.trace import Interval

_COPIES = frozenset(("KP203", "KP205"))
_SYNCS = frozenset(("KP301", "KP303"))


def confirm(findings: Iterable[Finding], report: Report) -> list[Finding]:
    """The findings that stand, with the confidence the plans give them."""
    kept: list[Finding] = []
    launches = list(_launches(report))
    for f in findings:
        entries = [e for e in report.entries if _same_file(e.file, f.path)]
        ran = [
            x
            for e, x in launches
            if e in entries and any(_holds(f, s.file, s.line) for s in x.lines)
        ]
        reached = bool(ran) or any(_reached(e, f, launches) for e in entries)
        if not reached:
            kept.append(f)
        elif _stands(f, ran):
            kept.append(replace(f, confidence=Confidence.CERTAIN))
    return kept


def _launches(report: Report) -> Iterator[tuple[Entry, Launch]]:
    for entry in report.entries:
        for mode in (Mode.EAGER,):
            if mode in entry.plans:
                for _, plan in entry.plans[mode]:
                    for launch in plan.launches:
                        yield entry, launch


def _reached(entry: Entry, f: Finding, launches: list[tuple[Entry, Launch]]) -> bool:
    """Whether something launched after the finding's line in the same function: it was passed."""
    return any(
        e is entry
        and s.function
        and s.function == f.function.rpartition(".")[2]
        and s.line > f.line
        for e, x in launches
        for s in x.lines
    )


def _stands(f: Finding, ran: list[Launch]) -> bool:
    kernels = [x for x in ran if x.kind in (Kind.KERNEL, Kind.LIBRARY)]
    if f.code in _SYNCS:
        return any(x.kind in (Kind.SYNC, Kind.MEMCPY) for x in ran) or (not kernels and bool(ran))
    if f.code in _COPIES:
        return any("clone" in op or "copy" in op for x in kernels for op in x.ops)
    if f.code in ("KP101", "KP105"):
        return len(kernels) >= 2
    return True


def _holds(f: Finding, file: str, line: int) -> bool:
    return _same_file(file, f.path) and f.line <= line <= (f.end_line or f.line)


def _same_file(a: str, b: str) -> bool:
    return a == b or Path(a).resolve() == Path(b).resolve()


def budgets_of_report(report: Report, budgets: Mapping[str, Budget]) -> Iterator[Finding]:
    """KP401 and KP402 by the plans of a report."""
    for entry in report.entries:
        budget = budget_of(budgets, entry.file, entry.name)
        if budget is None:
            continue
        for what, most, mode in (
            ("eager kernels", budget.max_eager, Mode.EAGER),
            ("compiled kernels", budget.max_compiled, Mode.COMPILED),
        ):
            if most is None or mode not in entry.plans:
                continue
            plans = entry.plans[mode]
            count = _open(entry, plans.kernels, mode)
            if count.hi is not None and count.hi <= most:
                continue
            yield _over(entry, what, most, count)
        if budget.max_round_trips is not None and Mode.EAGER in entry.plans:
            trips = sum(len(p.round_trips) for _, p in entry.plans[Mode.EAGER])
            if trips > budget.max_round_trips:
                yield _over(entry, "round trips", budget.max_round_trips, Interval(trips, trips))


def _open(entry: Entry, kernels: Count, mode: Mode) -> Interval:
    """The count, without an upper end where something in the plans is unknown."""
    unknown = any(p.unknowns for _, p in entry.plans[mode])
    return Interval(kernels.lo, None if unknown else kernels.hi)


def _over(entry: Entry, what: str, most: int, count: Interval) -> Finding:
    surely = count.lo > most
    return Finding(
        entry.file, max(entry.line, 1), 1, "KP401" if surely else "KP402",
        "over-budget" if surely else "maybe-over-budget",
        f"{entry.name}: {count} {what}, the budget is {most}", entry.name,
        Confidence.CERTAIN if surely else Confidence.POSSIBLE, count.lo, most,
    )  # fmt: skip
