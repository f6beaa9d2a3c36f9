"""The pytest plugin: `@pytest.mark.limit_kernels(eager=9, compiled=2)` on a test.

The test is given `kernels`, a function that calls and counts:

    @pytest.mark.limit_kernels(eager=2)
    def test_add_relu(kernels):
        kernels(add_relu, torch.randn(10), torch.randn(10))

Loaded in every pytest run of the environment, so nothing heavy is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kpredict.model import Report


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "limit_kernels(eager=None, compiled=None, round_trips=None, target=None): the most that "
        "what the test calls through the `kernels` fixture may launch",
    )


@pytest.fixture
def kernels(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Call a function on a pretended GPU and hold it to the test's `limit_kernels` mark."""
    mark = request.node.get_closest_marker("limit_kernels")
    limits: dict[str, Any] = {} if mark is None else dict(mark.kwargs)

    def count(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
        __tracebackhide__ = True
        from kpredict.testing import assert_max_kernels

        if not limits:
            pytest.fail("the `kernels` fixture needs @pytest.mark.limit_kernels(eager=…)")
        return assert_max_kernels(fn, *args, kwargs=kwargs, **limits)

    return count
