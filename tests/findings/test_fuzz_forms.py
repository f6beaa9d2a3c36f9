"""Files in odd forms: truncated, with tokens taken or swapped, deep, huge, in other encodings, in
notebooks whose JSON is broken. Each is an answer, never a crash and never a hang.

`KPREDICT_FUZZ_SECONDS=60` runs for a minute; a failure prints its seed and number.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from pathlib import Path

import pytest

from kpredict.findings.check import check_text
from kpredict.findings.files import check_bytes
from kpredict.findings.options import Options

ROOT = Path(__file__).parents[2]
SEEDS = [
    p.read_text()
    for folder in ("fixtures", "fixtures/static", "fixtures/programs", "kpredict/source/infer")
    for p in sorted((ROOT / folder).glob("*.py"))
]
EVERYTHING = Options(select=("ALL",))
SLOWEST = 60.0  # seconds for one small file; machines that run tests may be busy
TOKEN = re.compile(r"\w+|[^\w\s]")


def truncated(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def line_repeated(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return "".join(lines)


def lines_swapped(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = rng.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def token_removed(rng: random.Random, text: str) -> str:
    """Often still Python: one word or sign less."""
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
    m = rng.choice(tokens)
    return text[: m.start()] + text[m.end() :]


def token_replaced(rng: random.Random, text: str) -> str:
    """A name where another was, a number for a number: valid, and it means something else."""
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
    m, other = rng.choice(tokens), rng.choice(tokens)
    new = rng.choice(("0", "-1", "10**9", "2.5", "None", "[]", "x[x > 0]", other[0], other[0]))
    return text[: m.start()] + new + text[m.end() :]


def words_renamed(rng: random.Random, text: str) -> str:
    """One name becomes another wherever it stands."""
    words = sorted(set(re.findall(r"[A-Za-z_]\w*", text)))
    if len(words) < 2:
        return text
    a, b = rng.sample(words, 2)
    return re.sub(rf"\b{a}\b", b, text)


def nested(rng: random.Random, text: str) -> str:
    """Deep brackets, chains, or blocks after what is there."""
    n = rng.choice((20, 60, 95, 300))
    kind = rng.randrange(4)
    if kind == 0:
        return text + "\ny = " + "(" * n + "x" + ")" * n
    if kind == 1:
        return text + "\ny = x" + ".relu()" * n
    if kind == 2:
        return text + "\ny = " + "f(" * n + "x" + ")" * n
    heads = ("if x:", "for i in x:", "while x:", "with x:", "def f(x):", "class A(A):")
    n = min(n, 95)
    blocks = "".join(" " * i + rng.choice(heads) + "\n" for i in range(n))
    return text + "\n" + blocks + " " * n + "x = x + 1\n"


def enlarged(rng: random.Random, text: str) -> str:
    """A giant literal."""
    literal = rng.choice((
        "[" + "1.5, " * 20_000 + "]", repr("a" * 100_000), "9" * 4000,
        "{" + "'k': 1, " * 9000 + "}", "torch.tensor([" + "[1, 2], " * 5000 + "])",
        "(" * 50 + "1" + ",)" * 50, "torch.zeros(" + "2, " * 200 + ")", "2 ** 10 ** 8",
    ))  # fmt: skip
    at = text.find("\n", rng.randrange(len(text) + 1)) + 1
    return f"{text[:at]}y = {literal}\n{text[at:]}"


MUTATIONS = (
    *(token_removed, token_replaced, words_renamed) * 4,
    *(line_repeated, lines_swapped) * 2,
    truncated, nested, enlarged,
)  # fmt: skip


def mutated(rng: random.Random) -> str:
    text = rng.choice(SEEDS)
    for _ in range(rng.randint(1, 6)):
        text = rng.choice(MUTATIONS)(rng, text)
    return text


def encoded(rng: random.Random, text: str) -> bytes:
    """Bytes of the text, or nearly so: other encodings, null bytes, mixed newlines."""
    kind = rng.randrange(7)
    if kind == 0:
        return b"\xef\xbb\xbf" + text.encode("utf-8", "replace")
    if kind == 1:
        return text.encode("utf-16", "surrogatepass")
    if kind == 2:
        name = rng.choice((b"latin-1", b"utf-7", b"nonsense", b"cp1252", b"utf-16", b"rot13"))
        return b"# -*- coding: " + name + b" -*-\n" + text.encode("latin-1", "replace")
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.randint(0, 4)):
        if data:
            data[rng.randrange(len(data))] = rng.choice((0, 13, 12, 0xC3, 0xFF, 9))
    return bytes(data)


def notebook(rng: random.Random, text: str) -> bytes:
    """A notebook of the text's pieces, its JSON now and then broken."""
    parts = [text[i : i + 400] for i in range(0, min(len(text), 4000), 400)] or [""]
    cells = [
        {
            "cell_type": rng.choice(("code", "code", "markdown", 3)),
            "source": rng.choice((p, p.splitlines(keepends=True), [p, 3, None], None, {"a": p})),
        }
        for p in parts
    ]
    book = rng.choice(({"cells": cells}, {"cells": cells, "nbformat": 4}, cells, {"cells": "x"}))
    data = json.dumps(book).encode()
    if rng.random() < 0.3:
        data = data[: rng.randrange(len(data) + 1)]
    return b"\xef\xbb\xbf" + data if rng.random() < 0.2 else data


def test_files_in_odd_forms() -> None:
    seed = int(os.environ.get("KPREDICT_FUZZ_SEED", "20250311"))
    rng = random.Random(seed)
    end = time.monotonic() + float(os.environ.get("KPREDICT_FUZZ_SECONDS", "5"))
    n = 0
    while time.monotonic() < end:
        text = mutated(rng)
        kind = rng.random()
        where = f"(seed {seed}, number {n})\n{text[:20_000]}"
        start = time.monotonic()
        try:
            if kind < 0.7:
                checked = check_text(text, "fuzz.py", EVERYTHING)
            elif kind < 0.85:
                checked = check_bytes(encoded(rng, text), "fuzz.py", EVERYTHING)
            else:
                checked = check_bytes(notebook(rng, text), "fuzz.ipynb", EVERYTHING)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error} {where}")
        assert time.monotonic() - start < SLOWEST, where
        assert not checked.faults, f"{checked.faults[0]} {where}"
        assert not checked.error.startswith("rule "), f"{checked.error} {where}"
        assert all(f.line >= 1 and f.column >= 1 for f in checked.findings)
        n += 1
    assert n > 3
