"""Host code that calls another op: what that op launches.

In: an op's name, its outputs and arguments. Out: its launches, from its own rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kpredict.eager.registry import find
from kpredict.model import KpredictError, Launch, Op, Target, Tensor


def call(name: str, target: Target, outputs: Sequence[Tensor], **args: Any) -> list[Launch]:
    """The launches of `aten.<name>` called by another op; raises when it has no rule.

    `args` are schema arguments by name; those left out read as None.
    """
    op = Op(name, args, tuple(outputs))
    rule = find(op)
    if rule is None:
        raise KpredictError(f"{name} has no rule.", "This is an error in the rule that calls it.")
    return list(rule.function(op, target))
