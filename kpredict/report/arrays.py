"""Names for the arrays of a plan: inputs and parameters as known, `tmp…` between, `out…` last."""

from __future__ import annotations

from collections.abc import Mapping

from kpredict.model import Plan


def array_names(plan: Plan, known: Mapping[int, str]) -> dict[int, str]:
    """A name for every storage the plan touches.

    What no name is known for is called `tmp` when it is written and read again, `out` when it is
    only written, `in` when it is only read; numbered when there are several.
    """
    between = {trip.tensor.storage for trip in plan.round_trips}
    kinds: dict[int, str] = {}
    for launch in plan.launches:
        writes = frozenset(launch.writes)
        for access in (*launch.reads, *launch.writes):
            storage = access.tensor.storage
            if storage not in known and storage not in kinds:
                written = access in writes
                kinds[storage] = "tmp" if storage in between else "out" if written else "in"
    names = {s: known[s] for s in _storages(plan) if s in known}
    for kind in ("in", "tmp", "out"):
        members = [s for s, k in kinds.items() if k == kind]
        for i, storage in enumerate(members, 1):
            names[storage] = kind if len(members) == 1 else f"{kind}{i}"
    return names


def _storages(plan: Plan) -> set[int]:
    return {
        access.tensor.storage
        for launch in plan.launches
        for access in (*launch.reads, *launch.writes)
    }
