"""`kpredict check` with and without `--static` on the same files: what a run confirms, removes and
settles. The files in `files/` are user code: one where all is as the source says, one where the
inputs say otherwise, one whose budgets only a run can check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FILES = Path(__file__).parent / "files"


def run(*args: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("KPREDICT")}
    return subprocess.run(
        [sys.executable, "-m", "kpredict", "check", "--isolated", "--no-cache", *args],
        cwd=FILES, env=clean, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def found(*args: str) -> dict[tuple[str, str], str]:
    """Confidence by code and function."""
    rows = json.loads(run(*args, "-f", "json").stdout)["findings"]
    return {(f["code"], f["function"]): f["confidence"] for f in rows}


def test_what_runs_as_the_source_says_is_confirmed() -> None:
    static, deeper = found("--static", "on_the_gpu.py"), found("on_the_gpu.py")
    assert deeper.keys() == static.keys()
    codes = "101 102 103 105 106 108 201 202 203 204 205 301 303 304".split()
    assert {code for code, _ in deeper} == {f"KP{n}" for n in codes}
    unsure = {code for (code, _), confidence in deeper.items() if confidence != "certain"}
    assert unsure == {"KP103"}  # launches do not tell whether rows could go together


def test_what_the_run_contradicts_is_removed() -> None:
    static, deeper = found("--static", "on_the_cpu.py"), found("on_the_cpu.py")
    assert {f for _, f in static} == {"chain", "copies", "forward", "keep", "branch"}
    assert {f for _, f in deeper} == {"branch"}  # the branch was not taken: nothing is known
    assert deeper.items() <= static.items()


@pytest.mark.parametrize(
    ("limit", "static", "deeper"),
    [
        ("--max-eager=2", "KP402 maybe-over-budget: gate: 2..3 eager kernels", ""),
        (
            "--max-eager=1",
            "KP401 over-budget: gate: 2..3 eager kernels",
            "KP401 over-budget: gate: 2 eager kernels",
        ),
        (
            "--max-compiled=0",
            "KP402 maybe-over-budget: gate: 0..2 compiled kernels",
            "KP401 over-budget: gate: 1 compiled kernel, the budget is 0",
        ),
        ("--max-round-trips=0", "", "KP401 over-budget: gate: 1 round trip, the budget is 0"),
    ],
)
def test_budgets_are_settled_by_a_run(limit: str, static: str, deeper: str) -> None:
    for flags, said in ((["--static"], static), ([], deeper)):
        done = run(*flags, "--select", "KP4", "budgets.py::gate", limit)
        assert done.returncode == (1 if said else 0), done
        assert done.stdout.startswith(f"budgets.py:9:1: {said}" if said else "nothing found")


def test_a_budget_of_nothing_is_an_error() -> None:
    done = run("--static", "budgets.py::gaet", "--max-eager", "1")
    assert done.returncode == 2
    assert "budgets.py does not define gaet, which is given a budget" in done.stderr
    assert "Did you mean gate?" in done.stderr
