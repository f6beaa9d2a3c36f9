"""Host code that calls other ATen ops: their rules, asked with metadata made up on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from kpredict.eager.registry import find
from kpredict.model import KpredictError, Launch, Op, Target, Tensor


def call(name: str, target: Target, *outputs: Tensor, **args: Any) -> Iterator[Launch]:
    """What the op `name` launches, its launches marked as its own as a profiler shows them.

    `args` are the schema's arguments that the op's rule reads; `outputs` what it returns.
    """
    op = Op(name, args, outputs)
    rule = find(op)
    if rule is None:
        raise KpredictError(f"{name} has no rule.", "This is an error in a rule that calls it.")
    for launch in rule.function(op, target):
        yield replace(launch, ops=launch.ops or (name,))


class Host:
    """The host code of one op, written as it runs: what it has launched so far, in order."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.launches: list[Launch] = []

    def add(self, launches: Iterable[Launch]) -> None:
        self.launches += launches

    def call(self, name: str, output: Tensor, /, *more: Tensor, **args: Any) -> Tensor:
        """Call the op `name`; the first of its outputs is returned."""
        self.launches += call(name, self.target, output, *more, **args)
        return output
