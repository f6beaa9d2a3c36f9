"""The deeper look: findings of the source held against what the file really dispatches.

In: findings, a Report of the same files. Where a run of an entry passed the finding's lines, the
plan decides: what they launched confirms it or contradicts it, and a finding that is contradicted
is removed. Lines that no run passed (a branch not taken, an entry without inputs) stay as they
were, as do findings that a plan has nothing to say about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kpredict.findings.budgets import budget_of, said
from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Budget
from kpredict.model import Count, Entry, Kind, Launch, Mode, Report
from kpredict.source.infer.trace import Interval


def confirm(findings: Iterable[Finding], report: Report) -> list[Finding]:
    """The findings that stand, with the confidence the plans give them."""
    kept: list[Finding] = []
    for f in findings:
        entries = [e for e in report.entries if _same_file(e.file, f.path)]
        ran = [x for e in entries for x in _launches(e) if _launched_by(f, x)]
        told = _VERDICTS.get(f.code)
        if told is None or not (ran or any(_passed(e, f) for e in entries)):
            kept.append(f)
        elif told(ran):
            kept.append(replace(f, confidence=Confidence.CERTAIN))
    return kept


def _launches(entry: Entry) -> Iterator[Launch]:
    if Mode.EAGER in entry.plans:
        for _, plan in entry.plans[Mode.EAGER]:
            yield from plan.launches


def _launched_by(f: Finding, launch: Launch) -> bool:
    return any(_same_file(s.file, f.path) and _holds(f, s.line) for s in launch.lines)


def _passed(entry: Entry, f: Finding) -> bool:
    """Whether a line of the finding ran, be it without launching anything."""
    return any(_holds(f, line) for line in entry.calls)


def _kernels(ran: list[Launch]) -> list[Launch]:
    return [x for x in ran if x.kind in (Kind.KERNEL, Kind.LIBRARY)]


def _several(ran: list[Launch]) -> bool:
    return len(_kernels(ran)) >= 2


def _waits(ran: list[Launch]) -> bool:
    return any(x.kind in (Kind.SYNC, Kind.MEMCPY) for x in ran)


def _dispatches(*words: str) -> Callable[[list[Launch]], bool]:
    """Whether a kernel is of an op whose name has one of the words."""
    return lambda ran: any(w in op for x in _kernels(ran) for op in x.ops for w in words)


_VERDICTS: Mapping[str, Callable[[list[Launch]], bool]] = {
    "KP101": _several, "KP102": _several, "KP105": _several,
    "KP106": _dispatches("cat", "stack"),
    "KP108": _waits,
    "KP201": lambda ran: bool(_kernels(ran)),
    "KP202": _dispatches("copy"),
    "KP203": _dispatches("clone", "copy"), "KP205": _dispatches("clone", "copy"),
    "KP204": _dispatches("fill", "full", "zeros", "ones"),
    "KP301": _waits, "KP303": _waits, "KP304": _waits,
}  # fmt: skip
"""By code, what a finding's lines must have launched in a run that passed them."""


def _holds(f: Finding, line: int) -> bool:
    return f.line <= line <= (f.end_line or f.line)


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
        f"{entry.name}: {said(count, what)}, the budget is {most}", entry.name,
        Confidence.CERTAIN if surely else Confidence.POSSIBLE, count.lo, most,
    )  # fmt: skip
