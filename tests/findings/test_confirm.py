"""Findings of the source held against plans: confirmed, removed, or left where nothing ran."""

from __future__ import annotations

from kpredict.findings.confirm import budgets_of_report, confirm
from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Budget
from kpredict.model import Count, Entry, Kind, Launch, Mode, Phases, Plan, Report, Span, Unknown
from kpredict.targets import target


def launch(line: int, op: str = "aten.add.Tensor", kind: Kind = Kind.KERNEL) -> Launch:
    return Launch(kind, "k", ops=(op,), lines=(Span("m.py", line, "f"),))


def report(*launches: Launch, passed: int = 0, unknowns: tuple[Unknown, ...] = ()) -> Report:
    """A run that launched these, and passed the line `passed` without launching anything."""
    plans = {Mode.EAGER: Phases(Plan(launches, unknowns=unknowns))}
    calls = dict.fromkeys((passed, *(s.line for x in launches for s in x.lines)), 1)
    return Report(target(), (Entry("m.py", "f", 1, plans=plans, calls=calls),))


def finding(code: str, line: int, function: str = "f", end: int | None = None) -> Finding:
    return Finding("m.py", line, 1, code, "x", "m", function, Confidence.LIKELY, end_line=end)


def test_a_copy_that_ran_is_certain() -> None:
    (kept,) = confirm([finding("KP203", 4)], report(launch(4, "aten.clone.default")))
    assert kept.confidence is Confidence.CERTAIN


def test_a_copy_that_did_not_run_is_removed() -> None:
    assert confirm([finding("KP203", 4)], report(launch(5), passed=4)) == []


def test_what_no_run_passed_stays_as_it_was() -> None:
    """Another function, a branch that was not taken."""
    kept = confirm([finding("KP203", 4, "g"), finding("KP101", 4, end=6)], report(launch(7)))
    assert [f.confidence for f in kept] == [Confidence.LIKELY] * 2


def test_what_a_plan_cannot_tell_stays_as_it_was() -> None:
    (kept,) = confirm([finding("KP107", 4)], report(passed=4))
    assert kept.confidence is Confidence.LIKELY


def test_a_chain_needs_its_kernels() -> None:
    assert confirm([finding("KP101", 4, end=5)], report(launch(4), launch(9))) == []
    assert len(confirm([finding("KP101", 4, end=5)], report(launch(4), launch(5)))) == 1


def test_a_sync_needs_a_wait() -> None:
    waits = report(launch(4, "aten._local_scalar_dense.default", Kind.SYNC))
    assert len(confirm([finding("KP301", 4)], waits)) == 1
    assert confirm([finding("KP301", 4)], report(launch(4), launch(5))) == []


def test_budgets_by_plans() -> None:
    two = report(launch(4), launch(5))

    def codes(r: Report, most: int) -> list[str]:
        return [f.code for f in budgets_of_report(r, {"m.py::f": Budget(max_eager=most)})]

    assert (codes(two, 2), codes(two, 1)) == ([], ["KP401"])
    unsure = report(Launch(Kind.LIBRARY, "gemm", Count(1, 3), lines=(Span("m.py", 4),)))
    assert (codes(unsure, 3), codes(unsure, 2)) == ([], ["KP402"])
    unknown = report(launch(4), unknowns=(Unknown("aten.x.default", "no rule"),))
    assert codes(unknown, 100) == ["KP402"]
