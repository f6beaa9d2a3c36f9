"""Mismatches become rules, and with the rules the prediction is what was measured."""

import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from kpredict.eager import registry
from kpredict.eager.predict import predict_eager
from kpredict.eager.user_rules import parse_rows, register
from kpredict.model import (
    Basis,
    Count,
    Entry,
    Kind,
    KpredictError,
    Launch,
    Mode,
    Op,
    Phase,
    Phases,
    Plan,
    Report,
    Tensor,
)
from kpredict.targets import target
from kpredict.verify.bundle import Bundle, Machine, MeasuredEntry, MeasuredPhase
from kpredict.verify.calibrate import Calibration, calibrate, toml
from kpredict.verify.check import Verification, check
from kpredict.verify.measured import Measured, Timing

MACHINE = Machine("NVIDIA H200", (9, 0), 132, torch="2.13.0")


def tensor(*shape: int) -> Tensor:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return Tensor(shape, tuple(reversed(strides))[: len(shape)], "float32", "cuda", hash(shape))


def op(name: str, *inputs: Tensor, out: Tensor, **args: object) -> Op:
    named = dict(zip(("self", "mat2" if "mm" in name else "other"), inputs, strict=False))
    return Op(name, {**named, **args}, (out,))


MM = op("aten.mm.default", tensor(64, 4096), tensor(4096, 64), out=tensor(64, 64))
ADD = op("aten.add.Tensor", tensor(64, 64), tensor(64, 64), out=tensor(64, 64), alpha=1)
OPS = (MM, ADD)


def seen(kind: Kind, name: str, op: str, count: int = 1) -> Launch:
    return Launch(kind, name, Count.exactly(count), basis=Basis.MEASURED, ops=(op,))


def verified(*launches: Launch) -> Verification:
    plan = predict_eager(OPS, target("h200"))
    entry = Entry("f.py", "f", 1, (), {Mode.EAGER: Phases(plan)})
    timings = tuple(Timing(i, i, 1.0, 0, 7) for i, _ in enumerate(launches))
    phase = MeasuredPhase(Measured(Plan(launches), timings))
    measured = MeasuredEntry("f.py", "f", modes={Mode.EAGER: {Phase.FORWARD: phase}})
    return check(Report(target("h200"), (entry,)), Bundle(MACHINE, (measured,)))


@pytest.fixture(autouse=True)
def _no_user_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_user_rules", {})


GEMM = seen(Kind.LIBRARY, "sm90_gemm", "aten.mm", 2)
SEEN_ADD = seen(Kind.KERNEL, "vectorized_elementwise_kernel", "aten.add")


def test_a_librarys_interval_becomes_the_number_seen() -> None:
    before = verified(GEMM, SEEN_ADD)
    assert not before.checked[0].comparison.rows[0].left.count.exact  # type: ignore[union-attr]
    text = toml(calibrate([before]))
    rows = tomllib.loads(text)["tool"]["kpredict"]["rule"]
    assert rows == [{
        "op": "aten.mm.default", "arrays": ["float32[64,4096]", "float32[4096,64]"],
        "launches": ["library 2"], "because": "measured on NVIDIA H200, torch 2.13.0",
    }]  # fmt: skip
    register(parse_rows(rows))
    after = verified(GEMM, SEEN_ADD)
    assert [r.verdict.value for r in after.checked[0].comparison.rows] == ["equal", "equal"]
    assert after.checked[0].bytes == before.checked[0].bytes


def test_a_wrong_rule_becomes_what_was_launched() -> None:
    copy = seen(Kind.KERNEL, "elementwise_kernel", "aten.add")
    found = calibrate([verified(GEMM, copy, SEEN_ADD)])
    added = next(row for row in found.rows if row.op == "aten.add.Tensor")
    assert added.launches == ("elementwise_kernel", "vectorized_elementwise_kernel")
    register(found.rows)
    assert verified(GEMM, copy, SEEN_ADD).checked[0].comparison.identical


def test_other_arrays_are_left_to_our_own_rule() -> None:
    register(calibrate([verified(GEMM, SEEN_ADD)]).rows)
    small = op("aten.mm.default", tensor(8, 8), tensor(8, 8), out=tensor(8, 8))
    plain = registry.own_rule(small)
    assert plain is not None
    expected = [x.count for x in plain.function(small, target("h200"))]
    assert [x.count for x in predict_eager([small], target("h200")).launches] == expected


def test_what_was_measured_in_two_ways_is_not_told() -> None:
    three = replace(GEMM, count=Count.exactly(1))
    found = calibrate([verified(GEMM, SEEN_ADD), verified(three, SEEN_ADD)])
    assert found.rows == ()
    assert "measured in two ways" in found.untold[0]
    assert toml(found).startswith("# not told: aten.mm.default")


def test_nothing_to_do() -> None:
    assert toml(Calibration(())) == "# Everything is as predicted.\n"


def test_rows_by_hand() -> None:
    rows = parse_rows([{"op": "mylib::rotary", "launches": ["rotary_kernel", "library 1..3",
                        "memcpy DtoD", "memset", "sync"]}])  # fmt: skip
    register(rows)
    custom = Op("mylib.rotary.default", {"x": tensor(4)}, (tensor(4),))
    plan = predict_eager([custom], target("h100"))
    assert [(x.kind.value, x.name, str(x.count)) for x in plan.launches] == [
        ("kernel", "rotary_kernel", "1"), ("library", "library", "1..3"),
        ("memcpy", "Memcpy DtoD", "1"), ("memset", "Memset", "1"), ("sync", "synchronize", "1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"launches": ["k"]}, "needs op"),
        ({"op": "aten.mm"}, "are lists of texts"),
        ({"op": "aten.mm", "launches": "k"}, "are lists of texts"),
        ({"op": "aten.mm", "launches": ["a b"]}, "'a b' is no launch"),
        ({"op": "aten.mm", "launchs": ["k"]}, "Did you mean launches"),
        ({"op": "aten.mm", "launches": ["k"], "arrays": [1]}, "are lists of texts"),
    ],
)
def test_rows_that_are_wrong(row: dict[str, object], says: str) -> None:
    with pytest.raises(KpredictError, match=says):
        parse_rows([row])


def test_rows_in_a_pyproject_decide(tmp_path: Path) -> None:
    """The command reads the nearest pyproject.toml; the child registers its rules."""
    pytest.importorskip("torch")
    (tmp_path / "f.py").write_text(
        "import torch\n\n# kpredict: x=f32[64]\ndef f(x):\n    return x.relu() + 1\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.kpredict.rule]]\nop = "aten.relu"\nlaunches = ["my_kernel", "library 1..3"]\n'
    )
    command = [sys.executable, "-m", "kpredict", "f.py", "--mode", "eager", "-f", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)["entries"][0]["plans"]["eager"]["forward"]
    assert plan["kernels"] == {"lo": 3, "hi": 5}
    assert plan["launches"][0]["name"] == "my_kernel"
    assert plan["launches"][0]["because"] == "a rule of the user's"
