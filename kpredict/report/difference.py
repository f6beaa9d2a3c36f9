"""Two saved reports → what changed: kernels, round trips and bytes per entry, mode and phase.

In: two objects as `kpredict show -f json` or `kpredict check -f json` write them. Out: a
Difference, and its text, Markdown or JSON. Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kpredict.model import KpredictError


@dataclass(frozen=True, slots=True)
class Change:
    """One number that is not what it was; `old` or `new` is None where the entry was not there.
    Counts that are intervals are given by their upper end."""

    entry: str
    what: str
    old: int | None
    new: int | None

    @property
    def is_increase(self) -> bool:
        return self.old is not None and self.new is not None and self.new > self.old


@dataclass(frozen=True, slots=True)
class Difference:
    changes: tuple[Change, ...] = ()
    compared: int = 0

    @property
    def increases(self) -> list[Change]:
        return [c for c in self.changes if c.is_increase]

    @property
    def sentence(self) -> str:
        if not self.changes:
            return f"no change in {self.compared} number{'' if self.compared == 1 else 's'}"
        up, down = (
            len(self.increases),
            sum(c.old is not None and c.new is not None and c.new < c.old for c in self.changes),
        )
        only = len(self.changes) - up - down
        parts = (
            [f"{up} up"] * bool(up)
            + [f"{down} down"] * bool(down)
            + [f"{only} new or gone"] * bool(only)
        )
        return f"{', '.join(parts)} of {self.compared} numbers"


def load(text: str, name: str) -> Mapping[str, Any]:
    """A saved report. Raises KpredictError for other text."""
    try:
        data = json.loads(text)
    except ValueError:
        raise KpredictError(
            f"{name} is not JSON.", "Write one with `kpredict FILE -o report.json`."
        ) from None
    if not isinstance(data, dict) or not ({"entries", "findings"} & data.keys()):
        raise KpredictError(f"{name} is not a report of kpredict.")
    return data


def failures(report: Mapping[str, Any]) -> list[str]:
    """What a report could not analyse, a line each."""
    return [f"{e.get('path') or e.get('file')}: {e['message']}" for e in report.get("errors", ())]


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    before, after = dict(_numbers(old)), dict(_numbers(new))
    if "findings" in old and "findings" in new:  # what a check does not list is not there
        known = {f["code"] for r in (old, new) for f in r["findings"]}
        for here, there in ((before, after), (after, before)):
            here |= {key: 0 for key in there.keys() - here.keys() if key[1] in known}
    changes = tuple(
        Change(entry, what, before.get((entry, what)), after.get((entry, what)))
        for entry, what in sorted(before.keys() | after.keys())
        if before.get((entry, what)) != after.get((entry, what))
    )
    return Difference(changes, len(before.keys() | after.keys()))


def _numbers(report: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    for e in report.get("entries", ()):
        name = f"{e['file']}::{e['name']}"
        yield (name, "unknown ops"), len(e.get("unknowns", ()))
        for mode, phases in e.get("plans", {}).items():
            for phase, plan in (phases or {}).items():
                if not plan:
                    continue
                where = f"{mode} {phase}"
                yield (name, f"{where} kernels"), plan["kernels"]["hi"]
                yield (name, f"{where} round trips"), plan["round_trips"]["arrays"]
                yield (name, f"{where} bytes"), plan["transfers"]["bytes"]
                yield (name, f"{where} syncs"), _count(plan.get("syncs", 0))
    found = Counter((f["path"], f["function"], f["code"]) for f in report.get("findings", ()))
    for (path, function, code), n in found.items():
        yield (f"{path}::{function or '<module>'}", code), n


def _count(value: Any) -> int:
    return int(value["hi"]) if isinstance(value, dict) else int(value)


def render_text(d: Difference) -> str:
    lines = []
    entry = None
    for c in d.changes:
        if c.entry != entry:
            entry = c.entry
            lines.append(entry)
        lines.append(
            f"  {c.what:34} {_shown(c.old):>12} -> {_shown(c.new):>12}  {_delta(c)}".rstrip()
        )
    return "\n".join([*lines, d.sentence]) + "\n"


def render_markdown(d: Difference) -> str:
    lines = ["### kpredict diff", "", d.sentence, ""]
    if d.changes:
        lines += ["| entry | what | before | after | change |", "|---|---|---|---|---|"]
        lines += [f"| `{c.entry}` | {c.what} | {_shown(c.old)} | {_shown(c.new)} | {_delta(c)} |"
                  for c in d.changes]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def render_json(d: Difference) -> str:
    data = {"schema_version": 1, "compared": d.compared, "increases": len(d.increases),
            "changes": [asdict(c) for c in d.changes]}  # fmt: skip
    return json.dumps(data, indent=2) + "\n"


def _shown(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"


def _delta(c: Change) -> str:
    if c.old is None:
        return "new"
    if c.new is None:
        return "gone"
    return f"{c.new - c.old:+,}"
