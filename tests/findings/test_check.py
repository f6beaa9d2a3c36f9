# ruff: noqa: E501
"""The check as a whole: suppressions, files, notebooks, cache, baseline, formats, configuration."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kpredict.config import Config, find_file, load, parse, split_codes
from kpredict.findings import baseline
from kpredict.findings.cache import Cache, stamp
from kpredict.findings.check import check_text
from kpredict.findings.files import check_bytes, files_of
from kpredict.findings.finding import Finding
from kpredict.findings.options import Budget, Options
from kpredict.findings.registry import rules
from kpredict.findings.results import gather
from kpredict.findings.run import check_files
from kpredict.model import KpredictError
from kpredict.report import (
    findings_github,
    findings_junit,
    findings_markdown,
    findings_sarif,
    findings_text,
)

CHAIN = (
    "import torch\n\ndef gate(x: torch.Tensor, y: torch.Tensor):\n"
    "    return torch.sigmoid(x) * y + 1.0{comment}\n"
)


def codes(text: str, **options: object) -> list[str]:
    return [f.code for f in check_text(text, "f.py", Options(**options)).findings]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("", ["KP101"]),
        ("  # kpredict: ignore[KP101] small arrays", []),
        ("  # kpredict: ignore", []),
        ("  # noqa: KP101", []),
        ("  # noqa: E501, KP101", []),
        ("  # noqa: E501", ["KP101"]),
        ("  # kpredict: ignore[KP203] wrong code", ["KP101", "KP491"]),
        ("  # kpredict: ignore[KP999]", ["KP101", "KP491"]),
    ],
)
def test_suppression(comment: str, expected: list[str]) -> None:
    assert codes(CHAIN.format(comment=comment)) == expected


def test_suppression_on_a_line_of_its_own() -> None:
    text = CHAIN.format(comment="").replace(
        "    return", "    # kpredict: ignore[KP101] why\n    return"
    )
    assert codes(text) == []


def test_a_suppression_in_a_string_is_none() -> None:
    text = CHAIN.format(comment="") + 'S = "# kpredict: ignore[KP101]"\n'
    assert codes(text) == ["KP101"]


@pytest.mark.parametrize(
    "data",
    [
        b"print 'python 2'\nimport torch\n", b"import torch\ndef f(:\n", b"\xff\xfe\x00bad torch",
        b"# coding: nonsense\nimport torch\n", b"import torch\n" + b"(" * 3000, b"\x00import torch",
        b"import torch\nx = " + b"-" * 5000 + b"1\n", b"# -*- coding: latin-1 -*-\nimport torch\n# \xe9\n",
        b"\xef\xbb\xbfimport torch\r\nx = 1\r\n", b"",
    ],
)  # fmt: skip
def test_any_bytes_are_an_answer(data: bytes) -> None:
    checked = check_bytes(data, "f.py", Options())
    assert checked.findings == ()


def test_error_has_its_line() -> None:
    checked = check_bytes(b"import torch\nprint 'x'\n", "f.py", Options())
    assert (checked.line, checked.error[:12]) == (2, "not Python 3")


def test_notebook_lines_are_of_their_cell() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# torch"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch"]},
        {"cell_type": "code", "source": CHAIN.format(comment="")},
    ]
    checked = check_bytes(json.dumps({"cells": cells}).encode(), "n.ipynb", Options())
    (found,) = checked.findings
    assert (found.cell, found.line) == (3, 4)
    assert str(found).startswith("n.ipynb:cell 3:4:")


def test_files_are_found_in_order(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", ".hidden/x.py", "sub/c.py", "sub/n.ipynb", "sub/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = [Path(f).relative_to(tmp_path).as_posix() for f in files_of([str(tmp_path)], ["*/n.*"])]
    assert found == ["a.py", "b.py", "sub/c.py"]
    with pytest.raises(KpredictError):
        files_of(["not-there.py"])


def test_jobs_and_cache_do_not_change_the_answer(tmp_path: Path) -> None:
    for i in range(10):
        (tmp_path / f"f{i}.py").write_text(CHAIN.format(comment=""))
    files, options = files_of([str(tmp_path)]), Options()
    plain = check_files(files, options)
    folder = tmp_path / "cache"
    first = check_files(files, options, jobs=2, cache=Cache(folder, stamp(options)))
    again = Cache(folder, stamp(options))
    assert all(again.get(f, again.key(Path(f).read_bytes())) for f in files)
    assert plain == first == check_files(files, options, cache=again)
    assert (
        (folder / "CACHEDIR.TAG")
        .read_text()
        .startswith("Signature: 8a477f597d28d172789f06886806bc55")
    )
    (tmp_path / "f0.py").write_text("import torch\n")
    assert check_files(files, options, cache=Cache(folder, stamp(options)))[0].findings == ()
    other = Options(select=("KP2",))
    assert check_files(files, other, cache=Cache(folder, stamp(other)))[1].findings == ()
    (folder / "findings.json").write_text("{broken")
    assert check_files(files, options, cache=Cache(folder, stamp(options)))[1] == plain[1]


def finding(code: str = "KP101", line: int = 1, function: str = "f", before: int = 3) -> Finding:
    return Finding(
        "p.py", line, 1, code, "pointwise-chain", "a | b, 100%: c", function, before=before, after=1
    )


def test_baseline_only_shrinks(tmp_path: Path) -> None:
    old = baseline.of([finding(line=1), finding(line=9), finding("KP203")])
    baseline.save(tmp_path / "b.json", old)
    assert "line" not in (tmp_path / "b.json").read_text()
    loaded = baseline.load(tmp_path / "b.json")
    assert loaded == old
    now = [finding(line=50), finding("KP301")]
    new, known = loaded.split(now)
    assert [f.code for f in new] == ["KP301"]
    assert [f.line for f in known] == [50]
    assert loaded.shrunk(now) == baseline.of([finding()])
    with pytest.raises(KpredictError):
        baseline.load(tmp_path / "none.json")


def results(n: int = 1) -> object:
    found = [finding(line=i + 1, before=i + 3) for i in range(n)]
    return gather(
        Options().target, [check_text("import torch\nprint 1", "bad.py", Options())], found
    )


def test_github_shows_ten_worst_first() -> None:
    lines = findings_github.render(results(14)).splitlines()  # type: ignore[arg-type]
    shown = [line for line in lines if line.startswith("::warning")]
    assert len(shown) == 10
    assert "line=14" in shown[0]
    assert shown[-1].endswith("+5 more findings")
    assert "100%25" in shown[0]


def test_sarif_names_rules_and_places() -> None:
    data = json.loads(findings_sarif.render(results(2), "1.0"))  # type: ignore[arg-type]
    (run,) = data["runs"]
    assert data["version"] == "2.1.0"
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["KP101"]
    marks = {r["partialFingerprints"]["kpredict/v1"] for r in run["results"]}
    assert len(marks) == 2
    moved = json.loads(
        findings_sarif.render(gather(Options().target, [], [finding(line=77)]), "1.0")
    )
    assert moved["runs"][0]["results"][0]["partialFingerprints"]["kpredict/v1"] in marks


def test_other_formats() -> None:
    assert r"a \| b" in findings_markdown.render(results())  # type: ignore[arg-type]
    root = ElementTree.fromstring(findings_junit.render(results(2)))  # type: ignore[arg-type]
    assert (root.get("failures"), root.get("errors")) == ("2", "1")
    assert (
        findings_text.render(results())
        .splitlines()[0]
        .startswith("p.py:1:1: KP101 pointwise-chain: ")
    )  # type: ignore[arg-type]


def test_budgets_of_the_source() -> None:
    text = CHAIN.format(comment="")
    assert "KP401" in codes(text, budgets={"f.py::gate": Budget(max_eager=2)})
    assert "KP401" not in codes(text, budgets={"f.py::gate": Budget(max_eager=3)})
    assert "KP401" not in codes(text, budgets={"other.py::gate": Budget(max_eager=2)})
    assert "KP401" in codes(text, budgets={"gate": Budget(max_eager=2)})


def test_configuration(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.kpredict]\nselect = ["KP1"]\nround-trip-mb = 8\n'
        '[[tool.kpredict.entry]]\npath = "m.py::Model"\nmax-eager = 12\ninputs = ["x=f32[4]"]\n'
    )
    (tmp_path / "a/b").mkdir(parents=True)
    path = find_file(tmp_path / "a/b")
    assert path == (tmp_path / "pyproject.toml").resolve()
    config = load(path)
    assert (config.select, config.round_trip_mb, config.entries[0].max_eager) == (("KP1",), 8, 12)
    assert load(None) == Config()


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ({"selct": ["KP1"]}, "select"), ({"entry": [{"path": "a", "max-egaer": 1}]}, "max-eager"),
        ({"select": "KP1"}, ""), ({"chain": True}, ""), ({"chain": "3"}, ""), ({"entry": [{}]}, "path"),
    ],
)  # fmt: skip
def test_configuration_faults(table: dict[str, object], hint: str) -> None:
    with pytest.raises(KpredictError) as caught:
        parse(table)
    assert hint in caught.value.hint


def test_codes() -> None:
    assert split_codes(["kp1,KP203", "ALL"], rules()) == ("KP1", "KP203", "ALL")
    with pytest.raises(KpredictError):
        split_codes(["E501"], rules())
    with pytest.raises(KpredictError) as caught:
        split_codes(["KP110"], rules())
    assert "Did you mean KP1" in caught.value.hint


def test_a_fault_of_ours_in_one_function_costs_no_other_its_findings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(self: object, a: object, index: object) -> None:
        raise TypeError("ours")

    monkeypatch.setattr("kpredict.source.infer.subscripts.Subscripts.subscript", fails)
    (tmp_path / "m.py").write_text(
        CHAIN.format(comment="") + "\n\ndef odd(x: torch.Tensor):\n    return x[0].sin()\n"
    )
    path = str(tmp_path / "m.py")
    cache = Cache(tmp_path / "cache", stamp(Options()))
    for _ in range(2):  # the second time from the cache
        (checked,) = check_files([path], Options(), cache=cache)
        assert [f.code for f in checked.findings] == ["KP101"]
        assert not checked.error
        assert gather(Options().target, [checked], checked.findings).notes == (
            f"{path}: odd was not read to its end, a fault of kpredict: TypeError: ours",
        )


def test_where_data_is_prepared_a_finding_is_only_possible() -> None:
    text = (
        "import torch\n\nclass CatImageProcessor:\n"
        "    def resize(self, x: torch.Tensor):\n        return torch.sigmoid(x) * x + 1.0\n"
        "    def post_process(self, x: torch.Tensor):\n        return torch.sigmoid(x) * x + 1.0\n"
    )
    found = check_text(text, "f.py", Options(select=("KP101",))).findings
    assert [(f.function, f.confidence) for f in found] == [
        ("CatImageProcessor.resize", "possible"), ("CatImageProcessor.post_process", "certain"),
    ]  # fmt: skip


def test_inputs_of_the_configuration_are_known_to_the_source() -> None:
    text = "import torch\n\ndef f(x):\n    return torch.sin(x * 2).sum()\n"
    given = {"sub/m.py::f": ("x=f32[8192,8192]",), "other.py::f": ("x=f32[1]",)}

    def large(path: str) -> list[str]:
        options = Options(select=("KP201",), inputs=given)
        return [f.message for f in check_text(text, path, options).findings]

    assert "float32[8192,8192]" in large("a/sub/m.py")[0]
    assert large("m.py") == large("other.py") == []
    with pytest.raises(KpredictError):
        Options(inputs={"m.py::f": ("x=f33[1]",)}).inputs_of("m.py")
