"""Targets and sizes side by side, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from kpredict.model import Comparison, KpredictError, Mode, Report, Turn
from kpredict.report import comparison
from kpredict.report.side_by_side import render
from kpredict.report.style import Style
from kpredict.targets import target


@pytest.fixture
def targets(report: Report) -> Comparison:
    """On the T4 the eager plan stands for the compiled one, and one target failed."""
    entry = report.entries[0]
    same = replace(entry, plans=dict.fromkeys(entry.plans, entry.plans[Mode.EAGER]))
    t4 = replace(report, target=target("t4", "2.13.0"), entries=(same,))
    a100 = replace(report, target=target("a100", "2.13.0"), entries=())
    return Comparison("target", (("h100", report), ("t4", t4), ("a100", a100)))


@pytest.fixture
def sizes(report: Report) -> Comparison:
    turn = Turn("f.py", "f", Mode.EAGER, 990_000, 1_000_000, "memory")
    return Comparison("n", (("1000", report), ("10000", report)), (turn,))


def test_a_row_for_each_target(targets: Comparison) -> None:
    text = render(targets)
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert rows[:5] == [
        "f.py:1 f",
        "target eager compiled round trips moved bound eager bound compiled ratio",
        "h100 3..4 2..3 2 -> 1 7 MB -> 5 MB 7.5 us, launches 5 us, launches 1.5x",
        "t4 3..4 3..4 2 -> 2 7 MB -> 7 MB 21.9 us, memory 21.9 us, memory 1x",
        "a100 - - - - - - -",
    ]
    assert "unknown and not counted: mylib.op.default" in text
    assert text.splitlines()[-1] == (
        "f: eager 3..4 kernels on each; compiled 2..3 kernels on h100, 3..4 kernels on t4 "
        "[torch 2.13.0]"
    )


def test_a_sentence_for_each_size_at_which_it_turns(sizes: Comparison) -> None:
    assert render(sizes, Style(quiet=True)) == (
        "f: eager turns from launch-bound to memory-bound between n = 990,000 and 1,000,000; "
        "compiled is launch-bound at every size (sizes that were predicted) "
        "[H100 80GB HBM3, sm_90, torch 2.13.0]\n"
    )


def test_a_size_that_no_memory_holds_is_marked(sizes: Comparison) -> None:
    label, report = sizes.points[1]
    small = replace(report, target=replace(report.target, memory=1))
    text = render(replace(sizes, points=(sizes.points[0], (label, small))))
    assert "one launch alone touches more than the GPU's memory: 10,000\n" in text
    assert "memory: " not in render(sizes)


def test_it_fits_the_schema(targets: Comparison, sizes: Comparison) -> None:
    def schema(name: str) -> dict[str, object]:
        text = files("kpredict.report").joinpath(f"{name}.schema.json").read_text()
        found: dict[str, object] = json.loads(text)
        return found

    registry: Registry[dict[str, object]] = Registry().with_resource(
        "report.schema.json", Resource.from_contents(schema("report"))
    )
    for found in (targets, sizes):
        validator = Draft202012Validator(schema("comparison"), registry=registry)
        validator.validate(comparison.document(found, "1.0"))


def test_what_was_written_is_read_again(sizes: Comparison, report: Report) -> None:
    again = comparison.read(comparison.render(sizes), "x.json")
    assert isinstance(again, Comparison)
    assert render(again) == render(sizes)
    assert comparison.document(again) == comparison.document(sizes)
    assert isinstance(
        comparison.read(json.dumps(comparison.document(sizes)["points"][0]["report"]), ""), Report
    )
    with pytest.raises(KpredictError, match="is damaged"):
        comparison.read('{"varied": "n", "points": [{}]}', "x.json")
