"""Report → JSON, in the shape of `report.schema.json` (beside this file); pure.

Additive changes keep `schema_version`. `load.py` reads it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kpredict.bounds import Bound, launch_bound, plan_bound
from kpredict.model import (
    Access,
    Count,
    Entry,
    Failure,
    Launch,
    Plan,
    Recompile,
    Repeat,
    Report,
    Span,
    Target,
)
from kpredict.report.additions import additions
from kpredict.report.arrays import array_names
from kpredict.report.outcomes import outcome_document

SCHEMA_VERSION = 1


def render(report: Report, version: str = "", indent: int | None = None) -> str:
    return json.dumps(document(report, version), indent=indent)


def document(report: Report, version: str = "") -> dict[str, Any]:
    """The report as plain dicts and lists."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "kpredict", "version": version},
        "target": _target(report.target),
        "entries": [_entry(e, report.target) for e in report.entries],
        "errors": [_failure(f) for f in report.errors],
        "skipped": [_failure(f) for f in report.skipped],
    }


def _target(t: Target) -> dict[str, Any]:
    return {
        "name": t.name, "gpu": t.gpu, "sm": t.sm, "sms": t.sms, "torch": t.torch, "cuda": t.cuda,
        "bandwidth_gb_s": t.bandwidth, "fp32_tflops": t.fp32_tflops, "tf32_tflops": t.tf32_tflops,
        "fp16_tflops": t.fp16_tflops, "launch_us": t.launch_us,
    }  # fmt: skip


def _failure(f: Failure) -> dict[str, Any]:
    return {"file": f.file, "name": f.name, "line": f.line, "message": f.message, "hint": f.hint}


def _entry(entry: Entry, target: Target) -> dict[str, Any]:
    return {
        "file": entry.file,
        "name": entry.name,
        "line": entry.line,
        "inputs": list(entry.inputs),
        "plans": {
            mode.value: {
                phase.value: plan_document(
                    plan, target, entry.array_names.get(mode, {}), entry.file
                )
                for phase, plan in phases
            }
            for mode, phases in entry.plans.items()
        },
        "graph_breaks": [
            {**_at(b.line, entry.file), "reason": b.reason} for b in entry.graph_breaks
        ],
        "assumptions": [
            {"what": a.what, "value": a.value, **_at(a.line, entry.file)} for a in entry.assumptions
        ],
        "unknowns": [
            {
                "op": u.op,
                "reason": u.reason,
                "lines": [s.line for s in u.lines if s.file == entry.file],
            }
            for u in entry.unknowns
        ],
        "repeats": [_repeat(r, entry.file) for r in entry.repeats],
        "additions": [
            {
                "line": a.line,
                "phase": a.phase.value,
                "eager": a.eager,
                "compiled": a.compiled,
                "added": a.added,
                "reason": a.reason,
            }
            for a in additions(entry)
        ],
        "calls": {str(line): n for line, n in entry.calls.items() if n > 1},
        **_changes(entry),
    }


def _changes(entry: Entry) -> dict[str, Any]:
    """Nothing when nobody asked what could be changed."""
    return {} if entry.changes is None else {"changes": list(map(outcome_document, entry.changes))}


def _at(span: Span | None, file: str) -> dict[str, Any]:
    """The line in the entry's file; a `place` (file:line) when it is another's."""
    if span is None or span.file == file:
        return {"line": None if span is None else span.line}
    return {"line": None, "place": f"{span.file}:{span.line}"}


def plan_document(
    plan: Plan, target: Target, known: Mapping[int, str] | None = None, file: str | None = None
) -> dict[str, Any]:
    """One plan; its bound is the target's, `known` names its storages. A launch's `lines` are those
    in `file` (None: in any), its `places` the lines of other files."""
    names = array_names(plan, known or {})
    arrays, size = plan.transfers
    return {
        "kernels": _count(plan.kernels),
        "library_calls": plan.library_calls,
        "memcpy": plan.memcpy.hi,
        "memset": plan.memset.hi,
        "syncs": plan.syncs.hi,
        "cuda_graphs": plan.graph_launches,
        "host_launches": _count(plan.host_launches),
        "transfers": {"arrays": arrays, "bytes": size},
        "round_trips": {"arrays": len(plan.round_trips), "bytes": plan.round_trip_bytes},
        "bound_us": bound_document(plan_bound(plan, target)),
        "launches": [_launch(launch, target, names, file) for launch in plan.launches],
        "intermediates": [
            {
                "name": names.get(r.tensor.storage, ""), "shape": list(r.tensor.shape),
                "dtype": r.tensor.dtype, "writer": r.writer, "readers": list(r.readers),
                "bytes": r.bytes,
            }
            for r in plan.round_trips
        ],
        "barriers": [
            {"producer": b.producer, "consumer": b.consumer, "reason": b.reason, "detail": b.detail}
            for b in plan.barriers
        ],
        "recompiles": [_recompile(r, file) for r in plan.recompiles],
        "notes": list(plan.notes),
    }  # fmt: skip


def _repeat(repeat: Repeat, file: str) -> dict[str, Any]:
    again = repeat.recompile
    return {
        "call": repeat.call, "line": repeat.line, "inputs": list(repeat.inputs),
        "kernels": _count(repeat.kernels),
        "recompile": None if again is None else _recompile(again, file),
    }  # fmt: skip


def _recompile(again: Recompile, file: str | None) -> dict[str, Any]:
    return {
        "function": again.function, "call": again.call, **_at(again.line, file or ""),
        "reason": again.reason, "dynamic": list(again.dynamic), "region": again.region,
    }  # fmt: skip


def _count(count: Count) -> dict[str, int]:
    return {"lo": count.lo, "hi": count.hi}


def bound_document(bound: Bound) -> dict[str, Any]:
    """Microseconds to four digits."""
    return {
        "total": _rounded(bound.total), "limited_by": bound.limited_by,
        "launches": _rounded(bound.launches), "memory": _rounded(bound.memory),
        "compute": _rounded(bound.compute),
    }  # fmt: skip


def _rounded(microseconds: float) -> float:
    return float(f"{microseconds:.4g}")


def _launch(
    launch: Launch, target: Target, names: Mapping[int, str], file: str | None
) -> dict[str, Any]:
    memory, compute = launch_bound(launch, target)
    return {
        "kind": launch.kind.value,
        "name": launch.name,
        "count": _count(launch.count),
        "expected": launch.expected,
        "ops": list(launch.ops),
        "lines": [s.line for s in launch.lines if file in (None, s.file)],
        "places": [f"{s.file}:{s.line}" for s in launch.lines if file not in (None, s.file)],
        "reads": [_access(a, names) for a in launch.reads],
        "writes": [_access(a, names) for a in launch.writes],
        "basis": launch.basis.value,
        "because": launch.because,
        "phase": launch.phase.value,
        "region": launch.region,
        "module": launch.module,
        "grid": list(launch.grid) if launch.grid else None,
        "block": list(launch.block) if launch.block else None,
        "flops": launch.flops,
        "cuda_graph": launch.replay or None,
        "precision": launch.precision,
        "bound_us": {"memory": _rounded(memory), "compute": _rounded(compute)},
    }


def _access(access: Access, names: Mapping[int, str]) -> dict[str, Any]:
    t = access.tensor
    return {
        "name": names.get(t.storage, ""), "shape": list(t.shape), "dtype": t.dtype,
        "bytes": access.bytes,
    }  # fmt: skip
