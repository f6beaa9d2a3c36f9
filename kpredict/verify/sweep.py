"""`verify --sweep a=1e2,1e4,1e6`: where launch cost ends and memory traffic begins.

In: a request and the sizes. Out: one Verification per size, and their table. The named input gets
that many elements; every input of the same shape follows it. A named dimension gets the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kpredict.model import KpredictError, Mode
from kpredict.request import Request
from kpredict.source.inputs import DictSpec, InputSpec, ListSpec, TensorSpec, parse_input
from kpredict.verify.check import Checked, Verification
from kpredict.verify.render_trace import duration, size


def parse_sweep(text: str) -> tuple[str, tuple[int, ...]]:
    """`a=1e2,1e4` → ("a", (100, 10000)). Raises KpredictError."""
    name, equals, rest = text.partition("=")
    try:
        sizes = tuple(int(float(part)) for part in rest.split(","))
    except (ValueError, OverflowError):
        sizes = ()
    if not equals or not name.strip() or not sizes or min(sizes) < 1:
        raise KpredictError(
            f"--sweep {text!r} is not NAME=SIZE,SIZE,...", "Write --sweep a=1e2,1e4,1e6,1e8."
        )
    return name.strip(), sizes


def sized(request: Request, entry: str, inputs: Sequence[str], name: str, n: int) -> Request:
    """The request for one size. `inputs` are the entry's, as a report describes them."""
    if name in request.dims:
        return replace(request, names=(entry,), dims={**request.dims, name: n})
    specs = dict(parse_input(text) for text in inputs)
    swept = specs.get(name)
    if not isinstance(swept, TensorSpec):
        known = ", ".join(n for n, s in specs.items() if isinstance(s, TensorSpec))
        raise KpredictError(
            f"{entry} has no tensor input and no --dim called {name}.", f"Sweep one of: {known}."
        )
    changed = [
        f"{key}={spec}"
        for key, old in specs.items()
        if (spec := _resized(old, swept.shape, n)) != old
    ]
    return replace(request, names=(entry,), inputs=(*request.inputs, *changed))


def _resized(spec: InputSpec, shape: tuple[int | str, ...], n: int) -> InputSpec:
    match spec:
        case TensorSpec() if spec.shape == shape and shape:
            rest = 1
            for extent in shape[1:]:
                rest *= int(extent)
            return replace(spec, shape=(max(n // max(rest, 1), 1), *shape[1:]), stride=None)
        case ListSpec(items, is_tuple):
            return ListSpec(tuple(_resized(i, shape, n) for i in items), is_tuple)
        case DictSpec(items):
            return DictSpec(tuple((k, _resized(v, shape, n)) for k, v in items))
    return spec


def table(name: str, rows: Sequence[tuple[int, Verification]]) -> str:
    """Per size and phase: time and achieved bandwidth, eager against compiled."""
    head = f"{name:>12}  {'phase':9}  {'eager':>20}  {'compiled':>20}  {'faster':>6}"
    lines = [head]
    for n, found in rows:
        for phase in dict.fromkeys(c.phase for c in found.checked):
            plans = {c.mode: c for c in found.checked if c.phase is phase}
            eager, compiled = plans.get(Mode.EAGER), plans.get(Mode.COMPILED)
            lines.append(
                f"{n:>12,}  {phase.value:9}  {_cell(eager):>20}  {_cell(compiled):>20}  "
                f"{_faster(eager, compiled):>6}"
            )
    return "\n".join([*lines, *_turning_point(rows)]) + "\n"


def _cell(checked: Checked | None) -> str:
    if checked is None or not checked.found.time:
        return "-"
    bandwidth = f" {checked.bandwidth:.0f} GB/s" if checked.bandwidth else ""
    return f"{duration(checked.found.time)}{bandwidth}"


def _faster(eager: Checked | None, compiled: Checked | None) -> str:
    if eager is None or compiled is None or not eager.found.time or not compiled.found.time:
        return "-"
    return f"{eager.found.time / compiled.found.time:.2f}x"


def _turning_point(rows: Sequence[tuple[int, Verification]]) -> Iterator[str]:
    """The first size at which a plan takes twice the time of the smallest size."""
    for mode in (Mode.EAGER, Mode.COMPILED):
        times = [
            (n, c)
            for n, found in rows
            for c in found.checked
            if c.mode is mode and c.found.time and c.phase is found.checked[0].phase
        ]
        if len(times) < 2:
            continue
        floor = min(c.found.time or 0.0 for _, c in times)
        first = next((p for p in times if (p[1].found.time or 0.0) > 2 * floor), None)
        if first is None:
            yield f"{mode}: launch cost at every size, about {duration(floor)} a call."
        else:
            n, c = first
            yield (
                f"{mode}: launch cost, about {duration(floor)} a call, up to below {n:,}; from "
                f"there memory traffic ({size(c.bytes)} in {duration(c.found.time or 0.0)})."
            )
