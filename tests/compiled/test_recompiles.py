"""Recompilations: for which call, why in plain words, and what may vary from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import kpredict
from kpredict.commands._options import requests
from kpredict.compiled.recompiles import plain_guard
from kpredict.model import Mode, Plan
from kpredict.report import json, text
from kpredict.report.load import load
from kpredict.session.ask import analyse


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    with kpredict.pretend_cuda("h100"):
        yield


def as_written(fn: Callable[[], Any]) -> Plan:
    plan = kpredict.predict(fn, modes=("as_written",)).entries[0].plans[Mode.AS_WRITTEN].forward
    assert plan is not None
    return plan


def cuda(*shape: int, **how: Any) -> torch.Tensor:
    return torch.empty(*shape, device="cuda", **how)


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        (
            "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 16",
            "size 0 of x is 16 and was 4",
        ),
        (
            "0/2: tensor 'xs[0]' rank mismatch. expected 2, actual 3",
            "xs[0] has 3 dimensions and had 2",
        ),
        ("1/0: tensor 'x' dtype mismatch. expected Float, actual Half", "x is half and was float"),
        (
            "1/0: tensor 'x' requires_grad mismatch. expected requires_grad=0",
            "x needs gradients",
        ),
        ("2/2: GLOBAL_STATE changed: grad_mode ", "gradients were switched on or off"),
        (
            "0/4: L['n'] == 2      # def f(x,n=2)  # f.py:20 in f\nUser stack trace:\n  File",
            "n is no longer 2",
        ),
        ("1/0: len(d) == 1    # return d  # f.py:2 in g", "d no longer has 1 items"),
        ("1/0: something new", "something new"),
    ],
)
def test_guards_in_plain_words(guard: str, words: str) -> None:
    assert plain_guard(guard) == words


def test_each_call_that_compiles_again_is_told_with_its_line() -> None:
    def doubled(x: torch.Tensor, n: int = 2) -> torch.Tensor:
        return x * n

    fn = torch.compile(doubled)

    def script() -> None:
        fn(cuda(4, 8))
        fn(cuda(16, 8))
        fn(cuda(64, 8))
        fn(cuda(64, 8), 3)

    first = script.__code__.co_firstlineno
    plan = as_written(script)
    assert [(r.call, r.reason, r.dynamic) for r in plan.recompiles] == [
        (2, "size 0 of x is 16 and was 4", ("size 0 of x",)),
        (4, "n is no longer 2", ("size 0 of x", "n")),
    ]
    assert [r.line.line - first for r in plan.recompiles if r.line] == [2, 4]
    assert sum(bool(x.region) for x in plan.launches) == 4


def test_sizes_kept_fixed_compile_anew_for_each() -> None:
    fn = torch.compile(lambda x: x * 2, dynamic=False)
    plan = as_written(lambda: [fn(cuda(n)) for n in (4, 16, 64)])
    assert [r.call for r in plan.recompiles] == [2, 3]
    assert not any(r.dynamic for r in plan.recompiles)


def test_compiled_too_often_it_runs_eagerly() -> None:
    fn = torch.compile(lambda x, s: x + len(s))
    x = cuda(4)
    plan = as_written(lambda: [fn(x, "a" * i) for i in range(12)])
    assert [r.call for r in plan.recompiles] == list(range(2, 9))
    assert any("as often as recompile_limit allows" in note for note in plan.notes)
    assert [bool(launch.region) for launch in plan.launches] == [True] * 8 + [False] * 4


def test_what_never_settles_is_told() -> None:
    class Net(torch.nn.Module):
        calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * self.calls

    report = kpredict.predict(Net(), (cuda(4),), modes=("compiled",))
    plan = report.compiled.forward
    assert plan is not None
    assert [r.call for r in plan.recompiles] == [2, 3]
    assert any("forward is compiled again in every call" in note for note in plan.notes)


FIXTURE = Path(__file__).parents[2] / "fixtures" / "several_shapes.py"


def test_the_calls_that_a_file_makes_are_told_one_by_one() -> None:
    report = analyse(requests([str(FIXTURE)], modes=("compiled",)))
    entry = report.entries[0]
    assert [(r.call, r.line, str(r.kernels)) for r in entry.repeats] == [
        (1, 16, "1"), (2, 16, "1"), (4, 16, "1"), (5, 17, "1"),
    ]  # fmt: skip
    assert [r.recompile.reason if r.recompile else "" for r in entry.repeats] == [
        "", "size 0 of x is 16 and was 8", "", "x is half and was float",
    ]  # fmt: skip
    told = text.render(report)
    assert "size 0 of x is 16 and was 8; size 0 of x may vary from then on" in told
    again = load(json.render(report)).entries[0]
    assert again.repeats == entry.repeats
