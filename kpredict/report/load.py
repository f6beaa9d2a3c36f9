"""JSON → Report: a saved report can be rendered, compared and diffed later.

What the JSON does not hold comes back as a default: strides are row-major, arrays of one name in
one plan share a storage, source text is read again by the caller if it is wanted. Raises
KpredictError for text that is not such a report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from kpredict.model import (
    Access,
    Assumption,
    Barrier,
    Basis,
    Count,
    Dim3,
    Entry,
    Failure,
    GraphBreak,
    Kind,
    KpredictError,
    Launch,
    Mode,
    Phase,
    Phases,
    Plan,
    Recompile,
    Repeat,
    Report,
    RoundTrip,
    Span,
    Target,
    Tensor,
    Unknown,
    row_major,
)
from kpredict.report.json import SCHEMA_VERSION
from kpredict.report.outcomes import read_outcome
from kpredict.targets import TARGETS, target

Json = Mapping[str, Any]


def load(text: str, where: str = "the report") -> Report:
    """The report that `render` wrote as `text`; `where` names it in errors."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise KpredictError(f"{where} is not JSON: {error}.") from None
    return from_document(found, where)


def from_document(found: object, where: str) -> Report:
    """The report of what `document` gave. Raises KpredictError."""
    if not isinstance(found, dict) or "entries" not in found or "target" not in found:
        raise KpredictError(f"{where} is not a report of kpredict.", "Make one with -f json.")
    if found.get("schema_version") != SCHEMA_VERSION:
        raise KpredictError(
            f"{where} has schema version {found.get('schema_version')}, not {SCHEMA_VERSION}.",
            "Make it again with this version of kpredict.",
        )
    try:
        return Report(
            _target(found["target"]),
            tuple(_entry(e) for e in found["entries"]),
            tuple(_failure(f) for f in found.get("errors", ())),
            tuple(_failure(f) for f in found.get("skipped", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise KpredictError(f"{where} is damaged: {type(error).__name__}: {error}.") from None


def _target(t: Json) -> Target:
    name = t["name"] if t["name"] in TARGETS else None
    found = target(name, t["torch"], t.get("cuda"))
    return replace(found, launch_us=t.get("launch_us", found.launch_us))


def _failure(f: Json) -> Failure:
    return Failure(f["file"], f["message"], f.get("hint", ""), f.get("name", ""), f.get("line", 0))


def _entry(e: Json) -> Entry:
    file = e["file"]
    doubts = {
        "unknowns": tuple(
            Unknown(u["op"], u["reason"], _spans(file, u["lines"])) for u in e.get("unknowns", ())
        ),
        "graph_breaks": tuple(
            GraphBreak(b["reason"], _span(file, b)) for b in e.get("graph_breaks", ())
        ),
    }
    plans: dict[Mode, Phases] = {}
    names: dict[Mode, dict[int, str]] = {}
    for mode, phases in e["plans"].items():
        storages: dict[str, int] = {}
        found = {phase: _plan(file, plan, storages, doubts) for phase, plan in phases.items()}
        doubts = {"unknowns": (), "graph_breaks": ()}
        plans[Mode(mode)] = Phases(**{Phase(p).value: plan for p, plan in found.items()})
        names[Mode(mode)] = {storage: name for name, storage in storages.items()}
    return Entry(
        file,
        e["name"],
        e["line"],
        tuple(e.get("inputs", ())),
        plans,
        tuple(Assumption(a["what"], a["value"], _span(file, a)) for a in e.get("assumptions", ())),
        array_names=names,
        calls={int(line): n for line, n in e.get("calls", {}).items()},
        repeats=tuple(_repeat(file, r) for r in e.get("repeats", ())),
        changes=tuple(map(read_outcome, e["changes"])) if "changes" in e else None,
    )


def _plan(file: str, p: Json, storages: dict[str, int], doubts: Mapping[str, Any]) -> Plan:
    unnamed = count(-1, -1)

    def tensor(a: Json) -> Tensor:
        shape = tuple(a["shape"])
        name = a.get("name", "")
        storage = storages.setdefault(name, len(storages)) if name else next(unnamed)
        return Tensor(shape, row_major(shape), a["dtype"], storage=storage)

    def launch(x: Json) -> Launch:
        return Launch(
            Kind(x["kind"]),
            x["name"],
            Count(x["count"]["lo"], x["count"]["hi"]),
            tuple(Access(tensor(a), a["bytes"]) for a in x["reads"]),
            tuple(Access(tensor(a), a["bytes"]) for a in x["writes"]),
            Basis(x["basis"]),
            x["because"],
            x.get("expected"),
            _dim3(x.get("grid")),
            _dim3(x.get("block")),
            tuple(x["ops"]),
            (*_spans(file, x["lines"]), *_places(x.get("places", ()))),
            x.get("module", ""),
            Phase(x.get("phase", "forward")),
            x.get("region", ""),
            x.get("flops", 0),
            x.get("cuda_graph") or 0,
            precision=x.get("precision", ""),
        )

    return Plan(
        tuple(launch(x) for x in p["launches"]),
        tuple(
            RoundTrip(tensor(r), r["writer"], tuple(r["readers"]), r["bytes"])
            for r in p.get("intermediates", ())
        ),
        tuple(
            Barrier(b["producer"], b["consumer"], b["reason"], b.get("detail", ""))
            for b in p.get("barriers", ())
        ),
        notes=tuple(p.get("notes", ())),
        recompiles=tuple(_recompile(file, r) for r in p.get("recompiles", ())),
        **doubts,
    )


def _recompile(file: str, r: Json) -> Recompile:
    where = _span(file, r)
    return Recompile(
        r["function"], r["call"], r["reason"], where, tuple(r["dynamic"]), r.get("region", "")
    )


def _repeat(file: str, r: Json) -> Repeat:
    again, kernels = r.get("recompile"), Count(r["kernels"]["lo"], r["kernels"]["hi"])
    return Repeat(
        r["call"], tuple(r["inputs"]), kernels, r.get("line"), again and _recompile(file, again)
    )


def _dim3(value: Any) -> Dim3 | None:
    return (value[0], value[1], value[2]) if value else None


def _span(file: str, at: Json) -> Span | None:
    if "place" in at:
        return _places([at["place"]])[0]
    return None if at["line"] is None else Span(file, at["line"])


def _places(places: Iterable[str]) -> tuple[Span, ...]:
    parts = (p.rpartition(":") for p in places)
    return tuple(Span(file, int(line)) for file, _, line in parts)


def _spans(file: str, lines: list[int]) -> tuple[Span, ...]:
    return tuple(Span(file, n) for n in lines)
