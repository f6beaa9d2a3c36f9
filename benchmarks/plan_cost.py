"""What a large plan costs after it was recorded: seconds per stage for 1,000 to 100,000 launches.

usage: python benchmarks/plan_cost.py [LAUNCHES...]

A made-up compiled run of a file with ten lines per function: generated kernels, library calls and
ops that run eagerly, each reading what the one before it wrote. Stages: the plan (launches, round
trips, reasons), paths as reports show them, JSON, JSON read back, text, and text of everything.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

from kpredict.compiled.plan import predict_compiled
from kpredict.compiled.region import Entered, Launched, Left, Node, Reached, Region
from kpredict.model import Entry, Mode, Op, Phase, Phases, Plan, Report, Span, Tensor
from kpredict.report import json as as_json
from kpredict.report import load
from kpredict.report import text as as_text
from kpredict.report.style import Style
from kpredict.session.paths import relabel
from kpredict.session.warm import collect_seldom
from kpredict.targets import target

FILE = "model.py"
TARGET = target()
BYTES = 4 << 20


def array(i: int) -> Tensor:
    return Tensor((1024, 1024), (1024, 1), "float32", "cuda", i)


def node(i: int, kind: str) -> Node:
    """The node that reads buffers i and i-1 and writes i+1."""
    return Node(
        f"op{i}", kind, ("aten.add.Tensor",), (Span(FILE, i + 1, f"f{i // 10}"),),
        {f"buf{i}": BYTES, f"buf{max(i - 1, 0)}": BYTES}, {f"buf{i + 1}": BYTES}, (f"op{i}",),
        ("1048576", "1"),
    )  # fmt: skip


def recorded(n: int) -> Iterator[object]:
    """The items of one compiled forward with `n` launches in one region."""
    region = Region("0/0", Phase.FORWARD)
    region.nodes = [node(i, "extern" if i % 3 == 2 else "generated") for i in range(n)]
    region.why_not = {(f"op{i}", f"op{i + 1}"): "memory deps did not match" for i in range(n)}
    yield Entered(region, Phase.FORWARD)
    for i, made in enumerate(region.nodes):
        yield Reached(made, Phase.FORWARD)
        if made.kind == "extern":
            args = {"self": array(i), "mat2": array(max(i - 1, 0))}
            yield Op("aten.mm.default", args, (array(i + 1),), index=i)
        else:
            read, also, written = array(i), array(max(i - 1, 0)), array(i + 1)
            arrays = ((read, "", BYTES, 0), (also, "", BYTES, 0), (written, "", 0, BYTES))
            yield Launched(f"triton_poi_fused_add_{i}", arrays, Phase.FORWARD)
    yield Left(region, Phase.FORWARD)


def source(n: int) -> str:
    return "".join(f"def f{i // 10}(x):\n" if i % 10 == 0 else "    x = x + 1\n" for i in range(n))


def costs(n: int) -> tuple[Plan, dict[str, float]]:
    """The plan of `n` launches and the CPU seconds of each stage."""
    items = list(recorded(n))
    spent: dict[str, float] = {}

    def timed(stage: str, run: Callable[[], object]) -> object:
        began = time.process_time()
        result = run()
        spent[stage] = time.process_time() - began
        return result

    plan = timed("plan", lambda: predict_compiled(items, TARGET))
    assert isinstance(plan, Plan)
    phases = timed("paths", lambda: relabel(Phases(plan), lambda span: span))
    assert isinstance(phases, Phases)
    plans = {Mode.EAGER: phases, Mode.COMPILED: phases}
    report = Report(TARGET, (Entry(FILE, "f0", 1, plans=plans, source=source(n)),))
    document = timed("json", lambda: as_json.render(report))
    timed("json read", lambda: load.load(str(document), FILE))
    timed("text", lambda: as_text.render(report))
    timed("text -v", lambda: as_text.render(report, Style(verbose=True)))
    return plan, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("launches", nargs="*", type=int, help="default 1000 10000 100000")
    sizes = parser.parse_args().launches or [1_000, 10_000, 100_000]
    collect_seldom()  # as the command does
    costs(10)  # rules and imports
    for i, n in enumerate(sizes):
        plan, spent = costs(n)
        if i == 0:
            print(f"{'launches':>9} {'reasons':>8}", *(f"{stage:>10}" for stage in spent))
        print(f"{n:9} {len(plan.barriers):8}", *(f"{s:9.3f}s" for s in spent.values()))


if __name__ == "__main__":
    main()
