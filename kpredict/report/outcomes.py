"""Outcome ↔ JSON, in the shape of `change` in `report.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpredict.model import Count, Mode, Outcome, Totals

Json = Mapping[str, Any]


def outcome_document(o: Outcome) -> dict[str, Any]:
    return {
        "kind": o.kind,
        "title": o.title,
        "lines": [o.first, o.last],
        "before": {mode.value: _totals(t) for mode, t in o.before.items()},
        "after": {mode.value: _totals(t) for mode, t in o.after.items()},
        "note": o.note,
        "diff": o.diff,
        "failure": o.failure,
    }


def _totals(t: Totals) -> dict[str, Any]:
    return {
        "kernels": {"lo": t.kernels.lo, "hi": t.kernels.hi},
        "expected": t.expected,
        "round_trips": t.round_trips,
        "bytes": t.bytes,
        "syncs": t.syncs,
        "graph_breaks": t.graph_breaks,
    }


def read_outcome(found: Json) -> Outcome:
    """Raises KeyError, TypeError or ValueError for what `outcome_document` did not make."""
    first, last = found["lines"]
    return Outcome(
        found["kind"], found["title"], first, last, _read_modes(found["before"]),
        _read_modes(found["after"]), found["note"], found["diff"], found["failure"],
    )  # fmt: skip


def _read_modes(found: Json) -> dict[Mode, Totals]:
    return {
        Mode(mode): Totals(
            Count(t["kernels"]["lo"], t["kernels"]["hi"]), t["expected"], t["round_trips"],
            t["bytes"], t["syncs"], t["graph_breaks"],
        )
        for mode, t in found.items()
    }  # fmt: skip
