"""A recorded profile: what the device did, and which host span launched each piece of it.

In: a trace file, or event dicts. Out: a Trace. Attribution: a device event carries the correlation
id of the host call that launched it; the call names its thread and time; the innermost span open
on that thread at that time is the launcher. Device events without a host call were launched before
the recording began; only where no host call was recorded at all does the external id decide.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kpredict.model import Dim3, Kind, KpredictError
from kpredict.verify.columns import FRAME, KINDS, NOTE, OP, Recording
from kpredict.verify.events import EventFile
from kpredict.verify.recorded import Inputs

__all__ = [
    "FRAME", "NOTE", "OP", "SYNCS", "Activity", "Device", "HostCall", "Inputs", "Trace",
    "is_launch", "read_trace",
]  # fmt: skip

SYNCS = frozenset(
    {f"{api}{what}Synchronize" for api in ("cuda", "hip") for what in ("Device", "Stream", "Event")}
    | {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}
)
_GRAPHS = frozenset({"cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"})
_SLACK = 1.0  # µs: old profilers round both ends of an interval to whole microseconds


def is_launch(call: str) -> bool:
    """A host call that starts kernels: one, or with a CUDA graph many."""
    return call in _GRAPHS or ("Launch" in call and "Kernel" in call)


@dataclass(frozen=True, slots=True)
class Device:
    """The GPU of a trace; empty and zero where the file does not say."""

    name: str = ""
    vendor: str = ""
    capability: tuple[int, int] = (0, 0)
    sms: int = 0

    def __str__(self) -> str:
        return self.name or self.vendor or "unknown GPU"


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of the runtime: what, on which thread (an id of this trace), when, in µs."""

    name: str
    thread: int
    start: float
    duration: float

    @property
    def end(self) -> float:
        return self.start + self.duration


@dataclass(frozen=True, slots=True)
class Activity:
    """One thing the device did, and its launcher: `span` is -1 outside every span."""

    kind: Kind
    name: str
    start: float
    duration: float
    device: int
    stream: int
    grid: Dim3 | None
    block: Dim3 | None
    bytes: int
    correlation: int
    call: HostCall | None
    span: int

    @property
    def end(self) -> float:
        return self.start + self.duration

    @property
    def launched(self) -> float:
        """When the host asked for it; where that is not recorded, when it began."""
        return self.call.start if self.call else self.start

    @property
    def in_graph(self) -> bool:
        return self.call is not None and self.call.name in _GRAPHS


class Trace:
    """One recorded profile: device work by `activities()`, host work by `spans` and `calls()`."""

    def __init__(
        self, events: Iterable[Mapping[str, Any]], header: Mapping[str, Any] | None = None
    ) -> None:
        self._recording = recording = Recording(events)
        self._header = header or {}
        self._parent = array("i", [-1]) * len(recording.spans)
        self._caller = array("i", [-1]) * len(recording.calls)
        self._nest()
        self._call_of = {c: row for row, c in enumerate(recording.calls.correlation) if c >= 0}

    def _nest(self) -> None:
        """Sweep each thread's time once: which span is around each span and each host call."""
        spans, calls = self._recording.spans, self._recording.calls

        def start(row: int) -> float:
            return spans.start[row] if row >= 0 else calls.start[~row]

        def thread(row: int) -> int:
            return spans.place[row] if row >= 0 else calls.place[~row]

        # A call is written ~row. Longer spans come first among those that start together.
        rows = sorted(range(len(spans)), key=spans.duration.__getitem__, reverse=True)
        rows += (~call for call in range(len(calls)))
        rows.sort(key=start)
        rows.sort(key=thread)
        around: list[int] = []
        on = -1
        for row in rows:
            begin = start(row)
            end = spans.end(row) if row >= 0 else calls.end(~row)
            if thread(row) != on:
                around, on = [], thread(row)
            while around and spans.end(around[-1]) < begin:
                around.pop()
            holder = next((s for s in reversed(around) if end <= spans.end(s) + _SLACK), -1)
            if row >= 0:
                self._parent[row] = holder
                around.append(row)
            else:
                self._caller[~row] = holder

    # The device

    def __len__(self) -> int:
        """How many device events."""
        return len(self._recording.device)

    def activities(self) -> Iterator[Activity]:
        """Device events in the order they started: stream order where there is one stream."""
        device = self._recording.device
        names, places, shapes = (
            self._recording.names, self._recording.places, self._recording.shapes,
        )  # fmt: skip
        for row in self._in_order:
            number, stream = places[device.place[row]]
            grid, block = shapes[device.shape[row]]
            call = self._call_of.get(device.correlation[row], -1)
            span = self._caller[call] if call >= 0 else self._by_external(device.external[row])
            yield Activity(
                KINDS[device.kind[row]], names[device.name[row]], device.start[row],
                device.duration[row], number, stream, grid, block, device.bytes[row],
                device.correlation[row], self._call(call) if call >= 0 else None, span,
            )  # fmt: skip

    @cached_property
    def _in_order(self) -> array[int]:
        start = self._recording.device.start
        return array("i", sorted(range(len(start)), key=start.__getitem__))

    def _by_external(self, external: int) -> int:
        return self._externals.get(external, -1) if external >= 0 else -1

    @cached_property
    def _externals(self) -> dict[int, int]:
        """Spans by external id. Used only without host calls: in old files the ids do not agree."""
        if len(self._recording.calls):
            return {}
        return {x: row for row, x in enumerate(self._recording.spans.external) if x >= 0}

    @cached_property
    def device(self) -> Device:
        """The GPU that did the work: the one most device events name."""
        used = Counter(self._recording.places[p][0] for p in self._recording.device.place)
        busiest = used.most_common(1)[0][0] if used else 0
        listed = self._header.get("deviceProperties")
        rows = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
        found = next((p for p in rows if p.get("id") == busiest), rows[0] if rows else {})
        name = str(found.get("name", ""))
        major, minor, sms = (found.get(k, 0) for k in ("computeMajor", "computeMinor", "numSms"))
        return Device(name, self._vendor(name), (int(major), int(minor)), int(sms))

    @property
    def devices(self) -> int:
        """How many GPUs did any work."""
        return len({self._recording.places[p][0] for p in self._recording.device.place})

    @property
    def streams(self) -> int:
        return len(set(self._recording.device.place))

    def _vendor(self, name: str) -> str:
        """By the names of the device and of the runtime's calls; "" where nothing tells."""
        calls = {self._recording.names[n] for n in set(self._recording.calls.name)}
        keys = " ".join(self._header)
        if "AMD" in name or "hip_" in keys or any(c.startswith("hip") for c in calls):
            return "AMD"
        if "Intel" in name or any(c.startswith(("ze", "ur")) for c in calls):
            return "Intel"
        known = ("NVIDIA", "Tesla", "GeForce", "Quadro", "TITAN")
        by_call = any(c.startswith("cu") for c in calls)
        return "NVIDIA" if by_call or "cuda_" in keys or name.startswith(known) else ""

    # The host

    def calls(self) -> Iterator[tuple[HostCall, int]]:
        """Every host call in time order, with the innermost span around it (-1: none)."""
        calls = self._recording.calls
        for row in sorted(range(len(calls)), key=calls.start.__getitem__):
            yield self._call(row), self._caller[row]

    def _call(self, row: int) -> HostCall:
        c = self._recording.calls
        name = self._recording.names[c.name[row]]
        return HostCall(name, c.place[row], c.start[row], c.duration[row])

    @property
    def spans(self) -> range:
        return range(len(self._recording.spans))

    def around(self, span: int) -> Iterator[int]:
        """`span` and the spans around it, innermost first; nothing for -1."""
        while span >= 0:
            yield span
            span = self._parent[span]

    def name(self, span: int) -> str:
        return str(self._recording.names[self._recording.spans.name[span]])

    def kind(self, span: int) -> int:
        """OP, NOTE (an annotation) or FRAME (Python)."""
        return self._recording.spans.kind[span]

    def interval(self, span: int) -> tuple[float, float]:
        return self._recording.spans.start[span], self._recording.spans.end(span)

    def is_backward(self, span: int) -> bool:
        """It ran in the backward: autograd's engine called it, or it names its forward thread."""
        engine = ("autograd::engine::", "torch::autograd::")
        return span in self._recording.backward or self.name(span).startswith(engine)

    def inputs(self, span: int) -> Inputs | None:
        """What was recorded of an op call's arguments, if anything was."""
        number = self._recording.spans.inputs[span]
        if number < 0:
            return None
        recorded = json.loads(self._recording.inputs[number])
        return Inputs(*(tuple(column or ()) for column in recorded))


def read_trace(path: str | Path) -> Trace:
    """The profile in a Chrome trace file. Raises KpredictError when it holds none."""
    file = EventFile(path)
    trace = Trace(file, file.header)
    if len(trace) == 0 and all(trace.kind(span) != OP for span in trace.spans):
        raise KpredictError(
            f"{path} holds {file.count:,} events, none of a PyTorch operator or a GPU.",
            "Is it a trace of torch.profiler, with activities recorded?",
        )
    return trace
