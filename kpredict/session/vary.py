"""The same files for several targets or over sizes → a Comparison. No torch here.

Every point is a prediction of its own: captured, lowered and planned for that target and size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise

from kpredict.bounds import Bound, phases_bound
from kpredict.model import Comparison, KpredictError, Mode, Report, Turn
from kpredict.request import Request
from kpredict.session.reading import read_source
from kpredict.session.told import named_dims
from kpredict.sweep import MOST_STEPS, Sweep, narrow

Answered = Callable[[Sequence[Request]], Report]
MOST_CHILDREN = MOST_STEPS * len(Mode)  # beyond the sizes themselves, for each entry


def over_targets(
    requests: Sequence[Request], targets: Sequence[str], answered: Answered
) -> Comparison:
    """One report for each target, in the order given."""
    points = [(name, answered([replace(r, target=name) for r in requests])) for name in targets]
    return Comparison("target", tuple(points))


def over_sizes(requests: Sequence[Request], sweep: Sweep, answered: Answered) -> Comparison:
    """One report for each size, and where each entry's modes stop to be bound by launches.

    Raises KpredictError when no file has a dimension of that name.
    """
    _check_name(requests, sweep.name)
    reports = {n: answered([_sized(r, sweep.name, n) for r in requests]) for n in sweep.sizes}
    points = tuple((str(n), report) for n, report in reports.items())
    found = Comparison(sweep.name, points)
    return replace(found, turns=tuple(_turns(found, requests, sweep, answered)))


def _sized(request: Request, name: str, size: int) -> Request:
    return replace(request, dims={**request.dims, name: size})


def _check_name(requests: Sequence[Request], name: str) -> None:
    known: set[str] = set()
    for request in requests:
        try:
            known |= named_dims(read_source(request.file), request)
        except KpredictError:  # said when it is analysed
            return
    if name not in known:
        near = get_close_matches(name, known, 1, 0.5)
        hint = f"Did you mean {near[0]}? " if near else ""
        hint += f"Named: {', '.join(sorted(known))}." if known else "Write x=f32[n] in an input."
        raise KpredictError(f"No input has a dimension called {name}.", hint)


def _turns(
    found: Comparison, requests: Sequence[Request], sweep: Sweep, answered: Answered
) -> Iterator[Turn]:
    by_file = {request.file: request for request in requests}
    for file, name in found.entries:
        if name.startswith("<"):  # a script makes its own sizes
            continue
        for mode in Mode:
            bounds = _bounds(found, sweep, file, name, mode)
            pair = _first_turn(bounds)
            if pair is None:
                continue
            request = replace(by_file[file], names=(name,), modes=(mode,))
            ends = dict(bounds)

            def at(
                size: int,
                request: Request = request,
                mode: Mode = mode,
                ends: dict[int, Bound] = ends,
            ) -> Bound | None:
                report = answered([_sized(request, sweep.name, size)])
                plans = [e.plans[mode] for e in report.entries if mode in e.plans]
                if len(plans) != 1:
                    return None
                ends[size] = phases_bound(plans[0], report.target)
                return ends[size]

            below, above = narrow(at, *pair, (bounds[pair[0]], bounds[pair[1]]))
            yield Turn(file, name, mode, below, above, ends[above].limited_by)


def _bounds(
    found: Comparison, sweep: Sweep, file: str, name: str, mode: Mode
) -> Mapping[int, Bound]:
    """The bound at each size where there is a plan."""
    bounds: dict[int, Bound] = {}
    for size, (label, report) in zip(sweep.sizes, found.points, strict=True):
        entry = found.entry(label, file, name)
        if entry is not None and mode in entry.plans:
            bounds[size] = phases_bound(entry.plans[mode], report.target)
    return bounds


def _first_turn(bounds: Mapping[int, Bound]) -> tuple[int, int] | None:
    sizes = list(bounds)
    for below, above in pairwise(sizes):
        if bounds[below].limited_by == "launches" != bounds[above].limited_by:
            return below, above
    return None
