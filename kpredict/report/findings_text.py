"""Findings as text: one line each that editors can click, the answer in the last line."""

from __future__ import annotations

from kpredict.findings.results import Results


def render(results: Results) -> str:
    lines = [str(f) for f in results.findings]
    for c in results.errors:
        where = f"{c.path}:{c.line}" if c.line else c.path
        lines.append(f"{where}: not read: {c.error}")
    lines += results.notes
    return "\n".join([*lines, results.sentence]) + "\n"
