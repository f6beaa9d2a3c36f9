"""Verification → text. Pure.

One line per entry, mode and phase, then what differs; `paste` is the report of a mismatch that a
user can put into an issue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpredict.model import Launch
from kpredict.verify.check import Checked, Verification
from kpredict.verify.compare import Row, Total, Verdict
from kpredict.verify.render_trace import duration, size

_SHOWN = 12


def text(found: Verification, *, verbose: bool = False, paste_reports: bool = True) -> str:
    lines = [f"{found.machine}; predicted for {found.target.name}, torch {found.target.torch}", ""]
    lines += _plans(found.checked)
    for note in found.notes:
        lines += ["", f"Note: {note}"]
    for failure in found.errors:
        where = f"{failure.file}::{failure.name}" if failure.name else failure.file
        lines += ["", f"error: {where}: {failure.message} {failure.hint}".rstrip()]
    for checked in found.checked:
        lines += details(checked, verbose)
    lines += ["", answer(found)]
    if paste_reports and not found.agrees:
        lines += ["", "To report a mismatch, paste this into an issue:", "", paste(found)]
    return "\n".join(lines) + "\n"


def answer(found: Verification) -> str:
    """The last line: how much of the prediction was right."""
    rows = [row for c in found.checked for row in c.comparison.rows]
    if not found.checked:
        return "Nothing was compared."
    right = sum(row.verdict in (Verdict.EQUAL, Verdict.INSIDE) for row in rows)
    plans = sum(c.comparison.agrees for c in found.checked)
    share = f" ({right / len(rows):.1%})" if rows else ""
    return (
        f"{plans} of {len(found.checked)} plans agree; "
        f"{right} of {len(rows)} launches as predicted{share}."
    )


def _plans(checked: Sequence[Checked]) -> list[str]:
    """One line per plan: counts as `2`, or `2..4: 3` inside, or `2, not 3`."""
    head = ("entry", "mode", "phase", "kernels", "library", "memcpy", "memset", "syncs", "time",
            "predicted bytes", "GB/s", "")  # fmt: skip
    body: list[tuple[str, ...]] = [head]
    for c in checked:
        body.append((
            c.name, c.mode.value, c.phase.value, *(shown(t) for t in c.comparison.totals),
            duration(c.found.time) if c.found.time else "-",
            size(c.bytes) if c.bytes else "-", f"{c.bandwidth:.0f}" if c.bandwidth else "-",
            "agrees" if c.comparison.agrees else "DIFFERS",
        ))  # fmt: skip
    widths = [max(len(row[i]) for row in body) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in body
    ]


def shown(total: Total) -> str:
    if not total.agrees:
        return f"{total.left}, not {total.right}"
    return str(total.left) if total.left.exact else f"{total.left}: {total.right}"


def details(checked: Checked, verbose: bool) -> list[str]:
    """Rows that differ (with -v all), where two profiled calls differed, and what was unknown."""
    comparison = checked.comparison
    rows = comparison.rows if verbose else comparison.mismatches
    said = [f"  unknown: {u.op}, {u.reason}" for u in checked.predicted.unknowns]
    said += [f"  not steady: {difference}" for difference in checked.found.unsteady]
    said += [f"  {note}" for note in checked.found.measured.plan.notes]
    if comparison.mismatches or checked.predicted.unknowns:
        said += [f"  assumed: {a.what} = {a.value}" for a in checked.assumptions]
    if not rows and not said:
        return []
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in comparison.verdicts.items())
    lines = ["", f"{checked.name}, {checked.mode} {checked.phase}: {verdicts}"]
    listed = rows if verbose else rows[:_SHOWN]
    for row in listed:
        lines.append(f"  {row.verdict.value:12}  {_side(row.left)}  |  {_side(row.right)}")
    if len(rows) > len(listed):
        lines.append(f"  … {len(rows) - len(listed)} more (-v shows all)")
    return lines + said


def _side(launch: Launch | None) -> str:
    if launch is None:
        return "-"
    count = "" if launch.count.exact and launch.count.lo == 1 else f" x{launch.count}"
    op = f" [{launch.ops[0]}]" if launch.ops else ""
    line = f" line {launch.lines[0].line}" if launch.lines else ""
    return f"{launch.name}{count}{op}{line}"


def paste(found: Verification) -> str:
    """Markdown for an issue: versions, then each op whose launches differ, with its arrays."""
    lines = [
        "```",
        f"kpredict {found.machine.kpredict or 'of this run'}, target {found.target.name}, "
        f"predicted with torch {found.target.torch}",
        f"measured on {found.machine}"
        + (f", triton {found.machine.triton}" if found.machine.triton else ""),
    ]
    for checked in found.checked:
        mismatches = checked.comparison.mismatches
        if not mismatches:
            continue
        lines += ["", f"{checked.mode} {checked.phase}:"]
        for row in mismatches[:20]:
            at = row.at[1]
            lines += _pasted(row, () if at is None else checked.found.measured.timings[at].arrays)
    return "\n".join([*lines, "```"])


def _pasted(row: Row, arguments: Sequence[str]) -> Iterator[str]:
    yield f"  {row.op or 'no op'}: {row.verdict.value}"
    for label, launch in (("predicted", row.left), ("measured", row.right)):
        if launch is None:
            yield f"    {label}: nothing"
            continue
        where = f", grid {launch.grid}, block {launch.block}" if launch.grid else ""
        yield f"    {label}: {launch.kind} {launch.name}, count {launch.count}{where}"
    if arguments:
        yield f"    measured with {', '.join(arguments)}"
    arrays = (
        [("reads", a) for a in row.left.reads] + [("writes", a) for a in row.left.writes]
        if row.left
        else []
    )
    for what, access in arrays:
        t = access.tensor
        yield f"    {what} {t.dtype} {list(t.shape)} strides {list(t.stride)}"
