"""A measurement that can be kept: what one machine launched for some entry points, and how fast.

In and out: JSON text. A bundle read back equals the one saved. Raises KpredictError for text that
is no bundle or of a newer layout.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kpredict.model import (
    Access,
    Basis,
    Count,
    Failure,
    Kind,
    KpredictError,
    Launch,
    Mode,
    Phase,
    Plan,
    Span,
    Tensor,
)  # fmt: skip
from kpredict.verify.measured import Measured, Timing

LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured. Versions are empty where they are not known, as in a trace file."""

    gpu: str = ""
    capability: tuple[int, int] = (0, 0)
    sms: int = 0
    driver: str = ""
    cuda: str = ""
    torch: str = ""
    triton: str = ""
    python: str = ""
    kpredict: str = ""

    def __str__(self) -> str:
        versions = [("torch", self.torch), ("CUDA", self.cuda), ("driver", self.driver)]
        known = [f"{name} {value}" for name, value in versions if value]
        return ", ".join([self.gpu or "unknown GPU", *known])


@dataclass(frozen=True, slots=True)
class MeasuredPhase:
    """One phase in one mode. `unsteady` says where a second profiled call differed; `time` is the
    median duration in µs without the profiler, over `calls` calls."""

    measured: Measured
    unsteady: tuple[str, ...] = ()
    time: float | None = None
    calls: int = 0


@dataclass(frozen=True, slots=True)
class MeasuredEntry:
    """`source` is a digest of the file, so that a later comparison can say when it changed."""

    file: str
    name: str
    line: int = 0
    inputs: tuple[str, ...] = ()
    modes: Mapping[Mode, Mapping[Phase, MeasuredPhase]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    machine: Machine
    entries: tuple[MeasuredEntry, ...] = ()
    errors: tuple[Failure, ...] = ()

    def to_json(self) -> str:
        return json.dumps(
            {
                "kpredict_bundle": LAYOUT,
                "machine": asdict(self.machine),
                "entries": [_entry_out(e) for e in self.entries],
                "errors": [asdict(f) for f in self.errors],
            },
            indent=1,
        )


def digest(text: str) -> str:
    """Names the text of a source file in a bundle."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_bundle(path: str | Path) -> Bundle:
    """The bundle in a file that `verify --save` wrote."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KpredictError(f"{path} cannot be read: {error}.", "Check the path.") from None
    return parse_bundle(text, str(path))


def parse_bundle(text: str, name: str = "The text") -> Bundle:
    try:
        raw = json.loads(text)
        layout = raw["kpredict_bundle"]
        if layout > LAYOUT:
            raise KpredictError(
                f"{name} was saved by a newer kpredict.", "Update kpredict to read it."
            )
        return Bundle(
            _machine_in(raw["machine"]),
            tuple(_entry_in(e) for e in raw["entries"]),
            tuple(Failure(**f) for f in raw["errors"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KpredictError(
            f"{name} is no bundle of kpredict: {type(error).__name__}: {error}.",
            "Make one with kpredict verify --save FILE on a machine with a GPU.",
        ) from None


def is_bundle(path: str | Path) -> bool:
    """Whether a file starts like a bundle; anything else is taken for a trace."""
    with Path(path).open("rb") as file:
        return b'"kpredict_bundle"' in file.read(200)


def _machine_in(raw: dict[str, Any]) -> Machine:
    return Machine(**{**raw, "capability": tuple(raw["capability"])})


def _entry_out(entry: MeasuredEntry) -> dict[str, Any]:
    return {
        "file": entry.file, "name": entry.name, "line": entry.line, "inputs": list(entry.inputs),
        "source": entry.source,
        "modes": {
            mode.value: {phase.value: _phase_out(found) for phase, found in phases.items()}
            for mode, phases in entry.modes.items()
        },
    }  # fmt: skip


def _entry_in(raw: dict[str, Any]) -> MeasuredEntry:
    return MeasuredEntry(
        raw["file"], raw["name"], raw["line"], tuple(raw["inputs"]),
        {
            Mode(mode): {Phase(phase): _phase_in(found) for phase, found in phases.items()}
            for mode, phases in raw["modes"].items()
        },
        raw["source"],
    )  # fmt: skip


def _phase_out(found: MeasuredPhase) -> dict[str, Any]:
    plan, timings = found.measured.plan, found.measured.timings
    return {
        "time_us": found.time, "calls": found.calls, "unsteady": list(found.unsteady),
        "notes": list(plan.notes),
        "launches": [
            _launch_out(launch)
            | {
                "timing": [t.launched, t.start, t.duration, t.device, t.stream],
                "arrays": list(t.arrays),
            }
            for launch, t in zip(plan.launches, timings, strict=True)
        ],
    }  # fmt: skip


def _phase_in(raw: dict[str, Any]) -> MeasuredPhase:
    rows = raw["launches"]
    plan = Plan(tuple(_launch_in(r) for r in rows), notes=tuple(raw["notes"]))
    timings = tuple(_timing_in(r) for r in rows)
    return MeasuredPhase(
        Measured(plan, timings), tuple(raw["unsteady"]), raw["time_us"], raw["calls"]
    )


def _timing_in(raw: dict[str, Any]) -> Timing:
    launched, start, duration, device, stream = raw["timing"]
    return Timing(launched, start, duration, device, stream, tuple(raw["arrays"]))


def _launch_out(launch: Launch) -> dict[str, Any]:
    return {
        "kind": launch.kind.value, "name": launch.name, "count": launch.count.lo,
        "ops": list(launch.ops), "lines": [[s.file, s.line, s.function] for s in launch.lines],
        "module": launch.module, "phase": launch.phase.value, "region": launch.region,
        "grid": launch.grid, "block": launch.block, "because": launch.because,
        "read": sum(a.bytes for a in launch.reads), "written": sum(a.bytes for a in launch.writes),
    }  # fmt: skip


def _launch_in(raw: dict[str, Any]) -> Launch:
    kind, count = Kind(raw["kind"]), raw["count"]
    return Launch(
        kind, raw["name"], Count.exactly(count), _bytes(raw["read"]), _bytes(raw["written"]),
        Basis.MEASURED, raw["because"], count if kind is Kind.LIBRARY else None,
        _dim3(raw["grid"]), _dim3(raw["block"]), tuple(raw["ops"]),
        tuple(Span(*s) for s in raw["lines"]), raw["module"], Phase(raw["phase"]), raw["region"],
    )  # fmt: skip


def _bytes(count: int) -> tuple[Access, ...]:
    return (Access(Tensor((count,), (1,), "uint8"), count),) if count else ()


def _dim3(raw: list[int] | None) -> tuple[int, int, int] | None:
    return None if raw is None else (raw[0], raw[1], raw[2])
