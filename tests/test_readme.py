"""The README says what is so."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_ci_runs_the_readmes_test_command() -> None:
    command = 'python -m pip install -c constraints.txt -e ".[torch,test]" && python -m pytest'
    assert f"\n{command}\n" in README
    assert command in (ROOT / ".ci" / "run").read_text()


def test_the_set_up_runs_the_reference_example() -> None:
    assert (
        'python -m pip install -c constraints.txt -e ".[torch]" && kpredict fixtures/add_relu.py'
        in README
    )
    assert (ROOT / "constraints.txt").read_text().splitlines()[0] == "torch==2.13.0"


def test_the_example_is_what_the_command_prints() -> None:
    shown = re.search(r"```console\n\$ kpredict fixtures/add_relu.py\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert shown[1] == (ROOT / "tests" / "golden" / "add_relu.txt").read_text(encoding="utf-8")


def test_files_it_links_to_are_there() -> None:
    for link in re.findall(r"\]\(([\w./-]+\.\w+)\)", README):
        assert (ROOT / link).exists(), link
