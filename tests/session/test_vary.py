"""Each target and each size is predicted by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpredict.bounds import phases_bound
from kpredict.model import Count, KpredictError, Mode
from kpredict.request import Request
from kpredict.session.ask import answering
from kpredict.session.vary import over_sizes, over_targets
from kpredict.sweep import parse_sweep

pytest.importorskip("torch")


def test_a_sum_over_long_rows_is_split_where_there_are_many_sms(tmp_path: Path) -> None:
    file = tmp_path / "sums.py"
    file.write_text("# kpredict: x=f32[100,32768]\ndef total(x):\n    return x.sum(dim=-1)\n")
    request = Request(str(file), modes=(Mode.COMPILED,))
    with answering(2) as answered:
        found = over_targets([request], ("h100", "t4"), answered)
    assert [r.target.name for _, r in found.points] == ["h100", "t4"]
    kernels = [r.entries[0].plans[Mode.COMPILED].kernels for _, r in found.points]
    assert kernels == [Count(2, 2), Count(1, 1)]


FILE = """\
# kpredict: a=f32[n], b=f32[n]
def add_relu(a, b):
    return (a + b).relu()

# kpredict: a=f32[n,16], heads==4
def split(a, heads):
    return a.view(a.shape[0] // heads, heads, 16).exp()
"""


def test_a_sweep_finds_where_launches_cease_to_set_the_time(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(FILE)
    asked: list[dict[str, int]] = []
    request = Request(str(file), modes=(Mode.EAGER,), dims={"m": 3}, launch_us=2.0)
    with answering(20, begun=lambda r: asked.append(dict(r.dims))) as answered:
        found = over_sizes([request], parse_sweep("n=1e4..1e7"), answered)
    assert [label for label, _ in found.points] == ["10000", "100000", "1000000", "10000000"]
    assert found.points[0][1].entries[0].inputs == ("a=f32[10000]", "b=f32[10000]")
    assert not [e for _, r in found.points for e in r.errors]
    add, split = found.turns
    assert (add.name, add.mode, add.by) == ("add_relu", Mode.EAGER, "memory")
    # 20 bytes per element at 3350 GB/s take as long as two launches of 2 us each
    assert add.below <= 4e-6 * 3350e9 / 20 <= add.above <= 1.01 * add.below
    assert split.below <= 2e-6 * 3350e9 / (2 * 16 * 4) <= split.above
    assert {"n": add.below, "m": 3} in asked
    last = phases_bound(
        found.points[-1][1].entries[0].plans[Mode.EAGER], found.points[-1][1].target
    )
    assert last.launches == 4.0


def test_a_name_that_no_input_has_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(FILE)
    with answering(1) as answered, pytest.raises(KpredictError) as error:
        over_sizes([Request(str(file), dims={"n": 8})], parse_sweep("m=1..10"), answered)
    assert error.value.message == "No dimension and no tensor input is called m."
    assert error.value.hint == "Dimensions: n. Inputs: a, b."


def test_an_input_gets_so_many_elements_and_those_shaped_like_it_too(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(
        "# kpredict: a=f32[8,4], b=f32[8,4], c=f32[4]\ndef f(a, b, c):\n    return a * b + c\n"
        "# kpredict: x=f32[8]\ndef other(x):\n    return x + 1\n"
    )
    with answering(3) as answered:
        request = Request(str(file), modes=(Mode.EAGER,))
        found = over_sizes([request], parse_sweep("a=64,4e7"), answered)
    assert found.entries == ((str(file), "f"),)
    assert [r.entries[0].inputs for _, r in found.points] == [
        ("a=f32[16,4]", "b=f32[16,4]", "c=f32[4]"),
        ("a=f32[10000000,4]", "b=f32[10000000,4]", "c=f32[4]"),
    ]
    (turn,) = found.turns
    assert 64 < turn.below < turn.above < 4e7
