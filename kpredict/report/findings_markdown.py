"""Findings as a Markdown table, for a job's summary or a comment."""

from __future__ import annotations

from kpredict.findings.results import Results


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def render(results: Results) -> str:
    lines = ["### kpredict", "", results.sentence, ""]
    if results.findings:
        lines += ["| where | code | what | kernels |", "|---|---|---|---|"]
        for f in results.findings:
            cell = f" cell {f.cell}" if f.cell is not None else ""
            change = "" if f.before is None or f.after is None else f"{f.before} → {f.after}"
            lines.append(
                f"| `{_cell(f.path)}{cell}:{f.line}` | {f.code} {f.name} "
                f"| {_cell(f.message)} | {change} |"
            )
        lines.append("")
    for c in results.errors:
        lines.append(f"- `{c.path}` was not read: {_cell(c.error)}")
    lines += [f"- {_cell(note)}" for note in results.notes]
    return "\n".join(lines).rstrip() + "\n"
