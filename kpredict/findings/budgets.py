"""Budgets: KP401 surely over, KP402 perhaps over."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Budget
from kpredict.findings.reading import File
from kpredict.model import Count, KpredictError
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


def require(path: str, text: str, names: list[str]) -> None:
    """Raises KpredictError when a file does not define what has a budget or inputs: they would
    hold nothing."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return  # said of the file itself
    defined = {name.removeprefix(".") for name in _defined(tree.body, "")}
    for name in names:
        if name not in defined:
            near = get_close_matches(name, defined, 1, 0.6)
            raise KpredictError(
                f"{path} does not define {name}, which is given a budget or inputs.",
                f"Did you mean {near[0]}?" if near else "Name a function, method or class of it.",
            )


def _defined(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        inside = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = f"{prefix}.{node.name}"
            yield inside
        elif isinstance(node, ast.Assign):  # ENTRY = "f", fast = torch.compile(f)
            yield from (f"{prefix}.{t.id}" for t in node.targets if isinstance(t, ast.Name))
        for part in ("body", "orelse", "finalbody"):
            yield from _defined(getattr(node, part, None) or [], inside)


def said(count: Interval | Count, what: str) -> str:
    """`1 round trip`, `2..3 eager kernels`."""
    return f"{count} {what.removesuffix('s') if str(count) == '1' else what}"


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
            module, node, f"{read.name}: {said(count, what)}, the budget is {most}",
            function=read.name, before=count.lo, after=most,
            confidence=Confidence.CERTAIN if surely else Confidence.POSSIBLE,
        )  # fmt: skip
