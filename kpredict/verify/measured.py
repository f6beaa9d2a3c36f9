"""Trace → Plan: the launches that really happened, in the order the host asked for them.

In: a Trace, and a time window (one phase of one call, or all of it). Out: a Measured. On one stream
this is stream order; on several it is the order of the program, which is also what is predicted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kpredict.model import Access, Basis, Kind, Launch, Phase, Plan, Span, Tensor
from kpredict.verify.names import aten, family, is_library
from kpredict.verify.recorded import tensor_arguments
from kpredict.verify.trace import FRAME, OP, SYNCS, Activity, Trace

INSIDE_LIBRARY = "inside a library call"
Window = tuple[float, float]

_REGION = re.compile(r"Torch-Compiled Region|CompiledFunction|CompiledFxGraph|CompileBackward")
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)")
_MODULE = "nn.Module: "
_REMEMBERED = 4096
# annotations that old profilers file under operators
_NO_OPS = re.compile(
    r"(ProfilerStep#|Optimizer\.|enumerate\(|DistributedDataParallel)"
)  # old notes


@dataclass(frozen=True, slots=True)
class Timing:
    """When one launch of a plan ran, in µs: asked for, begun, how long, and on which stream.

    `arrays` are the tensor arguments of the op that launched it, where they were recorded.
    """

    launched: float
    start: float
    duration: float
    device: int
    stream: int
    arrays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured plan; `timings` has one row for each of its launches."""

    plan: Plan
    timings: tuple[Timing, ...] = ()

    def __post_init__(self) -> None:
        if len(self.timings) != len(self.plan.launches):
            raise ValueError("one timing per launch")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a launch came from, as the profiler names it; `ops` has the innermost first."""

    ops: tuple[str, ...] = ()
    region: str = ""
    module: str = ""
    lines: tuple[Span, ...] = ()
    phase: Phase = Phase.FORWARD

    @property
    def op(self) -> str:
        """The op that launched it itself; "" outside every op."""
        return self.ops[0] if self.ops else ""


def place_of(trace: Trace, span: int) -> Place:
    """What the spans around a launch say."""
    ops: list[str] = []
    region = module = ""
    lines: tuple[Span, ...] = ()
    phase = Phase.FORWARD
    for around in trace.around(span):
        name, kind = trace.name(around), trace.kind(around)
        if kind == FRAME:
            if name.startswith(_MODULE):
                module = module or name.removeprefix(_MODULE)
            elif not lines and (frame := _FRAME.fullmatch(name)):
                lines = (Span(frame["file"], int(frame["line"]), frame["function"]),)
            continue
        if _REGION.search(name):
            region = name
        if trace.is_backward(around):
            phase = Phase.BACKWARD
        elif name.startswith("Optimizer.step#"):
            phase = Phase.STEP
        if (kind == OP and not _NO_OPS.match(name)) or region == name:
            ops.append(name)
    return Place(tuple(ops), region, module, lines, phase)


class Places:
    """`place_of` with a short memory: launches that share a span follow each other."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[int, Place] = {}

    def __getitem__(self, span: int) -> Place:
        if span not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[span] = place_of(self._trace, span)
        return self._known[span]

    def arrays(self, span: int) -> tuple[str, ...]:
        """The tensor arguments of the op that `span` is, as far as they were recorded."""
        inputs = self._trace.inputs(span) if span >= 0 else None
        return tensor_arguments(inputs) if inputs is not None else ()


def measured(
    trace: Trace, windows: Iterable[Window] | None = None, phase: Phase | None = None
) -> Measured:
    """The launches that the host asked for inside `windows` (None: all), as one plan.

    Consecutive kernels of closed libraries under one op call are one library launch. With `phase`
    every launch is said to be of it; else the spans around a launch tell.
    """
    rows = [*_work(trace), *_waits(trace)]
    if windows is not None:
        inside = tuple(windows)
        rows = [r for r in rows if any(a <= r.timing.launched <= b for a, b in inside)]
    rows.sort(key=lambda row: (row.timing.launched, row.timing.start))
    rows = list(_joined(rows))
    with_library = {row.span for row in rows if row.launch.kind is Kind.LIBRARY}
    launches = []
    for row in rows:
        launch = row.launch
        if launch.kind is Kind.MEMSET and row.span in with_library:
            launch = replace(launch, because=INSIDE_LIBRARY)
        launches.append(launch if phase is None else replace(launch, phase=phase))
    return Measured(Plan(tuple(launches)), tuple(row.timing for row in rows))


@dataclass(frozen=True, slots=True)
class _Row:
    launch: Launch
    timing: Timing
    span: int


def _work(trace: Trace) -> Iterator[_Row]:
    places = Places(trace)
    for activity in trace.activities():
        place = places[activity.span]
        kind, name = activity.kind, family(activity.name)
        if kind is Kind.KERNEL and is_library(activity.name, place.op):
            kind = Kind.LIBRARY
        elif name.startswith("triton_") and place.op.startswith("triton_"):
            name = (
                place.op
            )  # old Inductors name the kernel by its signature, its span by what it does
        reads, writes = _touched(activity)
        launch = Launch(
            kind, name, reads=reads, writes=writes, basis=Basis.MEASURED,
            expected=1 if kind is Kind.LIBRARY else None, grid=activity.grid, block=activity.block,
            ops=_as_torch(place), lines=place.lines, module=place.module, phase=place.phase,
            region=place.region, because="launched by a CUDA graph" if activity.in_graph else "",
        )  # fmt: skip
        timing = Timing(
            activity.launched, activity.start, activity.duration, activity.device,
            activity.stream, places.arrays(activity.span),
        )  # fmt: skip
        yield _Row(launch, timing, activity.span)


def _waits(trace: Trace) -> Iterator[_Row]:
    """Calls in which the host waits; those outside every span are the profiler's own."""
    places = Places(trace)
    for call, span in trace.calls():
        if call.name in SYNCS and span >= 0:
            place = places[span]
            launch = Launch(
                Kind.SYNC, call.name, basis=Basis.MEASURED, ops=_as_torch(place),
                lines=place.lines, module=place.module, phase=place.phase, region=place.region,
            )  # fmt: skip
            yield _Row(launch, Timing(call.start, call.start, call.duration, -1, -1), span)


def _as_torch(place: Place) -> tuple[str, ...]:
    return tuple(aten(op) for op in place.ops)


def _joined(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Consecutive library kernels of one op call become one library launch."""
    last: _Row | None = None
    for row in rows:
        if last is None:
            last = row
        elif row.launch.kind is last.launch.kind is Kind.LIBRARY and row.span == last.span >= 0:
            count = last.launch.count + row.launch.count
            last = _Row(
                replace(last.launch, count=count, expected=count.lo),
                replace(last.timing, duration=last.timing.duration + row.timing.duration),
                last.span,
            )
        else:
            yield last
            last = row
    if last is not None:
        yield last


def _touched(activity: Activity) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """What a memcpy or memset read from and wrote to GPU memory; a kernel's is not recorded."""
    array = Access(Tensor((activity.bytes,), (1,), "uint8"), activity.bytes)
    if activity.kind is Kind.MEMSET:
        return (), (array,)
    if activity.kind is Kind.MEMCPY:
        source, _, destination = family(activity.name).removeprefix("Memcpy ").partition("to")
        return (array,) * (source == "D"), (array,) * (destination == "D")
    return (), ()
