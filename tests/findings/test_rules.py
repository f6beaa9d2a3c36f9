"""Every rule finds its bad examples, says nothing of its good ones, and is documented."""

from __future__ import annotations

import ast

import pytest

from kpredict.findings.check import check_text
from kpredict.findings.options import Budget, Options
from kpredict.findings.registry import FAMILIES, PARTS, Rule, rules, selected

CASES = [
    pytest.param(rule, text, expected, id=f"{rule.code}-{kind}{i}")
    for rule in rules().values()
    for kind, texts, expected in (("bad", rule.bad, True), ("good", rule.good, False))
    for i, text in enumerate(texts)
]


def options_for(rule: Rule) -> Options:
    select = ("KP1", "KP2", "KP3", "KP4", rule.code) if rule.code == "KP491" else (rule.code,)
    budget = {"f": Budget(max_eager=1)} if rule.code in ("KP401", "KP402") else {}
    return Options(select=select, budgets=budget)


@pytest.mark.parametrize(("rule", "text", "expected"), CASES)
def test_example(rule: Rule, text: str, expected: bool) -> None:
    checked = check_text(text, "example.py", options_for(rule))
    assert not checked.error
    codes = [f.code for f in checked.findings]
    assert (rule.code in codes) is expected, "\n".join(map(str, checked.findings)) or "nothing"


@pytest.mark.parametrize("rule", rules().values(), ids=lambda r: r.code)
def test_documented(rule: Rule) -> None:
    assert all(rule.part(p) for p in PARTS)
    assert any(rule.code.startswith(f) for f in FAMILIES)
    assert rule.bad, "a rule needs a bad example"
    assert rule.good, "a rule needs a good example"
    example = rule.part("Example")
    if not example.startswith("[["):
        ast.parse("\n".join(line[4:] for line in ("    " + example).splitlines()))


def test_selection_by_prefix() -> None:
    def codes(*args: tuple[str, ...]) -> set[str]:
        return {r.code for r in selected(*args)}

    assert "KP206" not in codes((), ())
    assert codes(("KP101",), ()) == {"KP101"}
    assert "KP101" not in codes(("KP1",), ("KP101",))
    assert codes(("KP101",), ("KP1",)) == {"KP101"}
