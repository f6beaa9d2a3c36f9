"""Ask a rule what an op launches, with metadata written by hand."""

from __future__ import annotations

from typing import Any

from kpredict.eager.registry import find
from kpredict.model import Launch, Op, Target, Tensor
from kpredict.targets import target

H100 = target("h100")


def ask(
    name: str, *outputs: Tensor, on: Target = H100, host: tuple[Any, ...] = (), **args: Any
) -> list[Launch]:
    """The launches of `name` with the schema arguments `args`, returning `outputs`.

    `host` are results that are not tensors.
    """
    op = Op(name, args, (*outputs, *host))
    rule = find(op)
    assert rule is not None, f"{name} has no rule"
    return list(rule.function(op, on))


def names(launches: list[Launch]) -> list[str]:
    return [launch.name for launch in launches]
