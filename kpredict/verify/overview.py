"""Trace → Overview: what a recorded profile says about launches, waits and fusion.

In: a Trace. Out: an Overview of plain numbers; times in µs. Sums over `ops` are the totals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from kpredict.model import Kind, Phase, Span
from kpredict.verify.chains import Chain, chains
from kpredict.verify.gaps import Idle, idle_time
from kpredict.verify.measured import Places
from kpredict.verify.names import family, is_library
from kpredict.verify.trace import OP, SYNCS, Activity, Device, Trace, is_launch

NO_OP = "(outside any op)"
BEFORE = "(launched before the recording)"


@dataclass(frozen=True, slots=True)
class OpRow:
    """What all calls of one op launched themselves, not through an op they call."""

    name: str
    calls: int
    kernels: int
    memcpy: int
    memset: int
    syncs: int
    time: float

    @property
    def launched(self) -> int:
        return self.kernels + self.memcpy + self.memset


@dataclass(frozen=True, slots=True)
class KernelRow:
    name: str
    count: int
    time: float
    library: bool


@dataclass(frozen=True, slots=True)
class CopyRow:
    direction: str
    count: int
    bytes: int
    time: float


@dataclass(frozen=True, slots=True)
class WaitRow:
    """How often one op made the host wait, for how long, and the user's function it was in."""

    op: str
    count: int
    time: float
    line: Span | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    device: Device
    devices: int
    streams: int
    kernels: int
    memcpy: int
    memset: int
    syncs: int
    launches: int
    library_kernels: int
    graph_kernels: int
    in_op: int
    outside: int
    before: int
    idle: Idle
    sync_time: float
    waits: tuple[WaitRow, ...]
    ops: tuple[OpRow, ...]
    families: tuple[KernelRow, ...]
    copies: tuple[CopyRow, ...]
    chains: tuple[Chain, ...]
    phases: tuple[tuple[str, int], ...]

    @property
    def attributed(self) -> float:
        """The share of device work, of that whose host call was recorded, that an op launched."""
        known = self.in_op + self.outside
        return self.in_op / known if known else 1.0

    @property
    def launch_bound_share(self) -> float:
        """The share of kernels for which the device, with nothing to do, waited for the host."""
        return self.idle.launch_bound / self.kernels if self.kernels else 0.0


def overview(trace: Trace) -> Overview:
    """Everything at once; the trace's activities are walked twice, in order of their start."""
    tally = _Tally(trace)
    for activity in trace.activities():
        tally.add(activity)
    for call, span in trace.calls():
        if is_launch(call.name):
            tally.launches += 1
        elif call.name in SYNCS:
            tally.add_sync(span, call.duration)
    return Overview(
        trace.device, trace.devices, trace.streams,
        tally.kinds[Kind.KERNEL], tally.kinds[Kind.MEMCPY], tally.kinds[Kind.MEMSET],
        tally.syncs, tally.launches, tally.library, tally.in_graph,
        tally.in_op, tally.outside, tally.before,
        idle_time(trace), tally.sync_time, tally.wait_rows(),
        tally.op_rows(), tally.family_rows(), tally.copy_rows(), chains(trace),
        tuple((p.value, tally.phases[p]) for p in Phase if tally.phases[p]),
    )  # fmt: skip


class _Tally:
    """Sums over activities and waits, by the op that launched them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._places = Places(trace)
        self.kinds: Counter[Kind] = Counter()
        self.phases: Counter[Phase] = Counter()
        self.launches = self.syncs = self.library = self.in_graph = 0
        self.in_op = self.outside = self.before = 0
        self.sync_time = 0.0
        self._by_op: dict[str, Counter[Kind]] = defaultdict(Counter)
        self._op_time: dict[str, float] = defaultdict(float)
        self._families: dict[str, list[float]] = {}
        self._copies: dict[str, list[float]] = {}
        self._waits: dict[tuple[str, Span | None], list[float]] = {}

    def add(self, activity: Activity) -> None:
        place = self._places[activity.span]
        self.kinds[activity.kind] += 1
        self.phases[place.phase] += 1
        self.in_graph += activity.in_graph
        if place.op:
            self.in_op += 1
        elif activity.call is None:
            self.before += 1
        else:
            self.outside += 1
        op = place.op or (NO_OP if activity.call else BEFORE)
        self._by_op[op][activity.kind] += 1
        self._op_time[op] += activity.duration
        name = family(activity.name)
        if activity.kind is Kind.KERNEL:
            library = is_library(activity.name, place.op)
            self.library += library
            row = self._families.setdefault(name, [0, 0.0, library])
            row[0] += 1
            row[1] += activity.duration
        elif activity.kind is Kind.MEMCPY:
            row = self._copies.setdefault(name.removeprefix("Memcpy "), [0, 0, 0.0])
            row[0] += 1
            row[1] += activity.bytes
            row[2] += activity.duration

    def add_sync(self, span: int, time: float) -> None:
        self.syncs += 1
        self.sync_time += time
        place = self._places[span]
        op = place.op or NO_OP
        self._by_op[op][Kind.SYNC] += 1
        row = self._waits.setdefault((op, place.lines[0] if place.lines else None), [0, 0.0])
        row[0] += 1
        row[1] += time

    def op_rows(self) -> tuple[OpRow, ...]:
        calls = Counter(self._trace.name(s) for s in self._trace.spans if self._trace.kind(s) == OP)
        rows = [
            OpRow(
                op, calls[op], n[Kind.KERNEL], n[Kind.MEMCPY], n[Kind.MEMSET], n[Kind.SYNC],
                self._op_time[op],
            )
            for op, n in self._by_op.items()
        ]  # fmt: skip
        return tuple(sorted(rows, key=lambda r: (-r.kernels, -r.launched, r.name)))

    def family_rows(self) -> tuple[KernelRow, ...]:
        rows = [KernelRow(k, int(n), t, bool(lib)) for k, (n, t, lib) in self._families.items()]
        return tuple(sorted(rows, key=lambda r: (-r.time, r.name)))

    def wait_rows(self) -> tuple[WaitRow, ...]:
        rows = [WaitRow(op, int(n), t, line) for (op, line), (n, t) in self._waits.items()]
        return tuple(sorted(rows, key=lambda r: (-r.count, r.op, str(r.line))))

    def copy_rows(self) -> tuple[CopyRow, ...]:
        rows = [CopyRow(k, int(n), int(b), t) for k, (n, b, t) in self._copies.items()]
        return tuple(sorted(rows, key=lambda r: (-r.count, r.direction)))
