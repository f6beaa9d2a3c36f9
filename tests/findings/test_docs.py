"""docs/rules.md says what the rules' docstrings say."""

from __future__ import annotations

from pathlib import Path

from kpredict.findings.registry import rules
from kpredict.report.findings_rules import render

PAGE = Path(__file__).parents[2] / "docs/rules.md"


def test_page_is_current() -> None:
    message = "run: python -m kpredict.report.findings_rules > docs/rules.md"
    assert PAGE.read_text("utf-8") == render(), message


def test_page_has_every_rule() -> None:
    text = render()
    assert all(f"### {code} {rule.name}" in text for code, rule in rules().items())
