"""What could be changed and what it brings, as lines of an entry's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kpredict.model import Entry, Mode, Outcome, Totals
from kpredict.report.quantities import listed, plural, size
from kpredict.report.style import BOLD, TITLES, Style

_LITTLE = 0.01  # of the bytes: not worth a word
_NOUNS = {"round_trips": "round trip", "syncs": "sync", "graph_breaks": "graph break"}


def what_if(entry: Entry, style: Style) -> Iterator[str]:
    """One line a change; with -v also what to know of it, and its edit."""
    if entry.changes is None:
        return
    yield ""
    yield style.paint("  what if", BOLD)
    if not entry.changes:
        yield "    no change is known that launches less and computes the same"
        return
    titles_of = dict(TITLES)
    if Mode.AS_WRITTEN not in entry.plans:
        titles_of[Mode.AS_WRITTEN] = "as run"
    rows = [(_where(o), o.title, o) for o in entry.changes]
    places, titles = max(len(w) for w, _, _ in rows), max(len(t) for _, t, _ in rows)
    for where, title, outcome in rows:
        yield style.cut(
            f"    {where:<{places}}  {title:<{titles}}  {effect(outcome, titles_of)}".rstrip()
        )
        if style.verbose:
            yield from (f"        {line}" for line in _details(outcome))


def _where(outcome: Outcome) -> str:
    if outcome.kind == "all":
        return ""
    if outcome.first == outcome.last:
        return f"line {outcome.first}"
    return f"lines {outcome.first}-{outcome.last}"


def _details(outcome: Outcome) -> Iterator[str]:
    if outcome.note:
        yield outcome.note
    yield from outcome.diff.splitlines()


def effect(outcome: Outcome, titles: Mapping[Mode, str] = TITLES) -> str:
    """`eager 12 → 8 kernels, compiled 3 → 3; 4 round trips, 24 MB less`."""
    if outcome.failure:
        return f"the changed program fails: {outcome.failure.replace('FakeTensor', 'Tensor')}"
    modes = [m for m in Mode if m in outcome.after]
    counts = [
        f"{titles[m]} {_kernels(outcome.before[m])} → {_kernels(outcome.after[m])}" for m in modes
    ]
    if counts:
        counts[0] += " kernels"
    parts = [", ".join(counts)]
    amounts = {m: _amounts(outcome.before[m], outcome.after[m]) for m in modes}
    for mode, text in amounts.items():
        if mode is modes[0]:
            parts += [text] if text else []
        elif text and text != amounts[modes[0]]:
            parts.append(f"{titles[mode]} {text}")
    return "; ".join(parts)


def _kernels(t: Totals) -> str:
    return str(t.kernels) if t.kernels.exact else f"~{t.expected}"


def _amounts(before: Totals, after: Totals) -> str:
    """Round trips, bytes, syncs and graph breaks: what there is less of, then what is more."""
    less: list[str] = []
    more: list[str] = []
    for name in ("round_trips", "bytes", "syncs", "graph_breaks"):
        n = getattr(before, name) - getattr(after, name)
        if name == "bytes" and abs(n) < _LITTLE * before.bytes:
            continue
        if n:
            text = size(abs(n)) if name == "bytes" else plural(abs(n), _NOUNS[name])
            (less if n > 0 else more).append(text)
    told = [f"{listed(x)} {word}" for x, word in ((less, "less"), (more, "more")) if x]
    return "; ".join(told)
