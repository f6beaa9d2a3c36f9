"""How often predictions equal what PyTorch's own host code was seen to launch.

    python benchmarks/accuracy.py TRUTH [--torch 2.13.0] [--only NAME] [--every N] [--programs]
                                  [--calls] [--misses FILE] [--write README.md]

TRUTH is a folder with `programs/` (one user file each), `programs_<torch>.jsonl.gz` (their launches
by mode and phase), `calls_specs.py` (single calls) and `calls_<torch>.jsonl.gz` (theirs). Prints a
table; `--write` puts it into a file, between the lines `<!-- accuracy -->` and `<!-- end -->`.

Of programs: *kernel count* is the share of (program, phase) whose kernels and library calls are
equal in number, *names in order* the share whose whole list of names is; *graph breaks* are held
against dynamo's own, the compiled optimizer step (`step_compiled`) included. Of calls: the same for
single calls, apart for those that launch PyTorch's own kernels only, those that call a closed
library, and those that depend on the device's data.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tables import put

from kpredict.model import Entry, Kind, Mode, Phase, Plan
from kpredict.request import FORWARD, TRAINING, Request, parse_stated
from kpredict.session.ask import analyse

Row = dict[str, Any]
BEGIN = "<!-- accuracy -->"


@dataclass
class Tally:
    """Shares of one group of rows."""

    rows: int = 0
    right: Counter[str] = field(default_factory=Counter)

    def add(self, **facts: bool) -> None:
        self.rows += 1
        self.right.update(name for name, fact in facts.items() if fact)

    def share(self, name: str) -> str:
        return f"{self.right[name] / self.rows:.1%}" if self.rows else "-"


def read_rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        yield from map(json.loads, lines)


def launches(plan: Plan) -> tuple[int, int, int, list[str]]:
    """(kernels at least, at most, library calls, names in order) as the rows count them."""
    own = [x for x in plan.launches if x.kind is Kind.KERNEL]
    both = [x for x in plan.launches if x.kind in (Kind.KERNEL, Kind.LIBRARY)]
    names = ["LIB" if x.kind is Kind.LIBRARY else base(x.name) for x in both]
    lo, hi = sum(x.count.lo for x in own), sum(x.count.hi for x in own)
    return lo, hi, plan.library_calls, names


def base(name: str) -> str:
    return name.split("<")[0].split("::")[-1]


# programs


STEP_COMPILED = "step_compiled"


def programs(
    folder: Path, rows: Path, only: str, misses: list[Row]
) -> tuple[dict[str, Tally], float, int]:
    """Tallies by mode, seconds per program, and (program, phase) pairs without an answer."""
    truth: dict[str, dict[tuple[str, str], Row]] = defaultdict(dict)
    steps: dict[str, Row] = {}
    for row in read_rows(rows):
        if not row["error"] and row["phase"] in set(Phase):
            truth[row["program"]][row["mode"], row["phase"]] = row
        elif not row["error"] and row["phase"] == STEP_COMPILED:
            steps[row["program"]] = row
    names = sorted(p for p in truth if only in p and (folder / p).exists())
    start = time.perf_counter()
    report = analyse([_request(folder / name, truth[name]) for name in names])
    seconds = (time.perf_counter() - start) / max(len(names), 1)
    first: dict[str, Entry] = {}
    for entry in report.entries:
        first.setdefault(Path(entry.file).name, entry)
    tallies: dict[str, Tally] = {"eager": Tally(), "compiled": Tally()}
    absent = 0
    for name in names:
        for (mode, phase), row in truth[name].items():
            phases = first[name].plans.get(Mode(mode)) if name in first else None
            plan = getattr(phases, phase) if phases is not None else None
            absent += plan is None
            _hold_against(name, mode, phase, row, plan, tallies[mode], misses)
    tallies["breaks"] = Tally()
    for name in names:
        forward = truth[name].get((Mode.COMPILED, Phase.FORWARD))
        if forward is not None and name in first:
            _hold_breaks(name, forward, first[name], tuple(Phase), tallies["breaks"], misses)
    asked = [
        replace(_request(folder / n, truth[n]), modes=(Mode.COMPILED,), compile_optimizer=True)
        for n in names
        if n in steps
    ]
    for entry in analyse(asked).entries:
        name = Path(entry.file).name
        _hold_breaks(name, steps[name], entry, (Phase.STEP,), tallies["breaks"], misses)
    return tallies, seconds, absent


def _hold_breaks(
    name: str, row: Row, entry: Entry, phases: Sequence[Phase], tally: Tally, misses: list[Row]
) -> None:
    """Every break that dynamo logs, a data-dependent branch included."""
    plans = entry.plans.get(Mode.COMPILED)
    found = sum(len(p.graph_breaks) for phase, p in plans or () if phase in phases)
    tally.add(breaks=found == row["graph_breaks_all"])
    if found != row["graph_breaks_all"]:
        misses.append({
            "program": name, "phase": row["phase"], "breaks": found, "seen": row["break_log"],
        })  # fmt: skip


def _request(path: Path, rows: dict[tuple[str, str], Row]) -> Request:
    training = any(phase != "forward" for _, phase in rows)
    value = re.search(r"^D2H_VALUE\s*=\s*(\S+)", path.read_text(), re.MULTILINE)
    stated = parse_stated([f"*={value[1]}"] if value else [])
    phases = TRAINING if training else FORWARD
    modes = (Mode.EAGER, Mode.COMPILED)
    return Request(str(path), phases=phases, modes=modes, stated=stated, timeout=300)


def _hold_against(
    name: str, mode: str, phase: str, row: Row, plan: Plan | None, tally: Tally, misses: list[Row]
) -> None:
    if plan is None:
        tally.add()
        misses.append({"program": name, "mode": mode, "phase": phase, "absent": True})
        return
    lo, hi, calls, names = launches(plan)
    events = [e for e in row["events"] if e["kind"] in ("kernel", "libcall")]
    seen = [(e.get("base") or e["name"]) if e["kind"] == "kernel" else "LIB" for e in events]
    count = lo == hi == row["n_kernels"] and calls == row["n_libcalls"]
    tally.add(count=count, list=names == seen)
    if not count or names != seen:
        misses.append({
            "program": name, "mode": mode, "phase": phase, "predicted": names, "seen": seen,
        })  # fmt: skip


# single calls


def calls(specs: Path, rows: Path, only: str, every: int, misses: list[Row]) -> dict[str, Tally]:
    """Tallies of the eager plans of single calls, forward and backward, by kind of call."""
    import torch

    import kpredict

    truth = {(r["fn"], r["args"], r["phase"]): r for r in read_rows(rows) if "error" not in r}
    tallies = {kind: Tally() for kind in ("native", "library", "data")}
    with kpredict.pretend_cuda(target="h100"):
        spec = importlib.util.spec_from_file_location("specs", specs)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for i, (name, args, setup, _, _) in enumerate(module.SPECS):
            if i % every or only not in name:
                continue
            for phase in ("fwd", "bwd"):
                row = truth.get((name, args, phase))
                if row is None:
                    continue
                kind = _kind(row)
                try:
                    run = setup()[0] if phase == "fwd" else _backward(torch, *setup())
                    plan = kpredict.predict(run, modes=("eager",)).eager.forward
                except Exception as error:
                    tallies[kind].add()
                    misses.append({"call": [name, args, phase], "error": str(error)[:300]})
                    continue
                assert plan is not None
                _hold_call(row, plan, tallies[kind], misses)
    return tallies


def _kind(row: Row) -> str:
    return "data" if row["data_dependent"] else "native" if row["exact"] else "library"


def _backward(torch: Any, fn: Any, inputs: Sequence[Any]) -> Any:
    """The backward alone, as the rows hold it: no gradient is accumulated."""
    made = fn()
    results = made if isinstance(made, tuple | list) else [made]
    y = next(t for t in results if isinstance(t, torch.Tensor) and t.requires_grad)
    g = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    wanted = [t for t in inputs if t.requires_grad]
    return lambda: torch.autograd.grad(y, wanted, g, retain_graph=True, allow_unused=True)


def _hold_call(row: Row, plan: Plan, tally: Tally, misses: list[Row]) -> None:
    lo, hi, library, names = launches(plan)
    own = row["n_kernels"] - row["n_libcalls"]
    count = lo == hi == own and library == row["n_libcalls"] and not plan.unknowns
    copies = (plan.memcpy.hi, plan.memset.hi) == (row["n_memcpy"], row["n_memset"])
    syncs = plan.syncs.hi == row["n_sync"]
    seen = ["LIB" if name.startswith("LIB:") else name for name in row["base"]]
    tally.add(count=count, copies=copies, syncs=syncs, list=names == seen)
    if not (count and copies and syncs and names == seen):
        misses.append({
            "call": [row["fn"], row["args"], row["phase"]], "predicted": names, "seen": seen,
            "copies": copies, "syncs": syncs, "unknown": [u.op for u in plan.unknowns],
        })  # fmt: skip


# the table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("truth", type=Path)
    parser.add_argument("--torch", default="2.13.0", help="the release whose rows are read")
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--every", type=int, default=1, help="every N-th call")
    parser.add_argument("--programs", action="store_true", help="programs only")
    parser.add_argument("--calls", action="store_true", help="single calls only")
    parser.add_argument("--misses", type=Path, help="write what was not right, one JSON a line")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    asked = parser.parse_args()
    both = asked.programs == asked.calls
    misses: list[Row] = []
    table = [
        "| torch "
        + asked.torch
        + " | rows | kernel count | names in order | memcpy, memset | syncs |",
        "|---|---|---|---|---|---|",
    ]
    if both or asked.programs:
        rows = asked.truth / f"programs_{asked.torch}.jsonl.gz"
        tallies, seconds, absent = programs(asked.truth / "programs", rows, asked.only, misses)
        breaks = tallies.pop("breaks")
        for mode, tally in tallies.items():
            shares = f"{tally.share('count')} | {tally.share('list')} | | |"
            table.append(f"| programs, {mode} (program, phase) | {tally.rows} | {shares}")
        row = f"| programs, graph breaks of each compiled run | {breaks.rows} | "
        table.append(f"{row}{breaks.share('breaks')} | | | |")
        print(f"{seconds:.1f} s per program, {absent} (program, mode, phase) without an answer")
    if both or asked.calls:
        rows = asked.truth / f"calls_{asked.torch}.jsonl.gz"
        specs = asked.truth / "calls_specs.py"
        for kind, tally in calls(specs, rows, asked.only, asked.every, misses).items():
            shares = " | ".join(tally.share(s) for s in ("count", "list", "copies", "syncs"))
            table.append(f"| calls, {_KINDS[kind]} | {tally.rows} | {shares} |")
    print("\n".join(table))
    if asked.misses:
        asked.misses.write_text("".join(json.dumps(m) + "\n" for m in misses))
    if asked.write:
        put(asked.write, BEGIN, table)


_KINDS = {
    "native": "PyTorch's own kernels only",
    "library": "with closed libraries",
    "data": "that depend on data",
}

if __name__ == "__main__":
    main()
