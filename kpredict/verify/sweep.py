"""`verify --sweep a=1e2..1e8`: where launch cost ends and memory traffic begins.

In: a request and the sizes. Out: one Verification per size, and their table. The named input gets
that many elements; every input of the same shape follows it. A named dimension gets the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kpredict.model import Mode
from kpredict.request import Request
from kpredict.session.resize import with_dim, with_elements
from kpredict.verify.check import Checked, Verification
from kpredict.verify.render_trace import duration, size


def sized(request: Request, entry: str, inputs: Sequence[str], name: str, n: int) -> Request:
    """The request for one size. `inputs` are the entry's, as a report describes them."""
    if name in request.dims:
        return replace(with_dim(request, name, n), names=(entry,))
    return with_elements(request, entry, inputs, name, n)


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
