"""Changes → Outcomes: the changed program is analysed like any other, in a child process.

In: a report, its requests, and what answers requests. Out: the report with the changes of each
entry, those that bring something, the most valuable first, and at last all of them together. A
changed program that returns other shapes or dtypes is no such change and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kpredict.changes.change import Alternatives, Change, Kind, apply, compatible, diff, moved
from kpredict.changes.facts import steps, touches
from kpredict.changes.find import find
from kpredict.changes.totals import helps, totals, value
from kpredict.model import Entry, Failure, Mode, Outcome, Report, Target, Totals
from kpredict.request import Request

MOST = 24  # changes of one file; each is a run of its own
_STRIDE = re.compile(r"\]\([\d, ]+\)")
_SAID_IF_FAILED = (Kind.BY_HAND, Kind.GRAPH_BREAK, Kind.COMPILE)

Answered = Callable[[Sequence[Request]], Report]


def what_if(report: Report, requests: Sequence[Request], answered: Answered) -> Report:
    """The same report, its entries with their changes."""
    found: dict[tuple[str, str], tuple[Outcome, ...]] = {}
    for request in requests:
        entries = [e for e in report.entries if e.file == request.file]
        if entries:
            trial = _Trial(request, entries, report.target, answered)
            found |= {(e.file, e.name): tuple(o) for e, o in trial.outcomes()}
    return replace(
        report,
        entries=tuple(replace(e, changes=found.get((e.file, e.name), ())) for e in report.entries),
    )


@dataclass(slots=True)
class _Trial:
    """One file: its entries as they are, and what each change made of them."""

    request: Request
    entries: Sequence[Entry]
    target: Target
    answered: Answered
    kept: dict[str, list[tuple[Change, Outcome]]] = field(default_factory=dict)
    failed: dict[str, list[Outcome]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.entries[0].source

    def outcomes(self) -> Iterator[tuple[Entry, list[Outcome]]]:
        offers = find(self.text, self.request.file, self.entries)
        groups = [g for g in offers.edits if any(self._affected(g[0]))]
        for group in groups[:MOST]:
            self._try(group)
        for name, change in offers.whole:
            entry = next(e for e in self.entries if e.name == name)
            outcome = self._compiled(entry, change)
            if helps(outcome, self.target):
                self.kept.setdefault(name, []).append((change, outcome))
        for entry in self.entries:
            together = self._together(entry)
            kept = self._distinct(entry.name)
            kept.sort(key=lambda o: (-value(o, self.target), o.first))
            yield entry, [*kept, *together, *self.failed.get(entry.name, ())]

    def _affected(self, change: Change) -> Iterator[Entry]:
        for e in self.entries:
            if change.entry:
                if change.entry == e.name:
                    yield e
            elif touches(e, change.first, change.last) or (
                change.kind is Kind.OPTIMIZER and steps(e)
            ):
                yield e

    def _try(self, group: Alternatives) -> None:
        """The first of the alternatives that works and helps, for each entry it is about."""
        settled: set[str] = set()
        refused: dict[str, Outcome] = {}
        for change in group:
            affected = [e for e in self._affected(change) if e.name not in settled]
            if not affected:
                continue
            for entry, outcome in self._predict([change], affected):
                if outcome is None:
                    continue
                if outcome.failure:
                    refused.setdefault(entry.name, outcome)
                elif helps(outcome, self.target):
                    settled.add(entry.name)
                    self.kept.setdefault(entry.name, []).append((change, outcome))
        for name, outcome in refused.items():
            if name not in settled and group[0].kind in _SAID_IF_FAILED:
                self.failed.setdefault(name, []).append(outcome)

    def _predict(
        self, changes: Sequence[Change], affected: Sequence[Entry]
    ) -> Iterator[tuple[Entry, Outcome | None]]:
        """What the changes make of entries; None where the result is not the same any more."""
        answer = self.answered([self._changed(changes, affected)])
        made = {e.name: e for e in answer.entries}
        for entry in affected:
            after = made.get(entry.name)
            outcome = self._outcome(entry, changes)
            faults = [f for f in answer.errors if f.name in ("", entry.name)]
            lost = after is None or (faults and entry.plans.keys() - after.plans.keys())
            if after is None or lost:
                yield entry, replace(outcome, failure=_why(faults))
            elif _shapes(entry.outputs) != _shapes(after.outputs):
                yield entry, None
            else:
                note = outcome.note
                if entry.outputs != after.outputs:
                    note += f"; the result is laid out as {', '.join(after.outputs)}"
                yield entry, _common(replace(outcome, note=note, after=_of_all(after)))

    def _changed(self, changes: Sequence[Change], affected: Sequence[Entry]) -> Request:
        """The request for the changed program: only for the entries it is about."""
        scripts = any(e.name.startswith("<") for e in affected)
        modes = {m for e in affected for m in e.plans}
        if any(c.kind is Kind.COMPILE for c in changes):
            modes |= {Mode.AS_WRITTEN}
        lines: Mapping[int | str, float] = {
            moved(at, self.text, changes) if isinstance(at, int) else at: given
            for at, given in self.request.stated.items()
        }
        names = self.request.names if scripts else tuple(e.name for e in affected)
        return replace(
            self.request, names=names, modes=tuple(m for m in Mode if m in modes),
            stated=lines, text=apply(self.text, changes),
        )  # fmt: skip

    def _outcome(self, entry: Entry, changes: Sequence[Change]) -> Outcome:
        before = _of_all(entry)
        if any(c.kind is Kind.COMPILE for c in changes) and Mode.AS_WRITTEN not in before:
            before |= {Mode.AS_WRITTEN: before[Mode.EAGER]}
        several = len(changes) > 1
        return Outcome(
            "all" if several else changes[0].kind.value,
            "all of them" if several else changes[0].title,
            min(c.first for c in changes), max(c.last for c in changes), before,
            note="; ".join(dict.fromkeys(c.note for c in changes)),
            diff=diff(self.text, changes, self.request.file),
        )  # fmt: skip

    def _compiled(self, entry: Entry, change: Change) -> Outcome:
        """What compiling the entry brings: its compiled plan is that prediction."""
        now = entry.plans.get(Mode.AS_WRITTEN) or entry.plans[Mode.EAGER]
        outcome = self._outcome(entry, [change])
        return replace(
            outcome,
            before={Mode.AS_WRITTEN: totals(now)},
            after={Mode.AS_WRITTEN: totals(entry.plans[Mode.COMPILED])},
        )

    def _together(self, entry: Entry) -> list[Outcome]:
        """All changes of an entry that help and can be made at once; none where there is but one.

        Compiling is left out where the compiled column tells what it brings.
        """
        found = sorted(self.kept.get(entry.name, ()), key=lambda f: -value(f[1], self.target))
        own = compatible(
            c for c, _ in found if c.kind is not Kind.COMPILE or Mode.COMPILED not in entry.plans
        )
        if len(own) < 2:
            return []
        return [o for _, o in self._predict(own, [entry]) if o is not None]

    def _distinct(self, name: str) -> list[Outcome]:
        """An entry's outcomes, less those of several edits that bring no more than one of them."""
        found = self.kept.get(name, [])
        for several, outcome in list(found):
            parts = [o for c, o in found if set(c.edits) < set(several.edits)]
            if any(value(o, self.target) >= value(outcome, self.target) for o in parts):
                found.remove((several, outcome))
        return [o for _, o in found]


def _why(faults: Sequence[Failure]) -> str:
    return faults[0].message if faults else "the entry point is gone"


def _shapes(outputs: Sequence[str]) -> tuple[str, ...]:
    """Outputs without their strides."""
    return tuple(_STRIDE.sub("]", o) for o in outputs)


def _of_all(entry: Entry) -> dict[Mode, Totals]:
    return {mode: totals(phases) for mode, phases in entry.plans.items()}


def _common(outcome: Outcome) -> Outcome:
    """The modes that both have; for a change that compiles only what runs as written."""
    both = [m for m in Mode if m in outcome.before and m in outcome.after]
    if outcome.kind == Kind.COMPILE:
        both = [m for m in both if m is Mode.AS_WRITTEN]
    return replace(
        outcome, before={m: outcome.before[m] for m in both},
        after={m: outcome.after[m] for m in both},
    )  # fmt: skip
