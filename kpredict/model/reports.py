"""What a user is told: entries and their plans on a target, what failed, what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpredict.model.launches import Assumption, GraphBreak, Repeat, Unknown
from kpredict.model.plans import Phases
from kpredict.model.words import Count, KpredictError, Mode


@dataclass(frozen=True, slots=True)
class Target:
    """The GPU and torch a count is for. Figures are public ones; bandwidth in GB/s, peak in
    TFLOP/s (dense), cache and memory in MiB, clock in MHz, shared memory in bytes per block."""

    name: str
    gpu: str
    capability: tuple[int, int]
    sms: int
    bandwidth: float
    l2: int
    clock: int
    memory: int
    max_threads_per_sm: int
    shared_per_block: int
    shared_per_sm: int
    shared_optin: int
    fp32_tflops: float
    tf32_tflops: float
    fp16_tflops: float
    launch_us: float = 2.5
    torch: str = "2.13.0"
    cuda: int = 13

    @property
    def sm(self) -> int:
        """Compute capability as one number: 90 for 9.0."""
        return self.capability[0] * 10 + self.capability[1]

    @property
    def release(self) -> tuple[int, int]:
        """The torch release as numbers: (2, 13)."""
        major, minor = self.torch.split(".")[:2]
        return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class Totals:
    """What one mode launches and moves over all its phases; `expected` kernels of an interval."""

    kernels: Count
    expected: int
    round_trips: int
    bytes: int
    syncs: int = 0
    graph_breaks: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change of the source that keeps what it computes, and what it brings.

    `kind` is "by-hand", "compile", "graph-break", "cast", "copy", "optimizer", or "all" for
    everything together. `first` and `last` are the lines it is about; `diff` is the edit as a
    unified diff. `after` is predicted of the changed program as `before` is of the file. `failure`
    says why the changed program could not be analysed.
    """

    kind: str
    title: str
    first: int
    last: int
    before: Mapping[Mode, Totals] = field(default_factory=dict)
    after: Mapping[Mode, Totals] = field(default_factory=dict)
    note: str = ""
    diff: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry point's answer: its plans by mode and phase, and what they rest on.

    `calls` says how often a line of the file ran, `array_names` what to call a storage, by mode.
    `repeats` are the calls that the file makes of it with different inputs, when they are several.
    `outputs` are what it returned, in the words of `inputs`. `changes` are what could be changed,
    the most valuable first; None when nobody asked.
    """

    file: str
    name: str
    line: int
    inputs: tuple[str, ...] = ()
    plans: Mapping[Mode, Phases] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    source: str = ""
    array_names: Mapping[Mode, Mapping[int, str]] = field(default_factory=dict)
    calls: Mapping[int, int] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    changes: tuple[Outcome, ...] | None = None
    repeats: tuple[Repeat, ...] = ()

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        return tuple(u for ps in self.plans.values() for _, p in ps for u in p.unknowns)

    @property
    def graph_breaks(self) -> tuple[GraphBreak, ...]:
        return tuple(b for ps in self.plans.values() for _, p in ps for b in p.graph_breaks)

    @property
    def skipped(self) -> tuple[GraphBreak, ...]:
        return tuple(b for ps in self.plans.values() for _, p in ps for b in p.skipped)


@dataclass(frozen=True, slots=True)
class Failure:
    """An entry point or file that could not be analysed: a result too. `skipped` marks one that
    nobody asked for by name and that lacks inputs only."""

    file: str
    message: str
    hint: str = ""
    name: str = ""
    line: int = 0
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All that one run found out; saved as JSON it can be rendered later in any format."""

    target: Target
    entries: tuple[Entry, ...] = ()
    errors: tuple[Failure, ...] = ()
    skipped: tuple[Failure, ...] = ()
    seconds: float = 0.0
    peak_mb: float = 0.0

    @property
    def eager(self) -> Phases:
        """The first entry's eager plans: `report.eager.forward.kernels`."""
        return self._plans(Mode.EAGER)

    @property
    def compiled(self) -> Phases:
        """The first entry's compiled plans."""
        return self._plans(Mode.COMPILED)

    def _plans(self, mode: Mode) -> Phases:
        if not self.entries or mode not in self.entries[0].plans:
            raise KpredictError(f"The report has no {mode} plan.", "Ask for it with modes=.")
        return self.entries[0].plans[mode]


@dataclass(frozen=True, slots=True)
class Turn:
    """Where an entry's mode stops to be bound by launches: it is at the size `below`, and at
    `above` it is bound by `by`, "memory" or "compute". Both sizes were predicted."""

    file: str
    name: str
    mode: Mode
    below: int
    above: int
    by: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same entries side by side: a report for each value of what is varied, "target" or the
    name of a dimension; `turns` belong to sizes."""

    varied: str
    points: tuple[tuple[str, Report], ...]
    turns: tuple[Turn, ...] = ()

    def entry(self, label: str, file: str, name: str) -> Entry | None:
        """An entry at one point; None where it could not be analysed."""
        report = dict(self.points)[label]
        return next((e for e in report.entries if (e.file, e.name) == (file, name)), None)

    @property
    def entries(self) -> tuple[tuple[str, str], ...]:
        """(file, name) of everything that was analysed at any point, in order."""
        return tuple(dict.fromkeys((e.file, e.name) for _, r in self.points for e in r.entries))
