"""Eager rules against a real trace: the op calls of BERT on an H100, made again and predicted."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def traces():  # type: ignore[no-untyped-def]
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("traces", ROOT / "benchmarks" / "traces.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["traces"] = module
    spec.loader.exec_module(module)
    return module


def test_bert_on_an_h100(traces) -> None:  # type: ignore[no-untyped-def]
    found = traces.benchmark(ROOT / "fixtures" / "traces" / "tracelens_bert_small_h100.json.gz")
    assert (found.calls, found.library) == (31, 30)
    assert found.agree == found.calls
    assert found.failed == found.not_recorded == 0


def test_a_trace_of_another_vendor_is_left_alone(traces) -> None:  # type: ignore[no-untyped-def]
    found = traces.benchmark(ROOT / "fixtures" / "traces" / "tracelens_bert_small_mi300.json.gz")
    assert found.calls == 0
