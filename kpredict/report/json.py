"""Report → JSON, in the shape of `report.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from kpredict.model import Access, Count, Entry, Launch, Plan, Report

SCHEMA_VERSION = 1


def render(report: Report, version: str = "", indent: int | None = None) -> str:
    return json.dumps(document(report, version), indent=indent)


def document(report: Report, version: str = "") -> dict[str, Any]:
    t = report.target
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "kpredict", "version": version},
        "target": {
            "name": t.name, "gpu": t.gpu, "sm": t.sm, "sms": t.sms, "torch": t.torch,
            "cuda": t.cuda, "bandwidth_gb_s": t.bandwidth,
        },
        "entries": [_entry(e) for e in report.entries],
        "errors": [
            {"file": f.file, "name": f.name, "line": f.line, "message": f.message, "hint": f.hint}
            for f in report.errors
        ],
    }  # fmt: skip


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "file": entry.file,
        "name": entry.name,
        "line": entry.line,
        "inputs": list(entry.inputs),
        "plans": {
            mode.value: {phase.value: _plan(plan) for phase, plan in phases}
            for mode, phases in entry.plans.items()
        },
        "graph_breaks": [
            {"line": b.line.line if b.line else None, "reason": b.reason}
            for b in entry.graph_breaks
        ],
        "assumptions": [
            {"what": a.what, "value": a.value, "line": a.line.line if a.line else None}
            for a in entry.assumptions
        ],
        "unknowns": [
            {"op": u.op, "reason": u.reason, "lines": [s.line for s in u.lines]}
            for u in entry.unknowns
        ],
    }


def _count(count: Count) -> dict[str, int]:
    return {"lo": count.lo, "hi": count.hi}


def _plan(plan: Plan) -> dict[str, Any]:
    arrays, size = plan.transfers
    return {
        "kernels": _count(plan.kernels),
        "library_calls": plan.library_calls,
        "memcpy": plan.memcpy.hi,
        "memset": plan.memset.hi,
        "syncs": plan.syncs.hi,
        "transfers": {"arrays": arrays, "bytes": size},
        "round_trips": {"arrays": len(plan.round_trips), "bytes": plan.round_trip_bytes},
        "launches": [_launch(launch) for launch in plan.launches],
    }


def _launch(launch: Launch) -> dict[str, Any]:
    return {
        "kind": launch.kind.value,
        "name": launch.name,
        "count": _count(launch.count),
        "ops": list(launch.ops),
        "lines": [s.line for s in launch.lines],
        "reads": [_access(a) for a in launch.reads],
        "writes": [_access(a) for a in launch.writes],
        "basis": launch.basis.value,
        "because": launch.because,
    }


def _access(access: Access) -> dict[str, Any]:
    t = access.tensor
    return {"name": "", "shape": list(t.shape), "dtype": t.dtype, "bytes": access.bytes}
