"""torch.compile where it is not: Changes that decorate a function that runs eagerly.

The whole entry point is offered when it is not compiled, or only in parts; a function it calls,
where the whole does not compile in one piece or is a script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kpredict.changes.change import Alternatives, Change, Edit, Kind
from kpredict.changes.reading import Reading
from kpredict.model import Entry, Mode
from kpredict.model import Kind as Launched

_NEVER = frozenset("get_inputs get_kwargs get_init_inputs make_optimizer".split())
_MOST = 3  # functions of one entry


def whole(entry: Entry, readings: Sequence[Reading]) -> Change | None:
    """Decorate the entry point itself; None when it is compiled as a whole, or has no def here."""
    found = next((r for r in readings if r.name in (entry.name, f"{entry.name}.forward")), None)
    if found is None or Mode.COMPILED not in entry.plans:
        return None
    change = decorated(found, entry.name)
    if change is None or Mode.AS_WRITTEN not in entry.plans:
        return change
    regions = {x.region for _, p in entry.plans[Mode.AS_WRITTEN] for x in p.launches}
    return replace(change, title=f"compile all of {entry.name}") if "" in regions else None


def parts(entry: Entry, readings: Sequence[Reading]) -> Iterator[Alternatives]:
    """Decorate a function that the entry calls: those with the most kernels."""
    compiled = entry.plans.get(Mode.COMPILED)
    broken = compiled is not None and any(p.graph_breaks or p.skipped for _, p in compiled)
    if compiled is not None and not broken:
        return
    weights = [(_kernels(entry, r), r) for r in readings if r.name not in _NEVER]
    weights = [(n, r) for n, r in weights if n > 1 and not _is_entry(entry, r)]
    for _, r in sorted(weights, key=lambda w: -w[0])[:_MOST]:
        change = decorated(r, entry.name)
        if change is not None:
            yield (change,)


def _is_entry(entry: Entry, r: Reading) -> bool:
    return r.name in (entry.name, f"{entry.name}.forward") or r.name.endswith("__init__")


def _kernels(entry: Entry, r: Reading) -> int:
    """Kernels that an entry launches eagerly from a function's lines."""
    plans = entry.plans.get(Mode.EAGER) or entry.plans.get(Mode.AS_WRITTEN)
    first, last = r.node.lineno, r.node.end_lineno or r.node.lineno
    return sum(
        x.count.lo
        for _, plan in plans or ()
        for x in plan.launches
        if x.kind in (Launched.KERNEL, Launched.LIBRARY)
        and any(s.file == entry.file and first <= s.line <= last for s in x.lines)
    )


def decorated(r: Reading, entry: str) -> Change | None:
    """`@torch.compile` above a def that does not have it."""
    torch = r.names.spell("torch")
    listed = [r.names.path(d) for d in r.node.decorator_list]
    if torch is None or any("compile" in r.segment(d) for d in r.node.decorator_list):
        return None
    if any(path.endswith("property") for path in listed):
        return None
    first = min([r.node.lineno, *(d.lineno for d in r.node.decorator_list)])
    at = r.offsets[first - 1]
    indent = " " * r.node.col_offset
    return Change(
        Kind.COMPILE, f"compile {r.name}: @{torch}.compile", r.node.lineno, r.node.lineno,
        (Edit(at, at, f"{indent}@{torch}.compile\n"),), "same result up to rounding", r.name, entry,
    )  # fmt: skip
