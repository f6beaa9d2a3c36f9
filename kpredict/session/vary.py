"""The same files for several targets or over sizes → a Comparison. No torch here.

Every point is a prediction of its own: captured, lowered and planned for that target and size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise

from kpredict.bounds import Bound, phases_bound
from kpredict.model import Comparison, KpredictError, Mode, Turn
from kpredict.request import Request
from kpredict.session.ask import Answering
from kpredict.session.reading import read_source
from kpredict.session.resize import tensor_inputs, with_dim, with_elements
from kpredict.session.told import named_dims
from kpredict.sweep import Sweep, narrow


def over_targets(
    requests: Sequence[Request], targets: Sequence[str], answered: Answering
) -> Comparison:
    """One report for each target, in the order given."""
    points = [(name, answered([replace(r, target=name) for r in requests])) for name in targets]
    return Comparison("target", tuple(points))


def over_sizes(requests: Sequence[Request], sweep: Sweep, answered: Answering) -> Comparison:
    """One report for each size, and where each entry's modes stop to be bound by launches.

    The name is a dimension's; else an input's, of so many elements, with those shaped like it.
    Raises KpredictError when no entry has either.
    """
    sized = _resizing(requests, sweep.name, answered)
    points = tuple((str(n), answered(sized(n))) for n in sweep.sizes)
    found = Comparison(sweep.name, points)
    return replace(found, turns=tuple(_turns(found, sweep, sized, answered)))


def _resizing(
    requests: Sequence[Request], name: str, answered: Answering
) -> Callable[[int], list[Request]]:
    """A function that gives the requests for a size."""
    dims: set[str] = set()
    for request in requests:
        with suppress(KpredictError):  # said when it is analysed
            dims |= named_dims(read_source(request.file), request)
    if name in dims:
        return lambda n: [with_dim(request, name, n) for request in requests]
    by_file = {request.file: request for request in requests}
    entries = answered(requests).entries
    swept = [e for e in entries if name in tensor_inputs(e.inputs) and not _is_script(e.name)]
    if not swept:
        inputs = {word for e in entries for word in tensor_inputs(e.inputs)}
        raise _no_such(name, sorted(dims), sorted(inputs - dims))
    return lambda n: [with_elements(by_file[e.file], e.name, e.inputs, name, n) for e in swept]


def _no_such(name: str, dims: Sequence[str], inputs: Sequence[str]) -> KpredictError:
    near = get_close_matches(name, [*dims, *inputs], 1, 0.5)
    hint = f"Did you mean {near[0]}? " if near else ""
    told = [f"{kind}: {', '.join(words)}." for kind, words in
            (("Dimensions", dims), ("Inputs", inputs)) if words]  # fmt: skip
    return KpredictError(
        f"No dimension and no tensor input is called {name}.", hint + " ".join(told)
    )


def _is_script(name: str) -> bool:
    """A script makes its own sizes."""
    return name.startswith("<")


def _turns(
    found: Comparison, sweep: Sweep, sized: Callable[[int], list[Request]], answered: Answering
) -> Iterator[Turn]:
    for file, name in found.entries:
        for mode in Mode:
            bounds = _bounds(found, sweep, file, name, mode)
            pair = None if _is_script(name) else _first_turn(bounds)
            if pair is not None:
                search = _Search(file, name, mode, sized, answered, dict(bounds))
                below, above = narrow(search.at, *pair, (bounds[pair[0]], bounds[pair[1]]))
                yield Turn(file, name, mode, below, above, search.bounds[above].limited_by)


@dataclass(frozen=True, slots=True)
class _Search:
    """Predicts one mode of one entry at more sizes."""

    file: str
    name: str
    mode: Mode
    sized: Callable[[int], list[Request]]
    answered: Answering
    bounds: dict[int, Bound]

    def at(self, size: int) -> Bound | None:
        of_file = [r for r in self.sized(size) if r.file == self.file]
        own = next((r for r in of_file if r.names == (self.name,)), of_file[0])
        report = self.answered([replace(own, names=(self.name,), modes=(self.mode,))])
        plans = [e.plans[self.mode] for e in report.entries if self.mode in e.plans]
        if len(plans) != 1:
            return None
        self.bounds[size] = phases_bound(plans[0], report.target)
        return self.bounds[size]


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
