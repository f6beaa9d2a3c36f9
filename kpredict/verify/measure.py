"""Run a call on the real GPU and profile it: the measured side of a verification. Imports torch.

In: a Call and a mode. Out: per phase a MeasuredPhase. Conventions are those of the prediction
(`capture.run.iterate`), so phases start and end at the same places; two calls warm up, two are
profiled and compared with each other, and many are timed without the profiler.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._pytree import tree_leaves, tree_map

from kpredict.capture.run import Marks, Optimizer, iterate
from kpredict.model import KpredictError, Mode, Phase
from kpredict.plans import Call, CompiledStep, stepping, uncompiled
from kpredict.verify.bundle import MeasuredPhase
from kpredict.verify.compare import compare
from kpredict.verify.measured import Measured, Window, measured
from kpredict.verify.trace import NOTE, Trace, read_trace

MARK = "kpredict::"
WARMUPS = 2
_MOST_COPIES = 16


@dataclass(frozen=True, slots=True)
class Timed:
    """Median time of a phase in µs, over so many calls."""

    time: float
    calls: int


def measure(call: Call, mode: Mode, *, seconds: float = 1.0) -> dict[Phase, MeasuredPhase]:
    """Profile and time every phase of `call` in one mode. `seconds` bounds the timing; 0 skips it.

    Raises KpredictError for work on several GPUs; errors of the user's code pass through.
    """
    with _prepared(call, mode) as (fn, optimizer):
        for _ in range(WARMUPS):
            _run(call, fn, optimizer, _Silent())
        first, second = (profiled(call, fn, optimizer) for _ in range(2))
        times = _time(call, fn, optimizer, seconds) if seconds > 0 and _on_gpu() else {}
    return {
        phase: MeasuredPhase(
            _annotated(first[phase]),
            unsteady(first[phase], second[phase]),
            times[phase].time if phase in times else None,
            times[phase].calls if phase in times else 0,
        )
        for phase in call.phases
        if phase in first
    }


def unsteady(first: Measured, second: Measured) -> tuple[str, ...]:
    """What differs between two profiled calls that should be the same."""
    difference = compare(first.plan, second.plan, ("first call", "second call"))
    lines = [
        f"{total.what}: {total.left} in one call, {total.right} in the next"
        for total in difference.totals
        if total.left != total.right
    ]
    names = [
        f"{row.op}: {row.left.name if row.left else 'nothing'} in one call, "
        f"{row.right.name if row.right else 'nothing'} in the next"
        for row in difference.mismatches
    ]
    return tuple(dict.fromkeys((*lines, *names[:10])))


@contextmanager
def _prepared(call: Call, mode: Mode) -> Iterator[tuple[Callable[..., Any], Optimizer | None]]:
    """The function and optimizer as the mode wants them."""
    if mode is Mode.EAGER:
        with torch.compiler.set_stance("force_eager"):
            yield call.fn, call.optimizer
        return
    torch.compiler.reset()
    try:
        if mode is Mode.AS_WRITTEN:
            yield call.fn, call.optimizer
            return
        optimizer = call.optimizer
        if optimizer is not None and call.compile_optimizer:
            optimizer = CompiledStep(torch.compile(stepping(optimizer)))
        yield torch.compile(uncompiled(call.fn), **call.compile_options), optimizer
    finally:
        torch.compiler.reset()


def _run(
    call: Call, fn: Callable[..., Any], optimizer: Optimizer | None, marks: Marks,
    args: Sequence[Any] | None = None,
) -> None:  # fmt: skip
    grad = contextlib.nullcontext() if call.grad is None else torch.set_grad_enabled(call.grad)
    with grad:
        iterate(marks, fn, call.args if args is None else args, call.kwargs, call.phases, optimizer)


class _Silent:
    """Marks for a run that nobody watches."""

    def __init__(self) -> None:
        self.phase = Phase.FORWARD

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield


class _Named:
    """Puts an annotation around each phase; the device is idle where one ends."""

    def __init__(self) -> None:
        self._phase = Phase.FORWARD
        self._open: Any = None

    @property
    def phase(self) -> Phase:
        return self._phase

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self.close()
        self._phase = phase
        self._open = record_function(MARK + phase.value)
        self._open.__enter__()

    def close(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None
            synchronize()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.close()
        yield
        synchronize()


def profiled(
    call: Call, fn: Callable[..., Any], optimizer: Optimizer | None = None
) -> dict[Phase, Measured]:
    """One profiled run, read back through the trace reader, by phase."""
    activities = [ProfilerActivity.CPU]
    if _on_gpu():
        activities.append(ProfilerActivity.CUDA)
    marks = _Named()
    synchronize()
    with profile(activities=activities, record_shapes=True, with_stack=True) as profiler:
        _run(call, fn, optimizer, marks)
        marks.close()
    with tempfile.TemporaryDirectory(prefix="kpredict-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace = read_trace(path)
    if trace.devices > 1:
        raise KpredictError(
            f"It uses {trace.devices} GPUs.", "kpredict predicts one; give it one with its inputs."
        )
    return by_phase(trace)


def by_phase(trace: Trace) -> dict[Phase, Measured]:
    """A trace's launches inside kpredict's own annotations, phase by phase."""
    windows: dict[Phase, list[Window]] = {}
    for span in trace.spans:
        name = trace.name(span)
        if name.startswith(MARK) and trace.kind(span) == NOTE:
            windows.setdefault(Phase(name.removeprefix(MARK)), []).append(trace.interval(span))
    return {p: measured(trace, windows[p], p) for p in Phase if p in windows}


def _annotated(found: Measured) -> Measured:
    """With notes on what makes a comparison weaker."""
    notes = []
    in_graphs = sum(x.because == "launched by a CUDA graph" for x in found.plan.launches)
    if in_graphs:
        notes.append(f"{in_graphs} launches came from CUDA graphs: their ops are not known.")
    streams = {t.stream for t in found.timings if t.stream >= 0}
    if len(streams) > 1:
        notes.append(f"Work on {len(streams)} streams, compared in the order it was asked for.")
    return replace(found, plan=replace(found.plan, notes=tuple(notes)))


# Timing


class _Clock:
    """CUDA events where a phase starts and where it ends."""

    def __init__(self) -> None:
        self._phase = Phase.FORWARD
        self._start: torch.cuda.Event | None = None
        self.pairs: list[tuple[Phase, torch.cuda.Event, torch.cuda.Event]] = []

    @property
    def phase(self) -> Phase:
        return self._phase

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self._close()
        self._phase, self._start = phase, _event()

    def _close(self) -> None:
        if self._start is not None:
            self.pairs.append((self._phase, self._start, _event()))
            self._start = None

    def stop(self) -> None:
        """The run is over: what was begun last, after the last phase, is no phase."""
        self._start = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._close()
        yield


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _time(
    call: Call, fn: Callable[..., Any], optimizer: Optimizer | None, seconds: float
) -> dict[Phase, Timed]:
    """Calls one after the other without waiting, as a program makes them, inputs rotated.

    Where the host is slower than the device this is the host's time, else the device's. The first
    few calls tell how many fit into `seconds`; the median counts.
    """
    inputs = _rotated(call.args)
    start = _event()
    for args in inputs[:3]:
        _run(call, fn, optimizer, _Silent(), args)
    end = _event()
    synchronize()
    each = max(start.elapsed_time(end) / 1e3 / len(inputs[:3]), 1e-6)
    clock = _Clock()
    for i in range(max(5, min(1000, int(seconds / each)))):
        _run(call, fn, optimizer, clock, inputs[i % len(inputs)])
        clock.stop()
    synchronize()
    spent: dict[Phase, list[float]] = {}
    for phase, begin, finish in clock.pairs:
        spent.setdefault(phase, []).append(begin.elapsed_time(finish) * 1e3)
    return {phase: Timed(statistics.median(times), len(times)) for phase, times in spent.items()}


def _rotated(args: Sequence[Any]) -> list[Sequence[Any]]:
    """Copies of the inputs, so many that a call does not find its own in the L2 cache.

    An input that shares memory with itself or another is not copied: its strides would change.
    """
    tensors = [t for t in tree_leaves(list(args)) if isinstance(t, torch.Tensor) and t.is_cuda]
    size = sum(t.untyped_storage().nbytes() for t in tensors)
    if not size:
        return [args]
    cache = torch.cuda.get_device_properties().L2_cache_size
    room = torch.cuda.mem_get_info()[0] // 4
    copies = min(1 + 2 * cache // size, _MOST_COPIES, room // size)

    def copied(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_cuda or not leaf.is_leaf:
            return leaf
        copy = leaf.detach().clone()
        same = copy.stride() == leaf.stride()
        return copy.requires_grad_(leaf.requires_grad) if same else leaf

    return [args, *(tree_map(copied, list(args)) for _ in range(copies))]


def _on_gpu() -> bool:
    return torch.cuda.is_available()


def synchronize() -> None:
    """Wait for the device; nothing to wait for without one."""
    if _on_gpu():
        torch.cuda.synchronize()
