"""`kpredict check`, `diff` and `explain` as processes: exit codes, streams, settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHAIN = """\
import torch


def gate(x: torch.Tensor, y: torch.Tensor):
    return torch.sigmoid(x) * y + 1.0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(CHAIN)
    return tmp_path


def run(folder: Path, *args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("KPREDICT")}
    return subprocess.run(
        [sys.executable, "-m", "kpredict", *args],
        cwd=folder,
        input=stdin,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_exit_codes(folder: Path) -> None:
    found = run(folder, "check", "--static", "m.py")
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout.startswith("m.py:5:12: KP101 pointwise-chain: 3 pointwise kernels")
    assert run(folder, "check", "--static", "m.py", "--exit-zero").returncode == 0
    assert run(folder, "check", "--static", "m.py", "--ignore", "KP1").returncode == 0
    assert run(folder, "check", "--static", "nothing.py").returncode == 2
    assert run(folder, "check", "--static", "m.py", "--select", "E501").returncode == 2
    (folder / "old.py").write_text("import torch\nprint 'x'\n")
    broken = run(folder, "check", "--static", ".")
    assert broken.returncode == 2
    assert "old.py:2: not read: not Python 3" in broken.stdout
    assert "m.py:5:12: KP101" in broken.stdout


def test_stdin_and_names(folder: Path) -> None:
    piped = run(folder, "check", "--static", "-", "--stdin-filename", "x.py", stdin=CHAIN)
    assert piped.stdout.startswith("x.py:5:12: KP101")
    assert run(folder, "check", "--static", "m.py::other").returncode == 0
    over = run(folder, "check", "--static", "m.py::gate", "--max-eager", "2", "--select", "KP4")
    assert "KP401 over-budget: gate: 3 eager kernels, the budget is 2" in over.stdout


def test_flag_over_environment_over_file(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.kpredict]\nselect = ["KP2"]\n')
    assert run(folder, "check", "--static", "m.py").returncode == 0
    assert run(folder, "check", "--static", "m.py", KPREDICT_CHECK_SELECT="KP1").returncode == 1
    both = run(folder, "check", "--static", "m.py", "--select", "KP3", KPREDICT_CHECK_SELECT="KP1")
    assert both.returncode == 0
    assert run(folder, "check", "--static", "m.py", "--isolated").returncode == 1
    (folder / "pyproject.toml").write_text("[tool.kpredict]\nselct = []\n")
    wrong = run(folder, "check", "--static", "m.py")
    assert wrong.returncode == 2
    assert "Did you mean select?" in wrong.stderr


def test_baseline_in_ci_and_out(folder: Path) -> None:
    args = ("check", "--static", "m.py", "--baseline", "b.json")
    assert run(folder, *args).returncode == 2
    assert run(folder, *args, "--update-baseline").returncode == 0
    assert run(folder, *args).returncode == 0
    (folder / "m.py").write_text("import torch\n")
    before = (folder / "b.json").read_text()
    gone = run(folder, *args, "--update-baseline", CI="1")
    assert gone.returncode == 0
    assert "the baseline is not written" in gone.stderr
    assert (folder / "b.json").read_text() == before
    run(folder, *args, "--update-baseline")
    assert json.loads((folder / "b.json").read_text())["findings"] == []
    (folder / "m.py").write_text(CHAIN)
    assert run(folder, *args, "--update-baseline").returncode == 1


def test_shell_completion(folder: Path) -> None:
    def offered(words: str) -> str:
        at = str(len(words.split(" ")) - 1)
        return run(
            folder, COMP_WORDS=words, COMP_CWORD=at, _KPREDICT_COMPLETE="bash_complete"
        ).stdout

    assert "complete -o nosort -F" in run(folder, _KPREDICT_COMPLETE="bash_source").stdout
    assert offered("kpredict che").split() == ["plain,check"]
    assert "plain,sarif" in offered("kpredict check -f ").split()
    assert offered("kpredict explain kp10").split() == [f"plain,KP10{n}" for n in range(1, 9)]
    assert "plain,aten.addmm" in offered("kpredict explain aten.addm").split()


def test_explain(folder: Path) -> None:
    assert "KP101 pointwise-chain" in run(folder, "explain", "kp101").stdout
    assert run(folder, "explain", "KP3").stdout.count("\n") >= 5
    near = run(folder, "explain", "KP199")
    assert near.returncode == 2
    assert "Did you mean KP" in near.stderr


def report(kernels: int) -> str:
    plan = {
        "kernels": {"lo": kernels, "hi": kernels}, "round_trips": {"arrays": 1, "bytes": 8},
        "transfers": {"arrays": 5, "bytes": 20}, "syncs": 0,
    }  # fmt: skip
    entry = {"file": "m.py", "name": "gate", "plans": {"eager": {"forward": plan}}}
    return json.dumps({"schema_version": 1, "entries": [entry]})


def test_diff(folder: Path) -> None:
    (folder / "a.json").write_text(report(2))
    (folder / "b.json").write_text(report(3))
    up = run(folder, "diff", "a.json", "b.json")
    assert up.returncode == 0
    assert "+1" in up.stdout
    assert run(folder, "diff", "a.json", "b.json", "--fail-on-increase").returncode == 1
    assert run(folder, "diff", "b.json", "a.json", "--fail-on-increase").returncode == 0
    assert "no change" in run(folder, "diff", "a.json", "a.json").stdout
    assert "| `m.py::gate` |" in run(folder, "diff", "a.json", "b.json", "-f", "markdown").stdout
    assert run(folder, "diff", "a.json", "m.py").returncode == 2
    assert run(folder, "diff", "a.json").returncode == 2
