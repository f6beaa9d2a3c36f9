"""Report → text for people: annotated source, totals, launches, doubts, and the answer last.

Pure: the same report and Style give the same text. Nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kpredict.model import ZERO, Entry, Mode, Phase, Phases, Plan, Report, Span, Target
from kpredict.report.additions import additions
from kpredict.report.changes import what_if
from kpredict.report.gutter import annotated
from kpredict.report.launches import launch_tables, places
from kpredict.report.quantities import expected, listed, plural, size
from kpredict.report.style import BOLD, TITLES, YELLOW, Style, aligned, style_for
from kpredict.report.totals import totals
from kpredict.report.why import bounds, why_not_fewer

__all__ = ["Style", "answer", "render", "style_for"]


def render(report: Report, style: Style | None = None) -> str:
    style = style or Style()
    parts: list[str] = []
    if not style.quiet:
        for entry in report.entries:
            parts += [*_entry(entry, report.target, style), ""]
        for skipped in report.skipped:
            where = f"{skipped.file}:{skipped.line}"
            parts.append(style.paint(f"not analysed: {where} {skipped.message}", YELLOW))
            parts.append(f"  hint: {skipped.hint}")
        if report.skipped:
            parts.append("")
    scripts = [e for e in report.entries if e.name.startswith("<")]
    callables = [e for e in report.entries if not e.name.startswith("<")]
    parts += [answer(entry, report.target) for entry in (*scripts, *callables)]
    if len(callables) > 1:
        parts.append(_answer_of_all(callables, report.target))
    return "\n".join(parts) + "\n" if parts else ""


def _entry(entry: Entry, target: Target, style: Style) -> Iterator[str]:
    title = (
        f"{entry.file}:{entry.line} {entry.name}" if entry.line else f"{entry.file} {entry.name}"
    )
    yield style.paint(title, BOLD)
    if entry.inputs:
        yield style.cut(f"  inputs: {listed(entry.inputs)}")
    yield ""
    yield from annotated(entry, style)
    for phase in Phase:
        plans = {m: getattr(ps, phase.value) for m, ps in entry.plans.items()}
        present = {m: p for m, p in plans.items() if p is not None}
        if present:
            yield ""
            yield from totals(phase, present, target, style)
    yield from launch_tables(entry, target, style)
    if style.verbose:
        yield from _listed("why not fewer", why_not_fewer(entry), style)
        yield from _listed("time that cannot be beaten", bounds(entry, target), style)
    yield from _listed("more when compiled", (str(a) for a in additions(entry)), style)
    yield from _repeats(entry, style)
    yield from _doubts(entry, style)
    yield from what_if(entry, style)


def _listed(title: str, lines: Iterator[str], style: Style) -> Iterator[str]:
    found = list(lines)
    if found:
        yield ""
        yield style.paint(f"  {title}", BOLD)
        yield from (style.cut(f"    {line}") for line in found)


def _repeats(entry: Entry, style: Style) -> Iterator[str]:
    """The calls that the file makes with different inputs, and which of them compile again."""
    if not entry.repeats:
        return
    table = [["call", "line", "inputs", "kernels", "torch.compile"]]
    for r in entry.repeats:
        told = "compiles it" if r is entry.repeats[0] else "runs what it has"
        if r.recompile is not None:
            told = f"compiles it again: {r.recompile.reason}{r.recompile.becomes}"
        line = "" if r.line is None else str(r.line)
        table.append([str(r.call), line, listed(r.inputs), str(r.kernels), told])
    yield ""
    yield style.paint("  its calls in this file, under one torch.compile", BOLD)
    yield from (style.cut(line) for line in aligned(table, style))


def _doubts(entry: Entry, style: Style) -> Iterator[str]:
    said: list[str] = []
    unknown: dict[tuple[str, str], list[Span]] = {}
    for u in entry.unknowns:
        unknown.setdefault((u.op, u.reason), []).extend(u.lines)
    for (op, reason), spans in unknown.items():
        lines = places(spans, entry.file, 0 if style.verbose else 4)
        where = f" ({lines})" if lines else ""
        said.append(f"unknown: {op}{where}: {reason}; its launches are not counted")
    for a in entry.assumptions:
        where = _on(a.line, entry.file)
        flag = f"--assume {a.line.line}=VALUE" if a.line else "--assume '*=VALUE'"
        said.append(f"assumed: {a.what}{where} is {a.value} ({flag} changes it)")
    for b in entry.graph_breaks:
        where = _on(b.line, entry.file)
        reason = b.reason if style.verbose else b.reason.partition(": ")[0]
        said.append(f"graph break{where}: {reason}")
    for ps in entry.plans.values():
        said += [f"recompile{_on(r.line, entry.file)}: {r}" for _, p in ps for r in p.recompiles]
        said += [f"note: {note}" for _, plan in ps for note in plan.notes]
    if said:
        yield ""
        yield from (style.paint(f"  {s}", YELLOW) for s in dict.fromkeys(said))


def _on(span: Span | None, file: str) -> str:
    if span is None:
        return ""
    return f" on line {span.line}" if span.file == file else f" at {span.file}:{span.line}"


def answer(entry: Entry, target: Target) -> str:
    """The entry in one sentence, with the target."""
    sentence = _comparison(entry)
    unknown = len({u.op for u in entry.unknowns})
    doubt = f"; {plural(unknown, 'op')} unknown and not counted" if unknown else ""
    return f"{entry.name}: {sentence}{_added(entry)}{doubt} [{_target(target)}]"


def _added(entry: Entry) -> str:
    """Where compiling launches most more, and how many other lines there are like it."""
    found = sorted(additions(entry), key=lambda a: -a.added)
    if not found:
        return ""
    reason = found[0].reason.partition("; ")[0]
    others = len({a.line for a in found} - {found[0].line})
    more = f" (and on {plural(others, 'more line')})" if others else ""
    return f"; {replace(found[0], reason=reason)}{more}"


def _comparison(entry: Entry) -> str:
    sums = {m: _total(list(ps)) for m, ps in entry.plans.items()}
    told = [
        f"{TITLES[m]} {plural(sums[m].kernels, 'kernel')}{_in_graphs(entry.plans[m])}"
        for m in Mode
        if m in sums
    ]
    text = ", ".join(told)
    if Mode.EAGER in sums and Mode.COMPILED in sums:
        before, after = sums[Mode.EAGER], sums[Mode.COMPILED]
        text += f"; {_saved(before, after)}"
    return text


def _in_graphs(phases: Phases) -> str:
    """How few launches the host makes of them, where CUDA graphs replay some."""
    if not any(plan.graph_launches for _, plan in phases):
        return ""
    launches = sum((plan.host_launches for _, plan in phases), ZERO)
    graphs = plural(sum(plan.graph_launches for _, plan in phases), "CUDA graph")
    return f" in {plural(launches, 'host launch', 'host launches')} ({graphs})"


def _saved(before: Plan, after: Plan) -> str:
    """`saved: 1 launch, 8 MB; added: 1 round trip`: what compiling takes away and what it adds."""
    exact = before.kernels.exact and after.kernels.exact
    launches = expected(before) - expected(after)
    trips = len(before.round_trips) - len(after.round_trips)
    moved = before.transfers[1] - after.transfers[1]
    about = "" if exact else "~"
    amounts = (
        (launches, f"{about}{plural(abs(launches), 'launch', 'launches')}"),
        (trips, plural(abs(trips), "round trip")),
        (moved, size(abs(moved))),
    )
    saved = [text for n, text in amounts if n > 0]
    added = [text for n, text in amounts if n < 0]
    parts = [f"saved: {listed(saved)}" if saved else "nothing saved"]
    return "; ".join([*parts, *([f"added: {listed(added)}"] if added else [])])


def _total(phases: Sequence[tuple[Phase, Plan]]) -> Plan:
    """All phases as one plan, for its totals only: the indexes in it mean nothing."""
    return Plan(
        tuple(x for _, p in phases for x in p.launches),
        tuple(t for _, p in phases for t in p.round_trips),
    )


def _answer_of_all(entries: Sequence[Entry], target: Target) -> str:
    told = []
    for mode in Mode:
        plans = [e.plans[mode] for e in entries if mode in e.plans]
        if plans:
            total = sum((ps.kernels for ps in plans), ZERO)
            told.append(f"{TITLES[mode]} {plural(total, 'kernel')}")
    return f"{len(entries)} entry points: {', '.join(told)} [{_target(target)}]"


def _target(target: Target) -> str:
    return f"{target.gpu}, sm_{target.sm}, torch {target.torch}"
