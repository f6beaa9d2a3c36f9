"""Programs of many styles: what each line launches, read from source, is what a run counts.

`# eager: N` in fixtures/static says what a run on the pretended GPU counts for a line
(tools/annotate_static.py writes it); `# read: LO..HI` what source tells where that is less.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kpredict.source.infer.counting import calls, default_target
from kpredict.source.infer.entries import read_conventional
from kpredict.source.infer.trace import NOTHING, Interval, count, steps

FOLDER = Path(__file__).parents[3] / "fixtures/static"
PROGRAMS = sorted(FOLDER.glob("*.py"))
NOTE = re.compile(r"# eager: (\d+)$")


def noted(text: str) -> dict[int, int]:
    """The kernels of each line that has any, as its comment says."""
    lines = enumerate(text.splitlines(), 1)
    return {n: int(found[1]) for n, line in lines if (found := NOTE.search(line))}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_source_tells_what_a_run_counts(path: Path) -> None:
    text = path.read_text()
    target = default_target()
    read = read_conventional(text, path.name, target)
    assert read is not None
    total = count(read.items, lambda step: calls(step, target))
    stated = noted(text)
    assert sum(stated.values()) in total
    told = re.match(r"# read: (.*)", text)
    if told:
        assert str(total) == told[1]
        return
    lines: dict[int, Interval] = {}
    for step in steps(read.items):
        lines[step.place.line] = lines.get(step.place.line, NOTHING) + calls(step, target)
    found = {n: str(c) for n, c in lines.items() if c.hi != 0}
    assert found == {n: str(c) for n, c in stated.items()}


def test_the_notes_are_what_a_run_counts() -> None:
    pytest.importorskip("torch")
    from kpredict.model import Kind, Mode, Phase
    from kpredict.request import Request
    from kpredict.session.ask import analyse

    chosen = [p for p in PROGRAMS if 'MODE = "training"' not in p.read_text()][::12]
    report = analyse(
        [Request(str(p), modes=(Mode.EAGER,), phases=(Phase.FORWARD,)) for p in chosen]
    )
    assert len(report.entries) == len(chosen)
    for entry in report.entries:
        plan = entry.plans[Mode.EAGER].forward
        assert plan is not None
        found: dict[int, int] = {}
        for x in plan.launches:
            if x.kind in (Kind.KERNEL, Kind.LIBRARY):
                n = x.count.lo if x.kind is Kind.KERNEL else 1
                found[x.lines[0].line] = found.get(x.lines[0].line, 0) + n
        assert found == noted(Path(entry.file).read_text()), entry.file
