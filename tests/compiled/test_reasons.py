"""Fusion reasons: no torch needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kpredict.compiled.reasons import REASONS, Made, explain_fusion, find_barriers
from kpredict.compiled.region import Node, Region
from kpredict.model import Kind, Launch, Phase, RoundTrip, Tensor

X = Tensor((1000,), (1,), "float32", "cuda", 1)
TRIP = RoundTrip(X, 0, (1,), 8000)


def made(name: str, region: Region | None, node: Node | None, kind: Kind = Kind.KERNEL) -> Made:
    return Made(Launch(kind, name, ops=(f"aten.{name}",)), region, node)


def reason(writer: Made, reader: Made) -> tuple[str, str]:
    (barrier,) = find_barriers([writer, reader], [TRIP])
    return barrier.reason, barrier.detail


def test_inductors_words_become_a_reason() -> None:
    a = Node("op0", "generated", writes={"buf0": 4}, parts=("op0",), sizes=("10", "1"))
    b = Node("op1", "generated", reads={"buf0": 4}, parts=("op1",), sizes=("20", "1"))
    region = Region("0/0", Phase.FORWARD, [a, b])
    region.why_not["op0", "op1"] = "memory deps did not match"
    found = reason(made("triton_a", region, a), made("triton_b", region, b))
    assert found == ("index-order", "memory deps did not match")


def test_without_words_the_sizes_tell() -> None:
    a = Node("op0", "generated", writes={"buf0": 4}, sizes=("10", "1"))
    b = Node("op1", "generated", reads={"buf0": 4}, sizes=("20", "1"))
    region = Region("0/0", Phase.FORWARD, [a, b])
    assert reason(made("t0", region, a), made("t1", region, b)) == (
        "sizes", "10 against 20 elements",
    )  # fmt: skip


def test_between_regions_lies_a_graph_break_and_outside_nothing_is_compiled() -> None:
    node = Node("op0", "generated")
    first, second = Region("0/0", Phase.FORWARD), Region("1/0", Phase.FORWARD)
    assert reason(made("a", first, node), made("b", second, node))[0] == "graph-break"
    assert reason(made("a", first, node), made("b", None, None))[0] == "not-compiled"


@pytest.mark.parametrize("key", REASONS)
def test_every_reason_explains_itself_and_what_to_do(key: str) -> None:
    text = explain_fusion(f"fusion/{key}")
    assert text is not None
    assert text.startswith(f"fusion/{key}\n")
    assert "What can be done: " in text


def test_explaining_needs_no_torch() -> None:
    code = "import sys, kpredict.compiled.reasons; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
