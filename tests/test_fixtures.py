"""Every fixture says in comments what it launches; its whole report is a golden file.

`# eager: N` on a line: kernels of that line over all phases; `# total: eager=N compiled=N..M` in
the docstring: the file's totals over entries (but not the script as a whole) and phases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kpredict.commands._options import requests
from kpredict.model import ZERO, Count, Mode, Report
from kpredict.report import json as json_format
from kpredict.report import text as text_format
from kpredict.session.ask import analyse

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NAMES = sorted(p.stem for p in FIXTURES.glob("*.py"))
DIMS = ["b=8,n=128"]


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """One run over all fixtures, taken apart by file."""
    pytest.importorskip("torch")
    whole = analyse(requests([f"fixtures/{n}.py" for n in NAMES], dims=DIMS))
    return {
        name: replace(
            whole,
            entries=tuple(e for e in whole.entries if Path(e.file).stem == name),
            errors=tuple(f for f in whole.errors if Path(f.file).stem == name),
            skipped=tuple(f for f in whole.skipped if Path(f.file).stem == name),
        )
        for name in NAMES
    }


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES.parent)


@pytest.mark.parametrize("name", NAMES)
def test_text(name: str, reports: dict[str, Report], golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", text_format.render(reports[name]))


@pytest.mark.parametrize("name", NAMES)
def test_json(name: str, reports: dict[str, Report], golden: Callable[[str, str], None]) -> None:
    document = json_format.document(reports[name], "0")
    golden(f"{name}.json", json.dumps(document, indent=1) + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_no_error_and_nothing_unknown(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    assert report.entries
    assert not report.errors
    assert not [u for e in report.entries for u in e.unknowns]


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_say_what_they_launch(name: str, reports: dict[str, Report]) -> None:
    said = {
        number: int(match[1])
        for number, line in enumerate((FIXTURES / f"{name}.py").read_text().splitlines(), 1)
        if (match := re.search(r"#.*\beager: (\d+)", line))
    }
    counted: dict[int, int] = {}
    for entry in reports[name].entries:
        if entry.name.startswith("<"):
            continue
        for _, plan in entry.plans[Mode.EAGER]:
            for launch in plan.launches:
                for span in launch.lines:
                    counted[span.line] = counted.get(span.line, 0) + (
                        launch.count.hi if launch.kind in ("kernel", "library") else 0
                    )
    assert {line: counted.get(line, 0) for line in said} == said


@pytest.mark.parametrize("name", NAMES)
def test_the_totals_are_as_said(name: str, reports: dict[str, Report]) -> None:
    match = re.search(r"# total: (.*)", (FIXTURES / f"{name}.py").read_text())
    if match is None:
        pytest.skip("the file is as the article prints it")
    for word in match[1].split():
        mode, _, count = word.partition("=")
        lo, _, hi = count.partition("..")
        entries = [e for e in reports[name].entries if not e.name.startswith("<")]
        total = sum((e.plans[Mode(mode)].kernels for e in entries), ZERO)
        assert total == Count(int(lo), int(hi or lo)), mode


def test_the_reference_example(reports: dict[str, Report]) -> None:
    report = reports["add_relu"]
    eager, compiled = report.eager.forward, report.compiled.forward
    assert eager is not None
    assert compiled is not None
    assert (eager.kernels, eager.transfers) == (Count(2, 2), (5, 20_000_000))
    assert len(eager.round_trips) == 1
    assert [x.name for x in compiled.launches] == ["triton_poi_fused_add_relu_0"]
    assert (compiled.transfers, compiled.round_trips) == ((3, 12_000_000), ())
    last = text_format.render(report).splitlines()[-1]
    assert last.startswith(
        "add_relu: eager 2 kernels, compiled 1 kernel; saved: 1 launch, 1 round trip, 8 MB ["
    )


def test_the_article_shows_the_two_counts(reports: dict[str, Report]) -> None:
    function, script = reports["article"].entries
    assert (function.name, script.name) == ("add_relu", "<script>")
    assert function.plans[Mode.EAGER].kernels == Count(2, 2)
    assert function.plans[Mode.COMPILED].kernels == Count(1, 1)
    # two factories, the eager call, the warm-up and the compiled call
    assert script.plans[Mode.AS_WRITTEN].kernels == Count(6, 6)
