"""What is done about a graph break keeps what the function returns, and says what else changes."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from kpredict.changes.breaks import find
from kpredict.changes.change import Alternatives, apply
from kpredict.changes.walking import read
from kpredict.model import GraphBreak, Span

torch = pytest.importorskip("torch")

ITEM = "Hint: Set `torch._dynamo.config.capture_scalar_outputs = True` or export"
HEAD = "import math\nimport logging\nimport torch\n\nlog = logging.getLogger()\n\n\ndef f(x):\n"
OFFSET = HEAD.count("\n")


def offers(body: str, *lines: int, reason: str = "") -> tuple[str, list[Alternatives]]:
    """The file, and what is offered for breaks on those lines of the body, counted from 1."""
    text = HEAD + "".join(f"    {line}\n" for line in body.split("\n"))
    breaks = [GraphBreak(reason, Span("f.py", OFFSET + n, "f")) for n in lines]
    return text, find(read(text, ast.parse(text)), breaks, "f.py")


def run(text: str, x: Any) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "f.py", "exec"), names)
    return names["f"](x.clone())


CHOICES = {
    "both assigned": "if x.sum() > 0:\n    y = torch.sin(x)\nelse:\n    y = torch.cos(x)\nreturn y",
    "one assigned": "if x.mean().item() > 0:\n    x = x * 2\nreturn x + 1",
    "both returned": "if (x > 0).any():\n    return x * 2\nelse:\n    return x - 1",
    "returned early": "s = x.norm()\nif s > 1:\n    return x / s\nreturn x + 1",
    "turned round": "if not x.sum() > 0:\n    x = -x\nreturn x",
    "truth of a number": "if x.sum():\n    x = x / 2\nreturn x",
}


@pytest.mark.parametrize("body", CHOICES.values(), ids=CHOICES)
def test_a_branch_becomes_a_choice(body: str) -> None:
    line = next(i for i, text in enumerate(body.split("\n"), 1) if text.startswith("if"))
    text, found = offers(body, line)
    change = found[0][0]
    made = apply(text, [change])
    assert "torch.where(" in made
    assert not re.search(r"\bif\b", made)
    assert "both are computed" in change.note
    for x in (torch.randn(5) + 3, torch.randn(5) - 3, torch.zeros(5)):
        torch.testing.assert_close(run(made, x), run(text, x), equal_nan=True)


NO_CHOICES = {
    "two statements": "if x.sum() > 0:\n    y = x * 2\n    x = x + y\nreturn x",
    "in place": "if x.sum() > 0:\n    x.add_(1)\nreturn x",
    "in place inside": "y = x\nif x.sum() > 0:\n    y = x.add_(1)\nreturn y + x",
    "augmented": "if x.sum() > 0:\n    x += 1\nreturn x",
    "a number": "y = x\nif x.sum() > 0:\n    y = 0\nreturn x + y",
    "another function": "if x.sum() > 0:\n    x = run(x, x)\nreturn x",
    "random": "if x.sum() > 0:\n    x = x + torch.rand(3)\nreturn x",
    "different names": "y = z = x\nif x.sum() > 0:\n    y = x\nelse:\n    z = x\nreturn y + z",
    "raises": "if x.sum() > 0:\n    raise ValueError\nreturn x",
    "chained": "if x.sum() > 0:\n    x = x * 2\nelif x.sum() > -1:\n    x = x * 3\nreturn x",
}


@pytest.mark.parametrize("body", NO_CHOICES.values(), ids=NO_CHOICES)
def test_other_branches_stay(body: str) -> None:
    line = next(i for i, text in enumerate(body.split("\n"), 1) if text.startswith("if"))
    text, found = offers(body, line)
    assert not any("torch.where" in apply(text, [c]) for group in found for c in group)


def test_a_value_stays_on_the_gpu_or_else_dynamo_is_set_to_capture_it() -> None:
    text, found = offers("m = x.abs().max().item()\nreturn x / (m + 1e-6)", 1, reason=ITEM)
    ((first, second),) = found
    made = apply(text, [first])
    assert "m = x.abs().max()\n" in made
    x = torch.randn(7)
    torch.testing.assert_close(run(made, x), run(text, x))
    assert "import torch\ntorch._dynamo.config.capture_scalar_outputs = True\n" in apply(
        text, [second]
    )


def test_float_of_an_array_is_the_array() -> None:
    text, found = offers("m = float(x.max())\nreturn x / m", 1)
    made = apply(text, [found[0][0]])
    assert "m = (x.max())\n" in made
    torch.testing.assert_close(run(made, torch.ones(3)), run(text, torch.ones(3)))


def test_prints_of_a_function_go_together_and_only_when_compiled() -> None:
    text, found = offers(
        'y = x + 1\nprint(y)\nlog.info("%s", y)\nreturn y', 2, 3,
    )  # fmt: skip
    ((change,),) = found
    assert apply(text, [change]).count("if not torch.compiler.is_compiling(): ") == 2
    assert change.title.startswith("2 messages")
    assert (change.first, change.last) == (OFFSET + 2, OFFSET + 3)


def test_a_break_by_hand_is_removed() -> None:
    text, found = offers("y = x + 1\ntorch._dynamo.graph_break()\nreturn y", 2)
    assert "graph_break" not in apply(text, [found[0][0]])


def test_several_breaks_are_also_offered_at_once() -> None:
    body = "y = x + 1\nprint(y)\nm = y.max().item()\nreturn y * m"
    text, found = offers(body, 2, 3, reason=ITEM)
    assert [len(group) for group in found] == [1, 2, 1]
    made = apply(text, [found[-1][0]])
    assert "is_compiling" in made
    assert ".item()" not in made


def test_what_has_no_mechanical_change_is_not_offered() -> None:
    _, found = offers("y = open(x)\nreturn y", 1, reason="Unsupported function call")
    assert not found
