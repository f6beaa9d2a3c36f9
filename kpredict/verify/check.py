"""Predictions and a measurement → one Checked per entry, mode and phase that both have.

In: the Report of a prediction and a Bundle. Out: a Verification, which every renderer reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kpredict.model import (
    Assumption,
    Entry,
    Failure,
    KpredictError,
    Mode,
    Phase,
    Plan,
    Report,
    Target,
)
from kpredict.verify.bundle import Bundle, Machine, MeasuredEntry, MeasuredPhase
from kpredict.verify.compare import Comparison, compare


@dataclass(frozen=True, slots=True)
class Checked:
    """One phase of one entry in one mode, held against what was measured."""

    file: str
    name: str
    line: int
    mode: Mode
    phase: Phase
    predicted: Plan
    found: MeasuredPhase
    comparison: Comparison
    assumptions: tuple[Assumption, ...] = ()

    @property
    def bytes(self) -> int:
        """Predicted bytes read and written, once per call."""
        return self.predicted.transfers[1]

    @property
    def bandwidth(self) -> float | None:
        """Predicted bytes over measured time, in GB/s."""
        if not self.found.time:
            return None
        return self.bytes / self.found.time / 1e3


@dataclass(frozen=True, slots=True)
class Verification:
    machine: Machine
    target: Target
    checked: tuple[Checked, ...] = ()
    errors: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return all(c.comparison.agrees for c in self.checked)

    @property
    def exit_code(self) -> int:
        """1 when a measured count is outside its interval; else 2 when something failed."""
        if not self.agrees:
            return 1
        return 2 if self.errors or not self.checked else 0


def check(report: Report, bundle: Bundle) -> Verification:
    """Hold every measured phase against its prediction, in the order of the measurement.

    Files are known by their names, since a bundle comes from another machine. What only one side
    has is a note, unless a failure explains it.
    """
    failed = {_key(f.file, f.name) for f in (*report.errors, *bundle.errors)}
    predicted = {_key(e.file, e.name): e for e in report.entries}
    checked: list[Checked] = []
    notes: list[str] = []
    for entry in bundle.entries:
        claim = _claim(entry, predicted, report)
        if claim is None:
            if _key(entry.file, entry.name) not in failed:
                notes.append(f"{entry.name} was measured but not predicted.")
            continue
        predicted.pop(_key(claim.file, claim.name), None)
        rows = list(_phases(claim, entry))
        checked += rows
        notes += _notes(claim, entry, {(row.mode, row.phase) for row in rows})
    notes += [
        f"{entry.name} was predicted but not measured."
        for key, entry in predicted.items()
        if key not in failed
    ]
    return Verification(
        bundle.machine, report.target, tuple(checked), (*report.errors, *bundle.errors),
        tuple(notes),
    )  # fmt: skip


def _key(file: str, name: str) -> tuple[str, str]:
    return Path(file).name, name


def _claim(
    entry: MeasuredEntry, predicted: Mapping[tuple[str, str], Entry], report: Report
) -> Entry | None:
    """The prediction for a measured entry; a trace does not name its own: it is the only one."""
    if entry.name:
        return predicted.get(_key(entry.file, entry.name))
    if len(report.entries) > 1:
        names = ", ".join(e.name for e in report.entries)
        raise KpredictError(
            "A trace is held against one entry point.", f"Name one of {names} as f.py::name."
        )
    return report.entries[0] if report.entries else None


def _notes(
    claim: Entry, entry: MeasuredEntry, checked: Collection[tuple[Mode, Phase]]
) -> Iterator[str]:
    for mode, phases in entry.modes.items():
        for phase in phases:
            if (mode, phase) not in checked and mode is not Mode.AS_WRITTEN:
                yield f"{claim.name}: {mode} {phase} was measured but not predicted."
    if entry.inputs and claim.inputs != entry.inputs:
        yield (
            f"{claim.name}: predicted for {', '.join(claim.inputs)}; "
            f"measured with {', '.join(entry.inputs)}."
        )


def _phases(claim: Entry, entry: MeasuredEntry) -> Iterator[Checked]:
    for mode, phases in entry.modes.items():
        plans = dict(claim.plans[mode]) if mode in claim.plans else {}
        for phase, found in phases.items():
            if (plan := plans.get(phase)) is not None:
                yield Checked(
                    claim.file, claim.name, claim.line, mode, phase, plan, found,
                    compare(plan, found.measured.plan), claim.assumptions,
                )  # fmt: skip
