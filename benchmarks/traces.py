"""Eager rules against profiler traces of real GPUs: every recorded op call is predicted again.

    python benchmarks/traces.py TRACE.json.gz... [--misses 20] [--out rows.jsonl]

For each op call that launched something and whose arguments were recorded, the call is made anew on
the pretended GPU, with tensors of the same shapes, types and (where recorded) strides, and what is
predicted for it is held against the trace. Calls into closed libraries are counted apart. A profile
does not say on which device an argument was: the direction of the copies tells. Where strides were
not recorded a copy may be a memcpy or a kernel; there the two count alike.
"""

from __future__ import annotations

import argparse
import ast
import json
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from kpredict import pretend_cuda
from kpredict.capture.run import capture
from kpredict.eager.predict import predict_eager
from kpredict.model import Kind, KpredictError, Op, Phase, Plan
from kpredict.verify.bundle import Machine
from kpredict.verify.machines import target_of
from kpredict.verify.names import family, is_library
from kpredict.verify.recorded import Inputs, dtype_of
from kpredict.verify.trace import OP, Activity, Device, Trace, read_trace


@dataclass(slots=True)
class Call:
    """One op call of the trace with everything it launched, also through ops it called."""

    name: str
    inputs: Inputs
    work: list[Activity] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str]:
        directions = "".join(sorted({d for a in self.work if (d := _direction(a))}))
        return self.name, repr(self.inputs), directions


@dataclass(frozen=True, slots=True)
class Counts:
    kernels: int
    memcpy: int
    memset: int
    library: tuple[int, int] = (0, 0)
    names: tuple[str, ...] = ()
    unknown: str = ""

    def agrees(self, other: Counts, strides: bool) -> bool:
        """Equal; without recorded strides a copy may be either kind."""
        if strides:
            mine, theirs = (self.kernels, self.memcpy), (other.kernels, other.memcpy)
        else:
            mine, theirs = (self.kernels + self.memcpy,), (other.kernels + other.memcpy,)
        return mine == theirs and self.memset == other.memset


class NotRecorded(Exception):
    """The trace does not say enough to make the call again."""


def calls_of(trace: Trace) -> Iterator[Call]:
    """For each launch the outermost ATen op around it whose arguments suffice.

    Without strides only ops that launch something themselves: what lies around them may copy
    because of a layout that was not recorded.
    """
    strides = any(any(i.strides) for s in trace.spans if (i := trace.inputs(s)) is not None)
    rows = [(a, list(_candidates(trace, a))) for a in trace.activities() if a.call is not None]
    direct = {spans[0] for _, spans in rows if spans}
    calls: dict[int, Call] = {}
    for activity, spans in rows:
        if not spans:
            op = next((trace.name(s) for s in trace.around(activity.span)), "(no op)")
            yield Call(op, Inputs(), [activity])
            continue
        chosen = spans[-1] if strides else next(s for s in reversed(spans) if s in direct)
        inputs = trace.inputs(chosen)
        assert inputs is not None
        calls.setdefault(chosen, Call(trace.name(chosen), inputs)).work.append(activity)
    yield from calls.values()


def _candidates(trace: Trace, activity: Activity) -> Iterator[int]:
    """Ops around a launch that can be called again, innermost first."""
    moves = _direction(activity)
    for span in trace.around(activity.span):
        name = trace.name(span)
        if trace.kind(span) != OP or not name.startswith("aten::"):
            continue
        inputs = trace.inputs(span)
        if inputs is None or (moves and name in _MOVERS):
            continue
        if can_be_called(name, inputs):
            yield span


_MOVERS = {"aten::to", "aten::_to_copy", "aten::cpu", "aten::cuda", "aten::contiguous"}


def _direction(activity: Activity) -> str:
    name = family(activity.name)
    return name.removeprefix("Memcpy ") if name in ("Memcpy HtoD", "Memcpy DtoH") else ""


# Arguments


@cache
def schemas(name: str) -> tuple[Any, ...]:
    return tuple(torch._C._jit_get_schemas_for_operator(name))


@cache
def _can_be_called(name: str, inputs: str) -> bool:
    try:
        arguments(name, _INPUTS[inputs])
    except NotRecorded:
        return False
    return True


_INPUTS: dict[str, Inputs] = {}


def can_be_called(name: str, inputs: Inputs) -> bool:
    key = repr(inputs)
    _INPUTS[key] = inputs
    return _can_be_called(name, key)


def arguments(name: str, inputs: Inputs) -> tuple[Any, list[tuple[Any, Any]]]:
    """(overload, one (schema argument, value) each). A tensor's value is a Made."""
    reasons = []
    for schema in sorted(schemas(name), key=lambda s: any(a.is_out for a in s.arguments)):
        if schema.overload_name.startswith("prim"):
            continue
        try:
            given = _fit(schema, inputs)
        except NotRecorded as reason:
            reasons.append(str(reason))
            continue
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        return getattr(packet, schema.overload_name or "default"), given
    raise NotRecorded("; ".join(dict.fromkeys(reasons)) or "no schema")


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor to be made."""

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: str


def _fit(schema: Any, inputs: Inputs) -> list[tuple[Any, Any]]:
    wanted = schema.arguments
    n = len(inputs.dims)
    if n > len(wanted):
        raise NotRecorded("more arguments than this release takes")
    if any(not a.has_default_value() for a in wanted[n:]):
        raise NotRecorded("fewer arguments than this release takes")
    rows = []
    for i, argument in enumerate(wanted[:n]):
        rows.append((argument, _value(argument, *_at(inputs, i))))
    return rows


def _at(inputs: Inputs, i: int) -> tuple[Any, Any, Any, Any]:
    def get(column: Sequence[Any], default: Any) -> Any:
        return column[i] if i < len(column) else default

    return (
        get(inputs.dims, []), get(inputs.types, ""), get(inputs.strides, None),
        get(inputs.concrete, None),
    )  # fmt: skip


_SCALARS = {"Scalar", "Int", "Bool", "Double", "Float"}
_LISTS = {"ScalarList", "GenericList", "IntList", "BoolList", "DoubleList"}


def _value(argument: Any, dims: Any, kind: Any, stride: Any, concrete: Any) -> Any:
    """The value of one argument, by its schema type and what was recorded."""
    wanted = str(argument.type)
    dtype = dtype_of(kind)
    if dtype:
        if wanted not in ("Tensor", "Optional[Tensor]"):
            raise NotRecorded(f"{argument.name} is a tensor")
        if not all(isinstance(d, int) for d in dims):
            raise NotRecorded("nested")
        return Made(tuple(dims), tuple(stride) if stride else None if dims else (), dtype)
    if kind == "TensorList" or isinstance(kind, list):
        if "List[" not in wanted or "Tensor" not in wanted or not dims:
            raise NotRecorded("a list of tensors")
        types = kind if isinstance(kind, list) else ["float"] * len(dims)
        return [Made(tuple(d), None, dtype_of(t) or "float32")
                for d, t in zip(dims, types, strict=False)]  # fmt: skip
    if wanted == "Tensor" or ("Tensor" in wanted and wanted != "Optional[Tensor]"):
        raise NotRecorded(f"{argument.name} was not recorded")
    if kind in _SCALARS and ("Device" in wanted or "Tensor" in wanted):
        raise NotRecorded(f"{argument.name} is no number")
    if kind == "" and concrete is None and "List" in wanted:
        raise NotRecorded(f"{argument.name}, a list, was not recorded")
    if kind == "" and concrete in ("", None):
        if str(argument.real_type) == "Device":
            return torch.device("cuda")  # never recorded; calls that move are not made here
        if wanted.startswith("Optional"):
            return None
        if argument.has_default_value():
            return argument.default_value
        raise NotRecorded(f"{argument.name} was not recorded")
    if kind in _LISTS and "List" not in wanted:
        raise NotRecorded(f"{argument.name} is no list")
    if kind in _SCALARS and "List" in wanted:
        raise NotRecorded(f"{argument.name} is a list")
    if concrete in ("", None):
        if wanted in ("Optional[number]", "Optional[float]"):
            return 2.0
        if argument.has_default_value():
            return argument.default_value
        if wanted in ("number", "float"):
            return 2.0 if kind != "Int" else 2  # its value decides nothing
        if wanted == "bool":
            return False
        raise NotRecorded(f"the value of {argument.name} was not recorded")
    return _parsed(wanted, str(argument.real_type), concrete)


def _parsed(wanted: str, real: str, text: str) -> Any:
    """A value from the profiler's text."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if "str" in wanted:
            return text
        value = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(text)
        if value is None:
            raise NotRecorded(f"cannot read {text!r}") from None
    if "ScalarType" in real and isinstance(value, int):
        return _dtypes().get(value)
    if "MemoryFormat" in real and isinstance(value, int):
        return (torch.contiguous_format, torch.preserve_format, torch.channels_last)[value]
    if "Layout" in real or "Device" in real:
        return None
    if isinstance(value, float) and wanted in ("int", "Optional[int]"):
        return int(value)
    return value


@cache
def _dtypes() -> Mapping[int, torch.dtype]:
    return {
        0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64,
        5: torch.float16, 6: torch.float32, 7: torch.float64, 9: torch.complex64,
        10: torch.complex128, 11: torch.bool, 15: torch.bfloat16,
    }  # fmt: skip


# Prediction


def plan_of(world: Any, call: Call) -> Plan:
    """Make the call on the pretended GPU and ask the rules."""
    overload, rows = arguments(call.name, call.inputs)
    moves = call.key[2]
    tensors = iter(range(100))

    def made(value: Any) -> Any:
        if isinstance(value, list) and any(isinstance(v, Made) for v in value):
            return [made(v) for v in value]
        if not isinstance(value, Made):
            return value
        return _tensor(value, _device(call, moves, next(tensors), value))

    positional, keyword = [], {}
    for argument, value in rows:
        if str(argument.real_type).find("Device") >= 0 and value is None:
            value = torch.device("cuda") if not any(isinstance(v, Made) for _, v in rows) else None
        if argument.kwarg_only:
            keyword[argument.name] = made(value)
        else:
            positional.append(made(value))

    def run() -> Any:
        with torch.no_grad():
            return overload(*positional, **keyword)

    captured = capture(world, run, warmups=0)
    ops = [item for item in captured.items[Phase.FORWARD] if isinstance(item, Op)]
    return predict_eager(ops, world.target)


def predicted(plan: Plan) -> Counts:
    own = [x for x in plan.launches if x.kind is Kind.KERNEL]
    library = [x for x in plan.launches if x.kind is Kind.LIBRARY]
    return Counts(
        sum(x.count.lo for x in own), plan.memcpy.lo, plan.memset.lo,
        (sum(x.count.lo for x in library), sum(x.count.hi for x in library)),
        tuple(x.name for x in plan.launches), ", ".join(u.op for u in plan.unknowns),
    )  # fmt: skip


def _device(call: Call, moves: str, i: int, value: Made) -> str:
    """Copies tell by their direction; a 0-dim double or long beside others is a Python number."""
    if call.name == "aten::copy_" and moves:
        return "cpu" if (i == 0) == (moves == "DtoH") else "cuda"
    wrapped = i > 0 and not value.shape and value.dtype in ("float64", "int64")
    return "cpu" if wrapped else "cuda"


def _tensor(made: Made, device: str) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, made.dtype)
    if made.stride is None or len(made.stride) != len(made.shape):
        return torch.empty(made.shape, dtype=dtype, device=device)
    return torch.empty_strided(made.shape, made.stride, dtype=dtype, device=device)


def measured(call: Call) -> Counts:
    kernels = [a for a in call.work if a.kind is Kind.KERNEL]
    library = [a for a in kernels if is_library(a.name, call.name)]
    return Counts(
        len(kernels) - len(library),
        sum(a.kind is Kind.MEMCPY for a in call.work),
        sum(a.kind is Kind.MEMSET for a in call.work),
        (len(library), len(library)),
        tuple(family(a.name) for a in call.work),
    )


# The table


@dataclass(slots=True)
class Tally:
    calls: int = 0
    agree: int = 0
    library: int = 0
    library_inside: int = 0
    not_recorded: int = 0
    failed: int = 0
    misses: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)


def target_named(device: Device) -> str:
    """The profile of a trace's GPU."""
    try:
        name, _ = target_of(Machine(device.name, device.capability, device.sms))
    except KpredictError:
        return "a100"  # older than every profile: the rules say what they say for sm_80
    return name


def benchmark(path: Path, out: Any = None) -> Tally:
    trace = read_trace(path)
    tally = Tally()
    device = trace.device
    if device.vendor != "NVIDIA":
        return tally
    target = target_named(device)
    known: dict[tuple[str, str, str], Counts | str] = {}
    with pretend_cuda(target) as world:
        for call in calls_of(trace):
            found = measured(call)
            if not call.inputs.dims:
                tally.not_recorded += 1
                tally.reasons[f"not recorded: {call.name}"] += 1
                continue
            if call.key not in known:
                try:
                    known[call.key] = predicted(plan_of(world, call))
                except Exception as error:
                    known[call.key] = f"{type(error).__name__}: {error}"[:160]
            claim = known[call.key]
            if isinstance(claim, str):
                tally.failed += 1
                tally.reasons[f"{call.name}: {claim}"] += 1
                continue
            strides = any(call.inputs.strides)
            if found.library[0] or claim.library[1]:
                tally.library += 1
                inside = claim.library[0] <= found.library[0] <= claim.library[1]
                tally.library_inside += inside and claim.kernels == found.kernels
                agrees = inside
            else:
                tally.calls += 1
                agrees = claim.agrees(found, strides)
                tally.agree += agrees
            if not agrees:
                says = f"predicted {_shown(claim)}, measured {_shown(found)}"
                tally.misses[call.name, says] += 1
                tally.examples.setdefault((call.name, says), _described(call.inputs))
                if out is not None:
                    row = {"trace": path.name, "op": call.name, "inputs": _described(call.inputs),
                           "predicted": claim.names, "measured": found.names}  # fmt: skip
                    out.write(json.dumps(row) + "\n")
    return tally


def _shown(counts: Counts) -> str:
    names = Counter(counts.names)
    text = ", ".join(f"{n}{f' x{k}' if k > 1 else ''}" for n, k in names.items())
    unknown = f" unknown {counts.unknown}" if counts.unknown else ""
    return f"[{text}]{unknown}"


def _described(inputs: Inputs) -> str:
    parts = []
    for i, dims in enumerate(inputs.dims):
        _, kind, stride, concrete = _at(inputs, i)
        if dtype_of(kind):
            parts.append(f"{dtype_of(kind)}{dims}" + (f"{tuple(stride)}" if stride else ""))
        elif concrete:
            parts.append(str(concrete))
    return " ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--misses", type=int, default=15, help="how many misses to print")
    parser.add_argument("--out", type=Path, help="write every miss as a JSON line")
    options = parser.parse_args()
    logging.disable(logging.ERROR)  # a call that cannot be made is in the table
    out = options.out.open("w") if options.out else None
    total = Tally()
    print(f"{'trace':34} {'calls':>7} {'agree':>7} {'share':>8}   library calls inside")
    for path in options.traces:
        tally = benchmark(path, out)
        _print(path.name, tally)
        for name in ("calls", "agree", "library", "library_inside", "not_recorded", "failed"):
            setattr(total, name, getattr(total, name) + getattr(tally, name))
        total.misses += tally.misses
        total.reasons += tally.reasons
        total.examples |= tally.examples
    _print("all", total)
    by_op: dict[str, int] = defaultdict(int)
    for (op, _), n in total.misses.items():
        by_op[op] += n
    print("\nmisses by op:", ", ".join(f"{op} {n}" for op, n in
          sorted(by_op.items(), key=lambda item: -item[1])) or "none")  # fmt: skip
    for (op, says), n in total.misses.most_common(options.misses):
        print(f"  {n:>5} {op}: {says}; e.g. {total.examples[op, says]}")
    if total.reasons:
        print("\nnot compared:")
        for reason, n in total.reasons.most_common(options.misses):
            print(f"  {n:>5} {reason}")
    return 0


def _print(name: str, tally: Tally) -> None:
    share = f"{tally.agree / tally.calls:.2%}" if tally.calls else "-"
    library = f"{tally.library_inside} of {tally.library}" if tally.library else "-"
    skipped = tally.not_recorded + tally.failed
    print(f"{name[:34]:34} {tally.calls:>7,} {tally.agree:>7,} {share:>8}   {library:>14}"
          f"   ({skipped:,} not compared)")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
