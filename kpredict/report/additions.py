"""Lines on which compiling launches more kernels than eager does, and why.

In: an Entry with both plans. Out: one Addition for each such line and phase. A compiled kernel that
covers several lines is counted on the one that has most eager kernels left to give, so what is
said here is the least that compiling adds. Reasons are Inductor's own, as the plan holds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kpredict.model import Barrier, Entry, Kind, Launch, Mode, Phase, Plan
from kpredict.report.launches import short_op
from kpredict.report.quantities import listed, plural

_COUNTED = (Kind.KERNEL, Kind.LIBRARY)


@dataclass(frozen=True, slots=True)
class Addition:
    """On `line`, in `phase`: so many kernels eager and compiled, and why the latter are more."""

    line: int
    phase: Phase
    eager: int
    compiled: int
    reason: str

    @property
    def added(self) -> int:
        return self.compiled - self.eager

    def __str__(self) -> str:
        where = f"line {self.line}" + (
            "" if self.phase is Phase.FORWARD else f" ({self.phase.value})"
        )
        return (
            f"compiling adds {plural(self.added, 'launch', 'launches')} on {where}: {self.reason}"
        )


def additions(entry: Entry) -> tuple[Addition, ...]:
    """In order of the lines; nothing where one of the two plans is missing."""
    before, after = (entry.plans.get(m) for m in (Mode.EAGER, Mode.COMPILED))
    if before is None or after is None:
        return ()
    found: list[Addition] = []
    for phase, plan in after:
        eager = getattr(before, phase.value)
        if eager is not None:
            found += _of_phase(entry.file, phase, eager, plan)
    return tuple(sorted(found, key=lambda a: (a.line, a.phase)))


def _of_phase(file: str, phase: Phase, eager: Plan, compiled: Plan) -> Iterator[Addition]:
    spare: dict[int, int] = {}
    calls: dict[int, list[Launch]] = {}
    for launch in eager.launches:
        if launch.kind in _COUNTED:
            for line in _lines(launch, file)[:1]:
                spare[line] = spare.get(line, 0) + _likely(launch)
                calls.setdefault(line, []).append(launch)
    eager_count = dict(spare)
    taken: dict[int, list[int]] = {}
    numbered = [(i, x, _lines(x, file)) for i, x in enumerate(compiled.launches)]
    for i, launch, lines in sorted(numbered, key=lambda n: len(n[2])):
        if launch.kind in _COUNTED and lines:
            line = max(lines, key=lambda n: spare.get(n, 0))
            spare[line] = spare.get(line, 0) - _likely(launch)
            taken.setdefault(line, []).append(i)
    by_producer: dict[int, list[Barrier]] = {}
    for barrier in compiled.barriers:
        by_producer.setdefault(barrier.producer, []).append(barrier)
    for line, left in spare.items():
        if left < 0 and line in eager_count:
            n = eager_count[line]
            here = dict.fromkeys(sorted(taken[line]))
            inside = [b for i in here for b in by_producer.get(i, ()) if b.consumer in here]
            why = _why([compiled.launches[i] for i in here], inside, calls[line])
            yield Addition(line, phase, n, n - left, why)


def _lines(launch: Launch, file: str) -> list[int]:
    return [s.line for s in launch.lines if s.file == file]


def _likely(launch: Launch) -> int:
    return launch.count.lo if launch.expected is None else launch.expected


def _why(here: Sequence[Launch], inside: Sequence[Barrier], eager: Sequence[Launch]) -> str:
    """Everything that makes kernels out of fewer, the surest first; `inside` are the barriers
    between launches that are `here`."""
    said: dict[str, None] = {}
    helped: set[str] = set()
    for launch in here:
        if launch.region and launch.because.startswith(_HELPS):
            helped.update(launch.ops)
            if not launch.because.startswith(_AFTER):  # eager has a kernel for it too
                said[launch.because] = None
    sizes = {b.detail: None for b in inside if b.reason == "split-reduction"}
    if sizes:
        told = listed([d for d in sizes if d], 2)
        said["a long reduction is split in two kernels" + (f" ({told})" if told else "")] = None
    rest = [launch for launch in here if not helped.intersection(launch.ops)]
    said |= dict.fromkeys(_written_out(rest, eager))
    return "; ".join(said) or _by_barriers(inside)


def _written_out(launches: Sequence[Launch], eager: Sequence[Launch]) -> Iterator[str]:
    """Ops that eager runs in fewer kernels of its own or of a library than Inductor generates.

    Ops that Inductor has in the same kernels are told together.
    """
    eager_ops = _by_op(eager)
    together: dict[tuple[int, ...], list[str]] = {}
    for op, where in _by_op(x if x.name.startswith(_GENERATED) else None for x in launches).items():
        if op in eager_ops:
            together.setdefault(tuple(where), []).append(op)
    for kernels, ops in together.items():
        before = {i for op in ops for i in eager_ops[op]}
        if len(kernels) <= len(before):
            continue
        if set(ops) <= {"cat", "stack"}:
            yield f"{ops[0]} copies each of its inputs by a kernel of its own"
            continue
        library = any(eager[i].kind is Kind.LIBRARY for i in before)
        one = plural(len(before), "launch", "launches")
        one += " (a library's call among them)" if library and len(before) > 1 else ""
        one += " (a library's call)" if library and len(before) == 1 else ""
        yield f"{listed(ops, 3)}: {one} in eager, written out as {len(kernels)} kernels"


_GENERATED = "triton_"
_AFTER = "the bias or the layout of the result of"
_HELPS = ("puts an input of", "draws the seeds", _AFTER)
"""What the compiled plan says of kernels that are there for the sake of a call."""


_FAMILY = re.compile(r"^(_?native_|cudnn_|miopen_|_)|(_legit(_functional|_no_training)?|_)$")


def _by_op(launches: Iterable[Launch | None]) -> dict[str, list[int]]:
    """The launches of each op, by a name that is the same for its eager and compiled variants:
    `cudnn_batch_norm` and `_native_batch_norm_legit_functional` are both `batch_norm`."""
    found: dict[str, list[int]] = {}
    for i, launch in enumerate(launches):
        for op in launch.ops if launch is not None else ():
            found.setdefault(_FAMILY.sub("", short_op(op)), []).append(i)
    return found


def _by_barriers(inside: Sequence[Barrier]) -> str:
    reasons = list(dict.fromkeys(f"fusion/{b.reason}" for b in inside))
    return f"its parts do not fuse ({listed(reasons, 3)})" if reasons else "its parts do not fuse"
