"""Verification → a JSON document, JUnit, a Chrome trace. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from kpredict.model import Access, Launch, Tensor
from kpredict.verify.check import Checked, Verification
from kpredict.verify.compare import Comparison
from kpredict.verify.render_text import details, shown

SCHEMA_VERSION = 1


def document(found: Verification, version: str = "") -> dict[str, Any]:
    """Launches have the shape they have in a report; measured ones also a duration."""
    m, t = found.machine, found.target
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "kpredict", "version": version},
        "target": {"name": t.name, "gpu": t.gpu, "sm": t.sm, "sms": t.sms, "torch": t.torch},
        "machine": {
            "gpu": m.gpu, "sm": m.capability[0] * 10 + m.capability[1], "sms": m.sms,
            "driver": m.driver, "cuda": m.cuda, "torch": m.torch, "triton": m.triton,
            "python": m.python, "kpredict": m.kpredict,
        },
        "agrees": found.agrees,
        "comparisons": [_checked(c) for c in found.checked],
        "notes": list(found.notes),
        "errors": [
            {"file": f.file, "name": f.name, "line": f.line, "message": f.message, "hint": f.hint}
            for f in found.errors
        ],
    }  # fmt: skip


def _checked(c: Checked) -> dict[str, Any]:
    return {
        "file": c.file, "name": c.name, "line": c.line, "mode": c.mode.value,
        "phase": c.phase.value,
        **comparison(c.comparison, [t.duration for t in c.found.measured.timings]),
        "unsteady": list(c.found.unsteady),
        "unknowns": [{"op": u.op, "reason": u.reason} for u in c.predicted.unknowns],
        "time_us": c.found.time, "calls_timed": c.found.calls, "predicted_bytes": c.bytes,
        "bandwidth_gb_s": c.bandwidth,
    }  # fmt: skip


def comparison(found: Comparison, durations: Sequence[float] = ()) -> dict[str, Any]:
    """One comparison of two plans, whatever they are; `durations` belong to the right one."""
    left, right = found.labels
    rows = []
    for row in found.rows:
        out: dict[str, Any] = {"verdict": row.verdict.value, "op": row.op}
        out[left] = _launch(row.left)
        out[right] = _launch(row.right)
        at = row.at[1]
        if out[right] is not None and at is not None and at < len(durations):
            out[right]["duration_us"] = durations[at]
        rows.append(out)
    return {
        "agrees": found.agrees,
        "identical": found.identical,
        "verdicts": {verdict.value: n for verdict, n in found.verdicts.items()},
        "totals": [
            {
                "what": t.what, left: {"lo": t.left.lo, "hi": t.left.hi},
                right: {"lo": t.right.lo, "hi": t.right.hi}, "agrees": t.agrees,
            }
            for t in found.totals
        ],
        "rows": rows,
    }  # fmt: skip


def _launch(launch: Launch | None) -> dict[str, Any] | None:
    if launch is None:
        return None
    return {
        "kind": launch.kind.value, "name": launch.name,
        "count": {"lo": launch.count.lo, "hi": launch.count.hi}, "ops": list(launch.ops),
        "lines": [s.line for s in launch.lines],
        "grid": launch.grid, "block": launch.block,
        "reads": [_access(a) for a in launch.reads], "writes": [_access(a) for a in launch.writes],
        "basis": launch.basis.value, "because": launch.because,
    }  # fmt: skip


def _access(access: Access) -> dict[str, Any]:
    t: Tensor = access.tensor
    return {"name": "", "shape": list(t.shape), "dtype": t.dtype, "bytes": access.bytes}


def junit(found: Verification) -> str:
    """One test case per plan; a plan that differs is a failure, a file that failed an error."""
    cases: list[str] = []
    for c in found.checked:
        name = quoteattr(f"{c.name} {c.mode} {c.phase}")
        head = f"<testcase classname={quoteattr(c.file)} name={name}"
        if c.comparison.agrees:
            cases.append(f"{head}/>")
            continue
        wrong = "; ".join(f"{t.what} {shown(t)}" for t in c.comparison.totals if not t.agrees)
        body = escape("\n".join(details(c, verbose=False)).strip())
        cases.append(f"{head}><failure message={quoteattr(wrong)}>{body}</failure></testcase>")
    for f in found.errors:
        name = quoteattr(f.name or f.file)
        cases.append(
            f"<testcase classname={quoteattr(f.file)} name={name}>"
            f"<error message={quoteattr(f.message)}>{escape(f.hint)}</error></testcase>"
        )
    failures = sum(not c.comparison.agrees for c in found.checked)
    head = (
        f'<testsuite name="kpredict verify" tests="{len(cases)}" failures="{failures}" '
        f'errors="{len(found.errors)}">'
    )
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, *cases, "</testsuite>", ""])


_LANES = (("predicted", 1), ("measured", 2))
_UNMEASURED = 1.0  # µs: how long a launch is drawn that never ran


def chrome(found: Verification) -> str:
    """For chrome://tracing and Perfetto: per plan a predicted lane beside the measured one.

    A predicted launch is drawn where its measured partner ran; one without a partner is drawn
    right after the launch before it, for the time its bytes take at the target's bandwidth.
    """
    events: list[dict[str, Any]] = []
    for i, c in enumerate(found.checked):
        process = i + 1
        name = f"{c.name} {c.mode} {c.phase}"
        events.append(_named("process_name", process, 0, name))
        events += (_named("thread_name", process, lane, label) for label, lane in _LANES)
        events += _drawn(c, process, found.target.bandwidth)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})


def _named(what: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": lane, "args": {"name": name}}


def _drawn(c: Checked, process: int, bandwidth: float) -> Iterator[dict[str, Any]]:
    timings = c.found.measured.timings
    first = min((t.start for t in timings), default=0.0)
    until = 0.0
    for row in c.comparison.rows:
        at = row.at[1]
        if at is not None:
            begin, lasts = timings[at].start - first, timings[at].duration
        else:
            begin = until
            lasts = max(_bytes(row.left) / bandwidth / 1e3, _UNMEASURED)
        until = begin + lasts
        for (_, lane), launch in zip(_LANES, (row.left, row.right), strict=True):
            if launch is not None:
                yield {
                    "ph": "X", "cat": launch.kind.value, "name": launch.name, "pid": process,
                    "tid": lane, "ts": begin, "dur": lasts,
                    "args": {
                        "verdict": row.verdict.value, "op": row.op, "count": str(launch.count),
                        "line": launch.lines[0].line if launch.lines else None,
                    },
                }  # fmt: skip


def _bytes(launch: Launch | None) -> int:
    accesses: Iterable[Access] = (*launch.reads, *launch.writes) if launch else ()
    return sum(a.bytes for a in accesses)
