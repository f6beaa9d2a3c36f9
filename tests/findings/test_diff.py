"""`kpredict diff`: two saved reports, and `--rev` on a git repository made for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpredict.report.difference import compare

ONE = "import torch\n\n# kpredict: x=f32[1000]\ndef f(x):\n    return x.sin()\n"
TWO = ONE.replace("x.sin()", "x.sin().cos()")


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KPREDICT", "GIT_"))}
    return subprocess.run(
        [sys.executable, "-m", "kpredict", "diff", *args], cwd=folder, env=clean,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`pkg/m.py` and `pkg/old.py` as of the branch `main`; the tests change the files."""
    folder = tmp_path_factory.mktemp("repo")
    (folder / "pkg").mkdir()
    (folder / "pkg/m.py").write_text(ONE)
    (folder / "pkg/old.py").write_text(ONE)
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        [*name, "commit", "-q", "-m", "x"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def test_a_change_against_a_revision(repo: Path) -> None:
    (repo / "pkg/m.py").write_text(TWO)
    up = run(repo, "--rev", "main", "pkg/m.py", "--fail-on-increase", "-f", "json")
    data = json.loads(up.stdout)
    kernels = {c["what"]: (c["old"], c["new"]) for c in data["changes"]}
    assert kernels["eager forward kernels"] == (1, 2)
    assert "compiled forward kernels" not in kernels
    assert {c["entry"] for c in data["changes"]} == {"pkg/m.py::f"}
    assert up.returncode == 1
    inside = run(repo / "pkg", "--rev", "HEAD", str(repo / "pkg/m.py"))  # from a folder in it
    assert inside.stdout.startswith("m.py::f\n")
    assert inside.returncode == 0
    (repo / "pkg/m.py").write_text(ONE)
    same = run(repo, "--rev", "main", "pkg/m.py::f", "--fail-on-increase")
    assert same.returncode == 0
    assert same.stdout.startswith("no change in ")
    listed = ["git", "worktree", "list", "--porcelain"]
    said = subprocess.run(listed, cwd=repo, capture_output=True, text=True, check=True).stdout
    assert said.count("worktree ") == 1  # that of the revision is gone again


def test_what_cannot_be_compared_is_exit_2(repo: Path, tmp_path: Path) -> None:
    (repo / "pkg/m.py").write_text(ONE + "1 / 0\n")
    broken = run(repo, "--rev", "main", "pkg/m.py", "--fail-on-increase")
    assert broken.returncode == 2
    assert "not compared, now: pkg/m.py: ZeroDivisionError" in broken.stderr
    (repo / "pkg/m.py").write_text(ONE)
    missing = run(repo, "--rev", "main", "pkg/none.py")
    assert missing.returncode == 2
    nowhere = run(repo, "--rev", "nope", "pkg/m.py")
    assert nowhere.returncode == 2
    assert "There is no revision 'nope' in this repository." in nowhere.stderr
    assert "Is this a git repository" in run(tmp_path, "--rev", "main", "m.py").stderr


def test_a_new_file_is_no_increase(repo: Path) -> None:
    (repo / "pkg/new.py").write_text(TWO)
    new = run(repo, "--rev", "main", "pkg/new.py", "--fail-on-increase")
    assert new.returncode == 0
    assert "eager forward kernels                         - ->            2  new" in new.stdout


def check(*codes: str) -> dict[str, object]:
    rows = [{"path": "m.py", "function": "f", "code": code} for code in codes]
    return {"findings": rows, "errors": []}


def test_findings_of_two_checks() -> None:
    changed = compare(check("KP101", "KP301"), check("KP101", "KP203", "KP203"))
    assert {(c.what, c.old, c.new) for c in changed.changes} == {("KP203", 0, 2), ("KP301", 1, 0)}
    assert [c.what for c in changed.increases] == ["KP203"]
    assert compare(check(), check()).sentence == "no change in 0 numbers"


def test_an_op_that_becomes_unknown_is_an_increase() -> None:
    def report(unknowns: list[object]) -> dict[str, object]:
        return {"entries": [{"file": "m.py", "name": "f", "plans": {}, "unknowns": unknowns}]}

    assert [c.what for c in compare(report([]), report([{}])).increases] == ["unknown ops"]
