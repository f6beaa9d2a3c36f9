"""Budgets: KP401 surely over, KP402 perhaps over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Budget
from kpredict.findings.reading import File
from kpredict.source.fusion import estimate
from kpredict.source.infer.entries import Read
from kpredict.source.infer.trace import Interval


def budget_of(budgets: Mapping[str, Budget], path: str, name: str) -> Budget | None:
    """The budget of a function: by "path::name" (path from its end), else by name. A module's own
    name stands for its `forward`."""
    names = {name, name.removesuffix(".forward")}
    for key, budget in budgets.items():
        where, _, what = key.rpartition("::")
        if what in names and (not where or path == where or path.endswith("/" + where)):
            return budget
    return None


def check_budgets(file: File, budgets: Mapping[str, Budget]) -> Iterator[Finding]:
    if not budgets:
        return
    for read in file.functions:
        budget = budget_of(budgets, file.path, read.name)
        if budget is not None:
            yield from over(file, read, budget)


def over(file: File, read: Read, budget: Budget) -> Iterator[Finding]:
    """Findings of one function against its budget."""
    counts: list[tuple[str, int | None, Interval]] = [
        ("eager kernels", budget.max_eager, read.kernels(file.target)),
    ]
    if budget.max_compiled is not None:
        fused = estimate(read.items, read.returned, lambda s: file.kernels(s).lo)
        low = 0 if fused is None else max(fused - 1, 0)
        counts.append(
            (
                "compiled kernels",
                budget.max_compiled,
                Interval(low, None if fused is None else fused + 1),
            )
        )
    node = next((n for q, n in file.nodes if q == read.name), None)
    if node is None:
        return
    for what, most, count in counts:
        if most is None or (count.hi is not None and count.hi <= most):
            continue
        surely = count.lo > most
        module = "kp401_over_budget" if surely else "kp402_maybe_over_budget"
        yield file.finding(
            module, node, f"{read.name}: {count} {what}, the budget is {most}", function=read.name,
            confidence=Confidence.CERTAIN if surely else Confidence.POSSIBLE, before=count.lo,
            after=most,
        )  # fmt: skip
