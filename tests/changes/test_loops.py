"""Update loops and their foreach calls change the parameters alike; other loops are left alone."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from kpredict.changes.change import apply
from kpredict.changes.loops import find
from kpredict.changes.walking import read

torch = pytest.importorskip("torch")

LOOPS = {
    "gradient step": ("for p in a.parameters():\n    p -= lr * p.grad", "_foreach_sub_(ps"),
    "data": ("for p in a.parameters():\n    p.data.add_(p.grad, alpha=-lr)",
             "_foreach_add_([p.data for p in ps], [p.grad for p in ps], alpha=-lr)"),
    "without gradient": ("for p in a.parameters():\n    if p.grad is None:\n        continue\n"
                         "    p.sub_(p.grad * lr * 2)", "if p.grad is not None]"),
    "with gradient": ("for p in a.parameters():\n    if p.grad is not None:\n"
                      "        p.add_(-lr * p.grad)\n        p.grad.zero_()", "_foreach_zero_"),
    "average": ("for e, p in zip(b.parameters(), a.parameters()):\n"
                "    e.mul_(0.9).add_(p, alpha=1 - 0.9)", "_foreach_add_(es, ps, alpha=(1 - 0.9))"),
    "lerp": ("for e, p in zip(b.parameters(), a.parameters()):\n    e.lerp_(p, 0.1)",
             "_foreach_lerp_(es, ps, 0.1)"),
    "copy": ("for e, p in zip(b.parameters(), a.parameters()):\n    e.data.copy_(p.data)",
             "_foreach_copy_([e.data for e in es], [p.data for p in ps])"),
    "other name": ("for p in a.parameters():\n    g = p.grad\n    p.addcmul_(g, g, value=-lr)",
                   "_foreach_addcmul_(ps, [p.grad for p in ps], [p.grad for p in ps], value=-lr)"),
    "division": ("for p in a.parameters():\n    p.grad /= 2\n    p *= 1 - lr", "_foreach_div_"),
    "subtraction of a number": ("for p in a.parameters():\n    p -= lr", "_foreach_sub_(ps, lr)"),
    "printing": ("for p in a.parameters():\n    p -= lr * p.grad\n    print(p.shape)", None),
    "norms": ("for p in a.parameters():\n    p -= lr * p.grad / p.norm()", None),
    "a number of the array": ("for p in a.parameters():\n    p *= p.numel()", None),
    "a running number": ("k = 1\nfor p in a.parameters():\n    p *= k\n    k = k + 1", None),
    "freezing": ("for p in a.parameters():\n    p.requires_grad_(False)", None),
    "read afterwards": ("for p in a.parameters():\n    p -= lr\nprint(p)", None),
    "two loops": ("for p in a.parameters():\n    p -= lr\nfor p in b.parameters():\n    print(p)",
                  "_foreach_sub_(ps, lr)"),
    "leaving": ("for p in a.parameters():\n    p -= lr\n    break", None),
}  # fmt: skip


def run(text: str) -> list[Any]:
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)).double()
            for _ in range(2)]  # fmt: skip
    nets[0](torch.randn(5, 4, dtype=torch.float64)).square().sum().backward()
    names: dict[str, Any] = {}
    exec(compile(text, "f.py", "exec"), names)
    with torch.no_grad():
        names["f"](*nets, 0.1)
    found = [p for net in nets for p in net.parameters()]
    return [*found, *(p.grad for p in found)]


@pytest.mark.parametrize(("body", "wanted"), LOOPS.values(), ids=LOOPS)
def test_loop(body: str, wanted: str | None) -> None:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    text = f"import torch\n\n\ndef f(a, b, lr):\n{lines}    return a\n"
    found = [c for r in read(text, ast.parse(text)) for group in find(r) for c in group]
    if wanted is None:
        assert not found
        return
    (change,) = found
    made = apply(text, [change])
    assert wanted in made
    for new, old in zip(run(made), run(text), strict=True):
        torch.testing.assert_close(new, old)
