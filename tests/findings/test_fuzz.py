"""Any input is an answer: mutated real files never crash the check and never hang it.

Half of the files are mutated as text, which mostly makes them no Python; the other half have
expressions grafted from elsewhere, which keeps them Python that makes little sense.

The default run is short; `KPREDICT_FUZZ_SECONDS=60` runs for a minute, as continuous integration
does.
"""

from __future__ import annotations

import ast
import copy
import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpredict.findings.check import check_text
from kpredict.findings.files import check_bytes
from kpredict.findings.options import Options
from kpredict.findings.registry import rules

ROOT = Path(__file__).parents[2]
SEEDS = [
    *(t for r in rules().values() for t in (*r.bad, *r.good)),
    *(p.read_text() for p in sorted((ROOT / "fixtures").glob("*.py"))),
    (ROOT / "kpredict/source/infer/prelude/functional/losses.py").read_text()[:20_000],
]
WORDS = (
    "torch",
    "x",
    "self",
    "(",
    ")",
    "[",
    "]",
    ":",
    "=",
    "+",
    "@",
    "*",
    "**",
    "...",
    ",",
    "\n",
    "    ",
    "for i in range(n):",
    "while True:",
    "if x.sum() > 0:",
    "lambda: ",
    "yield ",
    "await ",
    "*args",
    "-1",
    "1e400",
    "10**9",
    "None",
    "nn.Linear(3, 4)(x)",
    "torch.cat([x, x])",
    "x[..., None, ::2]",
    "return",
    "def f(x: torch.Tensor):",
    "class A(nn.Module):",
    "import torch",
    "from torch import *",
    "super().__init__()",
    "{**x}",
    "'",
    '"""',
    "\\",
    "\0",
    "é",
    "#",
    "# kpredict: x=f32[",
    "x := 3",
    "match x:",
    "case [a, *b]:",
    "try:",
    "except* E:",
    "global x",
    "del x",
    "print(x)",
    "x.item()",
)


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


EVERYTHING = Options(select=("ALL",))
SLOWEST = 60.0  # seconds for one small file; machines that run tests may be busy


def mutated(rng: random.Random) -> str:
    text = rng.choice(SEEDS)
    for _ in range(rng.randint(1, 12)):
        at = rng.randrange(len(text) + 1)
        kind = rng.random()
        if kind < 0.35:
            text = text[:at] + rng.choice(WORDS) + text[at:]
        elif kind < 0.55:
            text = text[:at] + text[at + rng.randint(1, 20) :]
        elif kind < 0.75:
            lines = text.splitlines(keepends=True)
            if lines:
                lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            text = "".join(lines)
        else:
            other = rng.choice(SEEDS)
            cut = rng.randrange(len(other) + 1)
            text = text[:at] + other[cut : cut + rng.randint(1, 200)] + text[at:]
    return text


TREES = [ast.parse(text) for text in SEEDS]
GRAFTS = [
    node
    for tree in (*TREES, *(ast.parse(w, mode="eval") for w in WORDS if _is_expression(w)))
    for node in ast.walk(tree)
    if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
]  # fmt: skip


class Graft(ast.NodeTransformer):
    """Replaces some expressions by others."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self.rng, self.share = rng, share

    def visit(self, node: ast.AST) -> ast.AST:
        if (
            isinstance(node, ast.expr)
            and not isinstance(node, (ast.Starred, ast.Slice, ast.FormattedValue, ast.JoinedStr))
            and isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
            and self.rng.random() < self.share
        ):
            return copy.deepcopy(self.rng.choice(GRAFTS))
        found: ast.AST = super().visit(node)
        return found


def grafted(rng: random.Random) -> str:
    tree = copy.deepcopy(rng.choice(TREES))
    size = sum(isinstance(n, ast.expr) for n in ast.walk(tree))
    try:
        return ast.unparse(Graft(rng, min(0.3, rng.randint(1, 6) / max(size, 1))).visit(tree))
    except (ValueError, TypeError, AttributeError):  # what cannot stand there
        return ""


def seconds() -> float:
    return float(os.environ.get("KPREDICT_FUZZ_SECONDS", "5"))


def test_mutated_files() -> None:
    seed = int(os.environ.get("KPREDICT_FUZZ_SEED", "20240607"))
    rng = random.Random(seed)
    end = time.monotonic() + seconds()
    n = 0
    while time.monotonic() < end:
        text = mutated(rng) if n % 2 else grafted(rng)
        start = time.monotonic()
        try:
            checked = check_text(text, "fuzz.py", EVERYTHING)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error} (seed {seed}, number {n})\n{text}")
        took = time.monotonic() - start
        assert took < SLOWEST, f"{took:.0f} s (seed {seed}, number {n})\n{text}"
        assert not checked.faults, f"{checked.faults[0]} (seed {seed}, number {n})\n{text}"
        assert all(f.line >= 1 and f.column >= 1 for f in checked.findings)
        n += 1
    assert n > 3


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    check_bytes(b"import torch\n" + data, "fuzz.py", EVERYTHING)
    check_bytes(data, "fuzz.ipynb", EVERYTHING)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 90 + ")" * 90, "x = " + "+".join(["1"] * 3000), "[" * 150 + "]" * 150,
        "\n".join("if x:\n" + " " * 4 for _ in range(3)), "x = " + "f(" * 80 + ")" * 80,
        "".join(" " * i + "if x:\n" for i in range(90)) + " " * 90 + "pass",
        "x = [" + "1," * 200_000 + "]", "lambda: " * 80 + "0",
    ],
)  # fmt: skip
def test_deep_and_long_files(text: str) -> None:
    check_text("import torch\n" + text, "deep.py", EVERYTHING)
