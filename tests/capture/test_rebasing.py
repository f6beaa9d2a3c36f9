"""Gradients of views that were written in place, as a CUDA build of 2.13.0 was seen to run them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import kpredict

V, E, R, M = (
    "vectorized_elementwise_kernel", "elementwise_kernel", "reduce_kernel", "Memcpy DtoD",
)  # fmt: skip
Written = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def whole(y: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    y = y.view(2, 32, 64)
    y += a
    return y * 2


def transposed(y: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    y = y.t()
    y.add_(1.0)
    return y.exp()


def permuted_after(y: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    y = y.view(2, 32, 64)
    y += a
    return y.permute(0, 2, 1) * 2


def column(y: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    y[:, 0] = 0.0
    return y.view(-1) * 3


SEEN: dict[Written, list[str]] = {
    whole: [V, V, V, R, V, E, V, M, M, M, M, V],
    transposed: [V, V, V, R, V, E, V, M, M, E, E, V],
    permuted_after: [V, V, V, R, V, E, V, E, M, M, M, V],
    column: [V, E, V, R, V, E, M, E, V, E, V],
}


@pytest.mark.parametrize("write", SEEN, ids=lambda f: f.__name__)
def test_launches_are_those_seen(write: Written) -> None:
    with kpredict.pretend_cuda():
        s = torch.ones(64, 64, device="cuda", requires_grad=True)
        a = torch.ones(2, 32, 64, device="cuda", requires_grad=True)

        def run() -> None:
            s.grad = a.grad = None
            write(s * 2, a).sum().backward()  # type: ignore[no-untyped-call]

        report = kpredict.predict(run, modes=("eager",))
    (plans,) = report.entries[0].plans.values()
    assert [launch.name for _, plan in plans for launch in plan.launches] == SEEN[write]
