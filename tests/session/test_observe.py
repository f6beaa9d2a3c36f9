"""Which calls of a running script count."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kpredict.session.observe import Observer  # noqa: E402

SCRIPT = """
import functools
def inner(x): return x + 1
def outer(x, *rest, k=1, **more): return inner(x)
def plain(n): return n
def wrap(f):
    @functools.wraps(f)
    def go(*a, **k): return f(*a, **k)
    return go
@wrap
def decorated(x): return x
class Net(torch.nn.Module):
    def forward(self, x): return inner(x)
    def loss(self, x): return x
def main():
    x = torch.ones(3)
    plain(3)
    outer(x, 2, k=5, z=6)
    with torch.no_grad():
        Net()(x)
    decorated(x)
    Net().loss(x)
main()
"""
NAMES = (
    "inner", "outer", "plain", "wrap", "decorated", "Net.forward", "Net.loss", "main",
)  # fmt: skip


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    observer = Observer("/script.py", NAMES)
    with observer.watching():
        exec(compile(SCRIPT, "/script.py", "exec"), {"torch": torch, "__name__": "script"})
    return dict(observer.calls)


def test_the_outermost_call_with_tensors_counts(seen: dict[str, Any]) -> None:
    assert list(seen) == ["outer", "Net", "decorated", "Net.loss"]


def test_arguments_are_kept_as_they_were_passed(seen: dict[str, Any]) -> None:
    call = seen["outer"]
    assert call.args[1:] == (2,)
    assert call.kwargs == {"k": 5, "z": 6}
    assert call.receiver is None


def test_a_module_is_the_receiver_and_grad_mode_is_kept(seen: dict[str, Any]) -> None:
    assert isinstance(seen["Net"].receiver, torch.nn.Module)
    assert not seen["Net"].grad
    assert seen["outer"].grad


def test_lines_are_counted() -> None:
    text = "def f():\n    for i in range(3):\n        x = i\n    return x\n"
    namespace: dict[str, Any] = {}
    exec(compile(text, "/counted.py", "exec"), namespace)
    observer = Observer("/counted.py")
    with observer.watching():
        namespace["f"]()
    assert observer.lines == {2: 4, 3: 3, 4: 1}


def test_a_script_that_goes_on_is_stopped() -> None:
    text = "n = 0\nwhile True:\n    n = n + 1\n"
    namespace: dict[str, Any] = {}
    observer = Observer("/endless.py", ["f"], lambda: namespace.get("n", 0), 100)
    with observer.watching():
        exec(compile(text, "/endless.py", "exec"), namespace)
    assert observer.stopped
    assert namespace["n"] == 100
