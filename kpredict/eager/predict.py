"""[Op] → Plan: ask each op's rule, in stream order, and join what it launches.

In: the ops of one phase. Out: a Plan with round trips and unknowns. Linear in the number of ops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kpredict.eager.elementwise import elementwise
from kpredict.eager.registry import find, is_sparse
from kpredict.graph import round_trips
from kpredict.model import Basis, Kind, Launch, Op, Plan, Target, Tensor, Unknown


def launches_of(op: Op, target: Target) -> tuple[list[Launch], Unknown | None]:
    """What one op launches, with op, line, module and phase filled in; or why we cannot tell."""
    lines = (op.span,) if op.span else ()
    touched = (*op.inputs, *_tensors(op.outputs))
    if touched and not any(t.is_cuda for t in touched):
        return [], None
    rule = find(op)
    if rule is not None:
        found = [
            replace(
                launch,
                ops=launch.ops or (op.name,),
                lines=lines,
                module=op.module,
                phase=op.phase,
                precision=_precision(op, launch),
            )
            for launch in rule.function(op, target)
        ]
        return found, None
    if is_sparse(op):
        return [], Unknown(op.name, "no rule tells what this op launches for sparse tensors", lines)
    if "view" in op.tags:
        return [], None
    if "pointwise" in op.tags and isinstance(op.outputs[0], Tensor):
        assumed = [
            replace(
                launch, basis=Basis.ASSUMED, ops=(op.name,), lines=lines, module=op.module,
                phase=op.phase, because="no rule of its own; torch tags it pointwise",
            )
            for launch in elementwise([op.out], list(op.inputs))
        ]  # fmt: skip
        return assumed, None
    return [], Unknown(op.name, "no rule tells what this op launches", lines)


def _precision(op: Op, launch: Launch) -> str:
    """Libraries heed what the user's code had set; PyTorch's own kernels say so themselves."""
    if launch.precision or not launch.flops or launch.kind is not Kind.LIBRARY:
        return launch.precision
    return op.precision


def predict_eager(ops: Iterable[Op], target: Target) -> Plan:
    launches: list[Launch] = []
    unknowns: list[Unknown] = []
    for op in ops:
        found, unknown = launches_of(op, target)
        launches += found
        if unknown is not None:
            unknowns.append(unknown)
    return Plan(tuple(launches), round_trips(launches), unknowns=tuple(unknowns))


def _tensors(values: Sequence[object]) -> list[Tensor]:
    return [v for v in values if isinstance(v, Tensor)]
