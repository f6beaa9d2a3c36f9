"""How often reading source alone agrees with what was really launched.

    python benchmarks/static_accuracy.py PROGRAMS_FOLDER ROWS.jsonl.gz [--only NAME] [-v]

Prints: eager count inside the interval, intervals of width 0, and lines whose count is equal. A
library call counts as one, as in the rows.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kpredict.source.fusion import estimate
from kpredict.source.infer.counting import calls, default_target
from kpredict.source.infer.entries import read_conventional
from kpredict.source.infer.machine import Machine
from kpredict.source.infer.trace import Interval, Missing, count, steps, walk


def compare_calls(specs: Path, rows: Path) -> None:
    """The kernels of single calls: the file that specifies them is itself read as source."""
    truth = {}
    with gzip.open(rows) as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("phase") == "fwd" and not row.get("error"):
                truth[row["fn"], row["args"]] = row
    target = default_target()
    loader = Machine(fuel=10**9, target=target)
    scope = loader.load(ast.parse(specs.read_text()), specs.name)
    tally: Counter[str] = Counter()
    odd: Counter[str] = Counter()
    for name, args, setup, *_ in scope.names["SPECS"]:
        row = truth.get((name, str(args)))
        if row is None:
            continue
        read = row["d2h_value"]
        assume = int(read) if isinstance(read, (int, float)) else 0
        reader = Machine(3 * 10**6, assume, target, loader.files)
        with reader.recording():
            made = reader.call(setup, (), {})
        with reader.recording() as items:
            reader.call(made[0] if isinstance(made, tuple) else made, (), {})
        got, want = count(items, lambda step: calls(step, target)), row["n_kernels"]
        tally["calls"] += 1
        tally["inside"] += want in got
        tally["exact"] += got.lo == want == got.hi
        odd[name] += not (got.lo == want == got.hi)
    print("calls not exact:", ", ".join(f"{k} {n}" for k, n in odd.most_common(20) if n))
    for key in ("inside", "exact"):
        share = tally[key] / max(tally["calls"], 1)
        print(f"calls {key:7} {tally[key]}/{tally['calls']} = {share:.1%}")


def by_line(launched: Iterable[tuple[int, Interval]]) -> dict[int, Interval]:
    lines: dict[int, Interval] = {}
    for line, n in launched:
        lines[line] = lines.get(line, Interval(0, 0)) + n
    return {line: n for line, n in lines.items() if n.hi != 0}


def compare_lines(paths: list[Path]) -> None:
    """Kernels of each source line: read from source against one run on the pretended GPU."""
    from kpredict.model import Kind, Mode, Phase
    from kpredict.request import Request
    from kpredict.session.ask import analyse

    target = default_target()
    report = analyse([Request(str(p), modes=(Mode.EAGER,), phases=(Phase.FORWARD,)) for p in paths])
    equal = total = 0
    for entry in report.entries:
        plan = entry.plans[Mode.EAGER].forward
        if plan is None:
            continue
        want = by_line(
            (x.lines[0].line, Interval.of(x.count) if x.kind is Kind.KERNEL else Interval(1, 1))
            for x in plan.launches
            if x.kind in (Kind.KERNEL, Kind.LIBRARY) and x.lines
        )
        read = read_conventional(Path(entry.file).read_text(), entry.file, target)
        assert read is not None
        got = by_line((s.place.line, calls(s, target)) for s in steps(read.items))
        total += len(want)
        same = sum(got.get(line) == n for line, n in want.items())
        equal += same
        if same < len(want):
            odd = {
                line: f"{got.get(line)} for {n}" for line, n in want.items() if got.get(line) != n
            }
            print(f"{Path(entry.file).name}: {odd}")
    print(f"lines equal: {equal}/{total} = {equal / max(total, 1):.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("-v", action="store_true")
    parser.add_argument("--torch", help="the release of the rows; default the installed one")
    parser.add_argument(
        "--calls", nargs=2, metavar=("SPECS", "ROWS"), help="compare single calls as well"
    )
    parser.add_argument("--lines", action="store_true", help="compare line by line with capture")
    options = parser.parse_args()
    target = default_target()
    if options.torch:
        target = replace(target, torch=options.torch)
    truth = {}
    compiled = {}
    with gzip.open(options.rows) as lines:
        for line in lines:
            row = json.loads(line)
            if (row["mode"], row["phase"]) == ("eager", "forward") and not row["error"]:
                truth[row["program"]] = row
            if (row["mode"], row["phase"]) == ("compiled", "forward") and not row["error"]:
                compiled[row["program"]] = row["n_kernels"] + row["n_libcalls"]
    tally: Counter[str] = Counter()
    for name, row in sorted(truth.items()):
        if not name.startswith(options.only):
            continue
        want = row["n_kernels"] + row["n_libcalls"]
        start = time.perf_counter()
        path = options.programs / name
        try:
            read = read_conventional(path.read_text(), name, target)
        except Exception as error:
            print(f"{name:42} CRASH {type(error).__name__}: {error}")
            if options.v:
                raise
            tally["programs"] += 1
            continue
        assert read is not None
        got = count(read.items, lambda step: calls(step, target))
        tally["programs"] += 1
        tally["inside"] += want in got
        tally["width 0"] += got.width == 0
        tally["exact"] += got.lo == want == got.hi
        mark = "" if got.lo == want == got.hi else "  <" if want in got else "  <<<<"
        seconds = time.perf_counter() - start
        print(f"{name:42} want {want:4} got {got!s:>10} {seconds:5.2f}s{mark}")
        if name in compiled:
            fused = estimate(read.items, read.returned, lambda s: calls(s, target).lo)
            tally["compiled"] += 1
            close = fused is not None and abs(fused - compiled[name]) <= 1
            tally["fused within 1"] += close
            if not close:
                print(f"    compiled want {compiled[name]} estimated {fused}")
        missing = sorted({i.what for i in walk(read.items) if isinstance(i, Missing)})
        if missing:
            print(f"    not read: {', '.join(missing)}")
        if options.v:
            for step in steps(read.items):
                print(f"    {step.place.line:4} {step.name:45} {calls(step, target)!s:>6}",
                      *map(str, step.arrays), "->", *map(str, step.results))  # fmt: skip
    n = tally["programs"]
    if options.calls:
        compare_calls(Path(options.calls[0]), Path(options.calls[1]))
    if options.lines:
        compare_lines([options.programs / n for n in sorted(truth) if n.startswith(options.only)])
    m = tally["compiled"]
    print(
        f"fused estimate within 1: {tally['fused within 1']}/{m} = "
        f"{tally['fused within 1'] / max(m, 1):.1%}"
    )
    for key in ("inside", "width 0", "exact"):
        print(f"{key:10} {tally[key]}/{n} = {tally[key] / max(n, 1):.1%}")


if __name__ == "__main__":
    main()
