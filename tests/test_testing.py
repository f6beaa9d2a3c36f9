"""`kpredict.testing` and the pytest plugin: limits hold or fail with the list of kernels."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

torch = pytest.importorskip("torch")

from kpredict.testing import assert_max_kernels  # noqa: E402

pytest_plugins = ("pytester",)


def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b).relu()


def test_within_limits() -> None:
    x = torch.zeros(8)
    report = assert_max_kernels(add_relu, x, x, eager=2, compiled=1, round_trips=1)
    assert (report.eager.kernels.hi, report.compiled.kernels.hi) == (2, 1)
    with pytest.raises(AssertionError, match="compiled: 1 kernel, at most 0 are allowed"):
        assert_max_kernels(add_relu, x, x, compiled=0)


def test_failure_names_the_kernels() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_max_kernels(add_relu, torch.zeros(8), torch.zeros(8), eager=1)
    message = str(caught.value)
    assert "eager: 2 kernels, at most 1 are allowed" in message
    assert message.count("vectorized_elementwise_kernel") == 2
    assert "test_testing.py:" in message


def test_no_limit_is_a_mistake() -> None:
    with pytest.raises(TypeError):
        assert_max_kernels(add_relu, torch.zeros(8), torch.zeros(8))


PLUGIN_TEST = """
import pytest, torch

def f(x):
    return x.sin().cos()

@pytest.mark.limit_kernels(eager=2)
def test_good(kernels):
    kernels(f, torch.zeros(3))

@pytest.mark.limit_kernels(eager=1)
def test_bad(kernels):
    kernels(f, torch.zeros(3))

def test_unmarked(kernels):
    kernels(f, torch.zeros(3))
"""


def test_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLUGIN_TEST)
    installed = any(p.value == "kpredict.pytest_plugin" for p in entry_points(group="pytest11"))
    load = () if installed else ("-p", "kpredict.pytest_plugin")
    result = pytester.runpytest_inprocess(*load, "--strict-markers")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*eager: 2 kernels, at most 1 are allowed*"])
