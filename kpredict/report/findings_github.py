"""Findings as workflow commands of GitHub Actions: worst first, at most ten of them.

GitHub shows ten annotations of a kind for a step and drops the rest, so the last one says how many
more there are. A budget that does not hold is an error, everything else a warning.
"""

from __future__ import annotations

from kpredict.findings.results import Results
from kpredict.report.findings_sarif import level

MOST = 10


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def render(results: Results) -> str:
    lines: list[str] = []
    for c in results.errors[:MOST]:
        where = f"file={_property(c.path)}" + (f",line={c.line}" if c.line else "")
        lines.append(f"::error title=kpredict,{where}::{_data(c.error)}")
    ranked = results.worst_first
    shown = ranked if len(ranked) <= MOST else ranked[: MOST - 1]
    for f in shown:
        cell = f" (cell {f.cell})" if f.cell is not None else ""
        lines.append(
            f"::{level(f.code)} title={_property(f'kpredict ({f.code})')},file={_property(f.path)},"
            f"line={f.line},col={f.column}::{_data(f'{f.code} {f.name}: {f.message}{cell}')}"
        )
    if len(ranked) > len(shown):
        lines.append(f"::warning title=kpredict::+{len(ranked) - len(shown)} more findings")
    lines += [f"::notice title=kpredict::{_data(note)}" for note in results.notes[:MOST]]
    lines.append(results.sentence)
    return "\n".join(lines) + "\n"
