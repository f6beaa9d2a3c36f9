"""Absolute paths of a run → paths as a report shows them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kpredict.model import GraphBreak, Phases, Plan, Span


def shown_path(path: str, file: str, given: str) -> str:
    """`given` for the analysed file itself; else relative to here, or inside its package folder."""
    if path == file:
        return given
    for marker in ("/site-packages/", "/dist-packages/"):
        if marker in path:
            return path.rsplit(marker, 1)[1]
    here = os.getcwd() + os.sep
    return path.removeprefix(here) if path.startswith(here) else Path(path).name


def relabel(phases: Phases, rename: Callable[[Span], Span]) -> Phases:
    """The same plans with every span renamed."""
    return Phases(**{phase.value: _plan(plan, rename) for phase, plan in phases})


def _plan(plan: Plan, rename: Callable[[Span], Span]) -> Plan:
    def all_of(spans: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple(rename(s) for s in spans)

    def breaks(found: tuple[GraphBreak, ...]) -> tuple[GraphBreak, ...]:
        return tuple(replace(b, line=rename(b.line)) if b.line else b for b in found)

    return replace(
        plan,
        launches=tuple(replace(x, lines=all_of(x.lines)) for x in plan.launches),
        unknowns=tuple(replace(u, lines=all_of(u.lines)) for u in plan.unknowns),
        graph_breaks=breaks(plan.graph_breaks),
        skipped=breaks(plan.skipped),
        recompiles=tuple(replace(r, line=rename(r.line)) if r.line else r for r in plan.recompiles),
    )
