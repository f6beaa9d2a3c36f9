"""Fusion reasons: no torch needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kpredict.compiled.reasons import REASONS, Made, explain_fusion, find_barriers
from kpredict.compiled.region import Node, Region
from kpredict.model import GraphBreak, Kind, Launch, Phase, RoundTrip, Span, Tensor

X = Tensor((1000,), (1,), "float32", "cuda", 1)
TRIP = RoundTrip(X, 0, (1,), 8000)


def made(name: str, region: Region | None, node: Node | None, kind: Kind = Kind.KERNEL) -> Made:
    return Made(Launch(kind, name, ops=(f"aten.{name}",)), region, node)


def reason(writer: Made, reader: Made, breaks: Sequence[GraphBreak] = ()) -> tuple[str, str]:
    (barrier,) = find_barriers([writer, reader], [TRIP], breaks)
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
    apart = made("a", first, node), made("b", second, node)
    assert reason(*apart)[0] == "compiled-apart"
    told = GraphBreak("Call to print", Span("f.py", 7)), GraphBreak("Call to item", Span("f.py", 3))
    assert reason(*apart, breaks=told[:1]) == ("graph-break", "line 7: Call to print")
    assert reason(*apart, breaks=told) == ("graph-break", "one of 2 graph breaks")
    one, other = (
        replace(m, launch=replace(m.launch, lines=(Span("f.py", n),)))
        for m, n in zip(apart, (2, 4), strict=True)
    )
    assert reason(one, other, breaks=told) == ("graph-break", "line 3: Call to item")
    assert reason(made("a", first, node), made("b", None, None))[0] == "not-compiled"


def test_partial_results_of_a_split_reduction_are_told_so() -> None:
    a = Node("op0", "generated", writes={"b0": 4}, sizes=("128", "8192"), is_reduction=True)
    b = Node("op1", "generated", reads={"b0": 4, "mean": 4}, sizes=("32", "4"), is_reduction=True)
    region = Region("0/0", Phase.FORWARD, [a, b])
    region.why_not["op0", "op1"] = "no shared data"
    pair = made("t0", region, a), made("t1", region, b)
    assert reason(*pair) == ("reduction-shape", "128 x 8192 against 32 x 4 elements")
    region.partials = frozenset({"b0"})
    assert reason(*pair) == ("split-reduction", "128 x 8192 partial results, then 32 x 4")


def test_inductors_numbers_are_put_in_order() -> None:
    a = Node("op0", "foreach", writes={"b0": 4})
    b = Node("op1", "foreach", reads={"b0": 4})
    region = Region("0/0", Phase.FORWARD, [a, b])
    region.why_not["op0", "op1"] = "numel/rnumel mismatch (non-reduce) (1, 64), (1, 1)"
    found = reason(made("t0", region, a), made("t1", region, b))
    assert found == ("sizes", "1 against 64 elements")


def test_equal_sizes_in_another_order_are_told_so() -> None:
    a = Node("op0", "generated", writes={"b0": 4}, sizes=("1000", "1"))
    b = Node("op1", "generated", reads={"b0": 4}, sizes=("10", "100"), is_reduction=True)
    region = Region("0/0", Phase.FORWARD, [a, b])
    assert reason(made("t0", region, a), made("t1", region, b))[0] == "index-order"


def test_a_launch_between_two_is_named() -> None:
    nodes = [Node(f"op{i}", "generated", sizes=("10", "1")) for i in range(3)]
    region = Region("0/0", Phase.FORWARD, nodes)
    all_three = [made(f"t{i}", region, n) for i, n in enumerate(nodes)]
    trips = [RoundTrip(X, 0, (1, 2), 8), RoundTrip(X, 1, (2,), 8)]
    found = {(b.producer, b.consumer): b for b in find_barriers(all_three, trips)}
    assert found[0, 2].reason == "in-between"
    assert found[0, 2].detail == "t1 needs the one and leads to the other"


def test_parts_of_one_op_that_is_called_whole() -> None:
    node = Node("op0", "extern", ("aten._transformer_encoder_layer_fwd.default",))
    region = Region("0/0", Phase.FORWARD, [node])
    key, detail = reason(made("a", region, node), made("b", region, node))
    assert key == "fallback-op"
    assert "_transformer_encoder_layer_fwd" in detail


@pytest.mark.parametrize("key", REASONS)
def test_every_reason_explains_itself_and_what_to_do(key: str) -> None:
    text = explain_fusion(f"fusion/{key}")
    assert text is not None
    assert text.startswith(f"fusion/{key}\n")
    assert "What can be done: " in text


def test_explaining_needs_no_torch() -> None:
    code = "import sys, kpredict.compiled.reasons; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
