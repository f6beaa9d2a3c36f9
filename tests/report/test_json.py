"""JSON: its schema, its shape, and the way back."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from kpredict.model import KpredictError, Mode, Report
from kpredict.report.json import document, render
from kpredict.report.load import load


def test_it_fits_the_schema(report: Report) -> None:
    schema = json.loads(files("kpredict.report").joinpath("report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document(report, "1.0"), schema)


def test_counts_and_names(report: Report) -> None:
    plan = document(report)["entries"][0]["plans"]["eager"]["forward"]
    assert plan["kernels"] == {"lo": 3, "hi": 4}
    assert (plan["library_calls"], plan["memcpy"], plan["syncs"]) == (1, 0, 1)
    assert plan["transfers"] == {"arrays": 7, "bytes": 7_000_000}
    assert plan["round_trips"] == {"arrays": 2, "bytes": 4_000_000}
    names = [
        ([r["name"] for r in x["reads"]], [w["name"] for w in x["writes"]])
        for x in plan["launches"]
    ]
    assert names[:3] == [(["x", "w"], ["tmp1"]), (["tmp1"], ["tmp2"]), (["tmp2"], ["out"])]


def test_what_was_written_is_read_again(report: Report) -> None:
    again = load(render(report))
    assert document(again) == document(report)
    plain, first = again.entries[0].plans[Mode.EAGER].forward, report.eager.forward
    assert plain is not None
    assert first is not None
    assert plain.kernels == first.kernels
    assert plain.transfers == first.transfers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[]", "is not a report of kpredict"),
        ('{"entries": [], "target": {}, "schema_version": 99}', "has schema version 99, not 1"),
        ('{"entries": [], "target": {}, "schema_version": 1}', "is damaged"),
    ],
)
def test_other_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(KpredictError, match=message):
        load(text, "x.json")


def test_errors_are_results(report: Report) -> None:
    only = document(replace(report, entries=()))
    assert only["errors"] == [
        {"file": "g.py", "name": "g", "line": 3, "message": "It broke.", "hint": "Mend it."}
    ]
