"""Laws for any program: views are free, counts add, fusing a pointwise chain leaves one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import kpredict  # noqa: E402
from kpredict.model import Count, Mode  # noqa: E402

Step = Callable[[Any], Any]

POINTWISE: dict[str, Step] = {
    "relu": lambda x: x.relu(), "exp": lambda x: x.exp(), "sin": lambda x: torch.sin(x),
    "add": lambda x: x + 1, "mul": lambda x: x * x, "gelu": torch.nn.functional.gelu,
    "where": lambda x: torch.where(x > 0, x, -x), "half": lambda x: x.half().float(),
    "clamp_": lambda x: x.clone().clamp_(0, 1),
}  # fmt: skip
VIEWS: dict[str, Step] = {
    "transpose": lambda x: x.transpose(0, 1), "flip back": lambda x: x.t().t(),
    "view": lambda x: x.unsqueeze(0).squeeze(0), "permute": lambda x: x.permute(1, 0),
    "slice": lambda x: x[:], "detach": lambda x: x.detach(), "expand": lambda x: x.expand_as(x),
}  # fmt: skip
REDUCTIONS: dict[str, Step] = {
    "sum": lambda x: x - x.sum(-1, keepdim=True), "softmax": lambda x: x.softmax(-1),
    "amax": lambda x: x - x.amax(),
}  # fmt: skip

pointwise = st.lists(st.sampled_from(sorted(POINTWISE)), min_size=1, max_size=6)
any_steps = st.lists(st.sampled_from(sorted(POINTWISE | REDUCTIONS)), min_size=1, max_size=6)
slow = settings(
    max_examples=25, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def world() -> Iterator[None]:
    with kpredict.pretend_cuda(target="h100"):
        yield


def chain(names: list[str]) -> Step:
    table = POINTWISE | VIEWS | REDUCTIONS

    def run(x: Any) -> Any:
        for name in names:
            x = table[name](x)
        return x

    return run


def kernels(fn: Step, mode: str = "eager") -> Count:
    x = torch.randn(96, 96, device="cuda")
    return kpredict.predict(fn, (x,), modes=(mode,)).entries[0].plans[Mode(mode)].kernels


@slow
@given(st.lists(st.sampled_from(sorted(VIEWS)), max_size=8))
def test_views_launch_nothing(names: list[str]) -> None:
    assert kernels(chain(names)) == Count(0, 0)


@slow
@given(any_steps, st.data())
def test_a_view_that_changes_no_layout_adds_nothing(names: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(names)))
    free = data.draw(st.sampled_from(["view", "slice", "flip back", "detach", "expand"]))
    assert kernels(chain([*names[:at], free, *names[at:]])) == kernels(chain(names))


@slow
@given(any_steps, any_steps)
def test_counts_add(first: list[str], second: list[str]) -> None:
    whole = kernels(chain(first + second))
    assert whole == kernels(chain(first)) + kernels(chain(second))


@settings(slow, max_examples=8)
@given(pointwise)
def test_fusing_a_pointwise_chain_leaves_one_kernel(names: list[str]) -> None:
    fused = kernels(chain(names), "compiled")
    assert fused.hi <= kernels(chain(names)).hi
    assert fused == Count(1, 1)
