"""`@kpredict.rule`: what a custom op launches, told by its author."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kpredict
from kpredict.eager import registry
from kpredict.eager.launches import kernel
from kpredict.eager.predict import predict_eager
from kpredict.model import Count, KpredictError, Launch, Op, Target, Tensor
from kpredict.targets import target

X = Tensor((8,), (1,), "float32", storage=0)
Y = Tensor((8,), (1,), "float32", storage=1)
OP = Op("mylib.twice.default", {"x": X}, (Y,))


@pytest.fixture(autouse=True)
def no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_user_rules", {})


def test_an_op_without_a_rule_is_unknown() -> None:
    plan = predict_eager([OP], target())
    assert (plan.kernels, [u.op for u in plan.unknowns]) == (Count(0, 0), ["mylib.twice.default"])


def test_its_author_can_say_what_it_launches() -> None:
    @kpredict.rule("mylib::twice")
    def twice(op: Op, target: Target) -> Iterator[Launch]:
        yield kernel("twice_kernel", [op["x"]], [op.out])
        yield kernel("twice_kernel", [op.out], [op.out])

    plan = predict_eager([OP], target())
    assert [x.name for x in plan.launches] == ["twice_kernel", "twice_kernel"]
    assert not plan.unknowns
    assert len(plan.round_trips) == 1


def test_two_rules_for_one_op_are_refused() -> None:
    kpredict.rule("mylib::twice")(lambda op, target: [])
    with pytest.raises(KpredictError, match="Two rules were registered"):
        kpredict.rule("mylib::twice")(lambda op, target: [])
