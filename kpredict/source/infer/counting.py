"""Steps → kernels, by the same eager rules as everywhere; an interval where shapes are unknown.

For a step of unknown shapes the rules are asked for a few representative shapes and the answers
span the interval. A pointwise op is one kernel whatever its shape (up to 2³¹ bytes), a
view none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kpredict.model import ITEMSIZE, Kind, Launch, Target, row_major
from kpredict.source.infer.shapes.pointwise import pointwise
from kpredict.source.infer.shapes.registry import shape_function
from kpredict.source.infer.trace import Interval, Item, Step, count
from kpredict.source.infer.values import UNKNOWN, Array

OPEN = Interval(0, None)
NONE = Interval(0, 0)
ONE = Interval(1, 1)
_SIZES = (2, 16, 100)


def launches(step: Step, target: Target) -> list[Launch] | None:
    """What a step of known shapes launches; None when no rule tells."""
    from kpredict.eager.predict import launches_of  # its rules take 0.1 s to import

    try:
        found, unknown = launches_of(step.op(), target)
    except Exception:
        return None
    return None if unknown is not None else found


def kernels(step: Step, target: Target) -> Interval:
    """How many kernels one step is; a library call counts as the kernels inside it."""
    if "view" in step.tags:
        return NONE
    arrays = (*step.arrays, *step.results)
    if arrays and not any(a.device == "cuda" for a in arrays):
        return NONE
    if step.known and UNKNOWN not in _flat(step.args):
        found = launches(step, target)
        return OPEN if found is None else _total(found)
    if "pointwise" in step.tags:
        return ONE
    if (
        step.short == "_to_copy" and step.args.get("dtype") is not None
        and any(a.dtype is None for a in arrays)
    ):  # fmt: skip
        return Interval(0, 1)  # a cast, or none
    return _represented(step, target)


def calls(step: Step, target: Target) -> Interval:
    """As `kernels`, with a library call counted as one: what can be exact without the library."""
    arrays = (*step.arrays, *step.results)
    on_gpu = not arrays or any(a.device == "cuda" for a in arrays)
    if on_gpu and step.known and "view" not in step.tags and UNKNOWN not in _flat(step.args):
        found = launches(step, target)
        if found is not None:
            n = sum(
                1 if x.kind is Kind.LIBRARY else x.count.lo
                for x in found
                if x.kind in (Kind.KERNEL, Kind.LIBRARY)
            )
            return Interval(n, n)
    return kernels(step, target)


def total(items: Sequence[Item], target: Target) -> Interval:
    return count(items, lambda step: kernels(step, target))


def _total(found: Sequence[Launch]) -> Interval:
    out = NONE
    for launch in found:
        if launch.kind in (Kind.KERNEL, Kind.LIBRARY):
            out += Interval.of(launch.count)
    return out


def _flat(args: Mapping[str, Any]) -> list[Any]:
    out: list[Any] = []
    for v in args.values():
        out += v if isinstance(v, (tuple, list)) else (v,)
    return [v for v in out if not isinstance(v, Array)]


_ANSWERS: dict[tuple[Any, ...], Interval] = {}


def _represented(step: Step, target: Target) -> Interval:
    key = (step.name, target.name, target.torch, repr(_flat(step.args)),
           tuple((a.ndim, a.dtype, a.device) for a in step.arrays))  # fmt: skip
    if key not in _ANSWERS:
        _ANSWERS[key] = _asked(step, target)
    return _ANSWERS[key]


def _asked(step: Step, target: Target) -> Interval:
    answers: list[Interval] = []
    for size in _SIZES:
        concrete = _concrete(step, size)
        if concrete is None:
            continue
        found = launches(concrete, target)
        if found is not None:
            answers.append(_total(found))
    if not answers:
        return ONE if step.short in _AT_LEAST_ONE else OPEN
    highs = [a.hi for a in answers if a.hi is not None]
    return Interval(min(a.lo for a in answers), max(highs))


_AT_LEAST_ONE = frozenset("_softmax _log_softmax native_layer_norm".split())


def _concrete(step: Step, size: int) -> Step | None:
    """The step with every unknown size `size`; None where the op does not take such shapes."""

    def fill(v: Any) -> Any:
        if isinstance(v, Array):
            return _filled(v, size, step.short)
        if isinstance(v, (tuple, list)):
            return tuple(fill(x) for x in v)
        return size if v is UNKNOWN else v

    args = {k: fill(v) for k, v in step.args.items()}
    function = shape_function(step.short)
    try:
        if step.packet.endswith("_") and not step.packet.endswith("__"):
            out: Any = args.get("self")
        else:
            out = function(args) if function is not None else pointwise(args, step.short)
    except Exception:
        return None
    flat = out if isinstance(out, (tuple, list)) else (out,)
    made = replace(step, args=args, outputs=tuple(fill(o) for o in flat))
    return made if made.known else None


_RANKS = {"mm": 2, "addmm": 2, "bmm": 3, "baddbmm": 3, "convolution": 4, "cudnn_batch_norm": 4,
          "native_batch_norm": 4, "max_pool2d_with_indices": 4, "avg_pool2d": 4}  # fmt: skip


def _filled(a: Array, size: int, op: str) -> Array:
    shape = a.shape
    if shape is None:
        shape = (None,) * _RANKS.get(op, 3)
    sizes = tuple(size if d is None else d for d in shape)
    dtype = a.dtype if a.dtype in ITEMSIZE else "float32"
    if a.dtype is None and op in ("embedding",):
        dtype = "float32"
    return replace(a, shape=sizes, stride=row_major(sizes), dtype=dtype)


@cache
def default_target() -> Target:
    """An H100 and the torch that is installed; without one, the release the rules were read in."""
    from kpredict.targets import target

    return target(torch=installed_release())


def installed_release() -> str | None:
    """`2.13.0` of the torch that would be imported, read from its files and not by importing it."""
    try:
        spec = find_spec("torch")
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        try:
            text = Path(folder, "version.py").read_text("utf-8")
        except OSError:
            continue
        found = re.search(r"__version__\s*=\s*['\"](\d+\.\d+\.\d+)", text)
        return found[1] if found else None
    return None
