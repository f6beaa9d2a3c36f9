"""`kpredict verify`, without a command line: measure, predict for that machine, compare.

In: Requests, or a bundle or trace that was recorded elsewhere. Out: a Verification, and the Bundle
it rests on. Measuring and predicting each happen in a child process of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

from kpredict.model import Failure, KpredictError, Mode, Phase, Report
from kpredict.request import Request
from kpredict.session.ask import analyse, ask
from kpredict.session.messages import Answer
from kpredict.targets import target as find_target
from kpredict.verify.bundle import (
    Bundle,
    Machine,
    MeasuredEntry,
    MeasuredPhase,
    digest,
    is_bundle,
    read_bundle,
)
from kpredict.verify.check import Verification, check
from kpredict.verify.machines import target_of
from kpredict.verify.measured import measured
from kpredict.verify.request import MeasureRequest, NoCuda
from kpredict.verify.trace import Trace, read_trace

CHILD = "kpredict.verify.child"
Heard = Callable[[Answer], None]


class CudaMissing(KpredictError):
    """There is no GPU to measure on."""


def verify(
    requests: Sequence[Request], *, seconds: float = 1.0, jobs: int = 1, heard: Heard | None = None
) -> tuple[Verification, Bundle]:
    """Measure every file here, then hold the predictions for this GPU against it.

    `jobs` files are worked on at a time: counts stay right, times get worse. Raises CudaMissing
    where nothing can be measured.
    """

    def one(request: Request) -> tuple[Verification, Bundle]:
        bundle = measure_files([request], seconds=seconds, heard=heard)
        return check_bundle([request], bundle, heard=heard), bundle

    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        found = list(pool.map(one, requests))
    return joined([v for v, _ in found]), _joined_bundle([b for _, b in found])


def joined(found: Sequence[Verification]) -> Verification:
    """Several verifications on one machine as one; a note that all make is made once."""
    return replace(
        next((v for v in found if v.checked), found[0]),
        checked=tuple(c for v in found for c in v.checked),
        errors=tuple(f for v in found for f in v.errors),
        notes=tuple(dict.fromkeys(n for v in found for n in v.notes)),
    )


def _joined_bundle(found: Sequence[Bundle]) -> Bundle:
    machine = next((b.machine for b in found if b.machine.gpu), Machine())
    return Bundle(
        machine,
        tuple(e for b in found for e in b.entries),
        tuple(f for b in found for f in b.errors),
    )


def measure_files(
    requests: Sequence[Request], *, seconds: float = 1.0, heard: Heard | None = None
) -> Bundle:
    """What this machine launches. A file that fails is an error in the bundle."""
    machine: Machine | None = None
    entries: list[MeasuredEntry] = []
    errors: list[Failure] = []
    for request in requests:
        answer = ask(_with_seconds(request, seconds), CHILD)
        if heard is not None:
            heard(answer)
        for message in answer.others:
            match message:
                case NoCuda(reason):
                    raise CudaMissing(
                        f"Nothing can be measured: {reason}. (--from FILE needs no GPU.)"
                    )
                case Machine():
                    machine = message
                case MeasuredEntry():
                    entries.append(message)
        errors += answer.errors
    return Bundle(machine or Machine(), tuple(entries), tuple(errors))


def check_bundle(
    requests: Sequence[Request], bundle: Bundle, *, heard: Heard | None = None
) -> Verification:
    """Predict what `bundle` measured, for the GPU and the CUDA release it was measured with."""
    if not bundle.entries:
        return Verification(bundle.machine, find_target(), (), bundle.errors)
    name, note = _target(requests, bundle.machine)
    cuda = bundle.machine.cuda.partition(".")[0]
    report = analyse(
        [
            replace(r, target=name, cuda=r.cuda or (int(cuda) if cuda in ("12", "13") else None))
            for r in requests
        ],
        heard,
    )
    found = check(report, bundle)
    notes = [note] if note else []
    notes += _version_notes(bundle, report)
    notes += _changed(bundle, report)
    return replace(found, notes=(*notes, *found.notes))


def load_measurement(path: str, requests: Sequence[Request]) -> Bundle:
    """A bundle; or a trace, as the one measured entry that the requests name.

    Raises KpredictError for a trace of another vendor's GPU or of several GPUs.
    """
    try:
        if is_bundle(path):
            return read_bundle(path)
    except OSError as error:
        raise KpredictError(f"{path} cannot be opened: {error.strerror}.") from None
    trace = read_trace(path)
    if trace.device.vendor not in ("NVIDIA", ""):
        raise KpredictError(
            f"{path} was recorded on {trace.device}: kpredict predicts NVIDIA GPUs.",
            "kpredict trace reports what is in it.",
        )
    if trace.devices > 1:
        raise KpredictError(f"{path} has work on {trace.devices} GPUs; kpredict predicts one.")
    if len(requests) != 1:
        raise KpredictError("A trace is held against one file.", "Name one as f.py::name.")
    device = trace.device
    machine = Machine(device.name, device.capability, device.sms)
    request = requests[0]
    name = request.names[0] if request.names else ""
    entry = MeasuredEntry(request.file, name, modes=_modes(trace, request.phases))
    return Bundle(machine, (entry,))


def _modes(
    trace: Trace, phases: Sequence[Phase] | None
) -> Mapping[Mode, Mapping[Phase, MeasuredPhase]]:
    """A trace as one mode: compiled when a compiled region launched anything, else eager.

    Of several profiler steps the last counts: the first ones may compile and tune.
    """
    steps = [s for s in trace.spans if trace.name(s).startswith("ProfilerStep#")]
    last = max((trace.interval(s) for s in steps), default=None)
    whole = measured(trace, None if last is None else [last])
    mode = Mode.COMPILED if any(x.region for x in whole.plan.launches) else Mode.EAGER
    found: dict[Phase, MeasuredPhase] = {}
    for phase in Phase:
        rows = [
            (x, t)
            for x, t in zip(whole.plan.launches, whole.timings, strict=True)
            if x.phase is phase
        ]
        if rows and (phases is None or phase in phases):
            launches, timings = zip(*rows, strict=True)
            plan = replace(whole.plan, launches=launches)
            found[phase] = MeasuredPhase(replace(whole, plan=plan, timings=timings))
    return {mode: found}


def _target(requests: Sequence[Request], machine: Machine) -> tuple[str, str]:
    """What the user names goes before what the machine is."""
    named = next((r.target for r in requests if r.target is not None), None)
    return (named, "") if named is not None else target_of(machine)


def _with_seconds(request: Request, seconds: float) -> MeasureRequest:
    return MeasureRequest(
        **{f.name: getattr(request, f.name) for f in fields(Request)}, seconds=seconds
    )


def _version_notes(bundle: Bundle, report: Report) -> list[str]:
    there, here = bundle.machine.torch.partition("+")[0], report.target.torch
    if there and there != here:
        return [f"Measured with torch {there}, predicted with torch {here}."]
    return []


def _changed(bundle: Bundle, report: Report) -> list[str]:
    """Files that are not what they were when they were measured."""
    digests = {e.file: digest(e.source) for e in report.entries}
    changed = [e.file for e in bundle.entries if e.source and e.source != digests.get(e.file, "")]
    return [
        f"{file} has changed since it was measured." for file in dict.fromkeys(changed)
        if file in digests
    ]  # fmt: skip
