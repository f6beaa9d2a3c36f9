"""A well-known function written by hand that PyTorch has as one operation.

What it means
-------------
A softmax, log-softmax, layer norm, RMS norm, GELU, SiLU, cross-entropy or attention is spelled out
in small operations.

Why it costs
------------
Each small operation is a kernel and a pass through memory. PyTorch's own operation is one kernel
(or one library call), is fused in eager mode too, and has an equally fused backward.

Example
-------
    def softmax(x: torch.Tensor):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)       # 5 kernels

Instead
-------
`F.softmax`, `F.log_softmax`, `F.layer_norm`, `F.rms_norm`, `F.gelu`, `F.silu`, `F.cross_entropy`,
`F.scaled_dot_product_attention`. `kpredict FILE --what-if` writes the change and predicts it.

How it is counted
-----------------
The pattern is found in the data flow, not in names: for a softmax, a quotient of an exponential
and its own sum. Kernels before are those of the steps in the pattern; after is one, for a
cross-entropy two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import File, makers
from kpredict.findings.rules._patterns import binary, is_value, made_by, same, span
from kpredict.source.infer.trace import Step
from kpredict.source.infer.values import Array

BAD = (
    """\
import torch

def softmax(x: torch.Tensor):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)
""",
    """\
import torch

def silu(x: torch.Tensor):
    return x * torch.sigmoid(x)
""",
    """\
import torch

def norm(x: torch.Tensor, w: torch.Tensor):
    return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
""",
    """\
import torch

def norm(x: torch.Tensor):
    m = x.mean(-1, keepdim=True)
    v = x.var(-1, keepdim=True)
    return (x - m) / torch.sqrt(v + 1e-5)
""",
    """\
import math, torch

def gelu(x: torch.Tensor):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
""",
    """\
import torch

def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
    w = torch.softmax(q @ k.transpose(-2, -1) / 8, -1)
    return w @ v
""",
    """\
import torch

def loss(x: torch.Tensor, y: torch.Tensor):
    return -torch.log_softmax(x, -1).gather(1, y[:, None]).mean()
""",
)
GOOD = (
    """\
import torch

def softmax(x: torch.Tensor):
    return torch.softmax(x, -1)
""",
    """\
import torch

def gate(x: torch.Tensor, y: torch.Tensor):
    return y * torch.sigmoid(x)
""",
    """\
import torch

def scale(x: torch.Tensor):
    return x / x.sum(-1, keepdim=True)
""",
)

Makers = Mapping[int, Step]
Found = tuple[str, str, list[Step]]


def check(file: File) -> Iterator[Finding]:
    for read in file.functions:
        if file.is_compiled(read.name):
            continue
        own = file.own_steps(read)
        by = dict(makers(own))
        found = [f for step in own for match in _MATCHERS if (f := match(step, by)) is not None]
        for what, instead, steps in _outermost(found):
            first, last = span(steps)
            kernels = sum(file.kernels(s).lo for s in steps)
            yield file.finding(
                __name__,
                steps[-1].place,
                f"{what} by hand: {kernels} kernels, {instead} is {_after(what)}",
                function=read.name,
                confidence=Confidence.LIKELY if what == "attention" else Confidence.CERTAIN,
                before=kernels,
                after=_after(what),
                end_line=max(last, first.line),
            )


def _after(what: str) -> int:
    """Kernels of PyTorch's own operation."""
    return 2 if what == "cross-entropy" else 1


def _outermost(found: list[Found]) -> Iterator[Found]:
    for i, (what, instead, steps) in enumerate(found):
        inside = any(
            j != i and set(map(id, steps)) < set(map(id, other))
            for j, (_, _, other) in enumerate(found)
        )
        if not inside:
            yield what, instead, steps


def _softmax(step: Step, by: Makers) -> Found | None:
    if step.short != "div":
        return None
    top, bottom = (made_by(v, dict(by)) for v in binary(step))
    if top is None or bottom is None or top.short != "exp" or bottom.short != "sum":
        return None
    if not same(binary(step)[0], bottom.args.get("self")):
        return None
    if bottom.args.get("dim") is None or bottom.args.get("keepdim") is False:
        return None
    steps = [top, bottom, step]
    shift = made_by(top.args.get("self"), dict(by))
    if shift is not None and shift.short == "sub":
        peak = made_by(shift.args.get("other"), dict(by))
        if (
            peak is not None
            and peak.short in ("amax", "max")
            and same(peak.args["self"], shift.args["self"])
        ):
            steps = [peak, shift, *steps]
    return "softmax", "F.softmax", steps


def _log_softmax(step: Step, by: Makers) -> Found | None:
    if step.short == "log":
        inner = made_by(step.args["self"], dict(by))
        if (
            inner is not None
            and inner.short == "_softmax"
            and same(inner.results[0], step.args["self"])
        ):
            return "log-softmax", "F.log_softmax", [inner, step]
    if step.short == "sub":
        x, lse = binary(step)
        made = made_by(lse, dict(by))
        if made is None or made.short != "logsumexp" or not same(made.args["self"], x):
            return None
        if made.args.get("keepdim") is True:
            return "log-softmax", "F.log_softmax", [made, step]
    return None


def _root_of(step: Step | None, by: Makers, op: str) -> Step | None:
    """`op(add(x, eps))`: the step that made x, through the addition of a number."""
    if step is None or step.short != op:
        return None
    inner = made_by(step.args.get("self"), dict(by))
    if (
        inner is not None
        and inner.short == "add"
        and not isinstance(inner.args.get("other"), Array)
    ):
        return inner
    return None


def _normalised(step: Step, by: Makers) -> tuple[object, Step, Step] | None:
    """`x / sqrt(s + eps)` or `x * rsqrt(s + eps)`: x, the root and the addition."""
    left, right = binary(step)
    for x, r in ((left, right), (right, left)):
        made = made_by(r, dict(by))
        added = None
        if step.short == "div" and r is right:
            added = _root_of(made, by, "sqrt")
        elif step.short == "mul":
            added = _root_of(made, by, "rsqrt")
        if added is not None and made is not None:
            return x, made, added
    return None


def _norms(step: Step, by: Makers) -> Found | None:
    found = _normalised(step, by) if step.short in ("div", "mul") else None
    if found is None:
        return None
    x, rooted, added = found
    spread = made_by(added.args["self"], dict(by))
    if spread is None or not isinstance(x, Array):
        return None
    if spread.short == "mean" and spread.args.get("dim") is not None:
        squared = made_by(spread.args["self"], dict(by))
        is_square = squared is not None and (
            (squared.short == "pow" and is_value(squared.args.get("exponent"), 2))
            or (squared.short == "mul" and same(*binary(squared)))
        )
        if squared is not None and is_square and same(squared.args["self"], x):
            return "RMS norm", "F.rms_norm", [squared, spread, added, rooted, step]
    if spread.short in ("var", "var_mean") and spread.args.get("dim") is not None:
        centred = made_by(x, dict(by))
        if centred is not None and centred.short == "sub":
            mean = made_by(centred.args.get("other"), dict(by))
            if mean is not None and mean.short in ("mean", "var_mean") and same(
                mean.args["self"], centred.args["self"]
            ) and _last_dims(spread):  # fmt: skip
                return "layer norm", "F.layer_norm", [mean, spread, centred, added, rooted, step]
    return None


def _last_dims(step: Step) -> bool:
    """Whether it reduces trailing dims, as a layer norm does."""
    dim = step.args.get("dim")
    listed = sorted(dim if isinstance(dim, (tuple, list)) else (dim,)) if dim is not None else []
    return (
        bool(listed)
        and all(isinstance(d, int) for d in listed)
        and listed == list(range(-len(listed), 0))
    )


def _silu(step: Step, by: Makers) -> Found | None:
    if step.short != "mul":
        return None
    a, b = binary(step)
    for x, s in ((a, b), (b, a)):
        made = made_by(s, dict(by))
        if (
            made is not None
            and made.short == "sigmoid"
            and same(made.args["self"], x)
            and made is not step
        ) and not step.packet.endswith("_"):
            return "SiLU", "F.silu", [made, step]
    return None


def _gelu(step: Step, by: Makers) -> Found | None:
    """`… * (1 + erf(x / √2))`, or tanh of a cubic."""
    if step.short != "add" or not is_value(step.args.get("other"), 1):
        return None
    inner = made_by(step.args["self"], dict(by))
    if inner is None:
        return None
    scaled = made_by(inner.args.get("self"), dict(by))
    if scaled is None or scaled.short not in ("div", "mul"):
        return None
    factor = scaled.args.get("other")
    if inner.short == "erf" and is_value(factor, 1.41421356, 0.70710678):
        return "GELU", "F.gelu", [scaled, inner, step]
    if inner.short == "tanh" and is_value(factor, 0.7978845608):
        return "GELU", 'F.gelu(approximate="tanh")', [scaled, inner, step]
    return None


def _cross_entropy(step: Step, by: Makers) -> Found | None:
    """The mean or sum of minus the picked log-probabilities."""
    chain = [step]
    current: Step | None = step
    for _ in range(3):
        current = made_by(current.args.get("self"), dict(by)) if current is not None else None
        if current is None:
            return None
        chain.insert(0, current)
        if current.short == "gather":
            break
        if current.short not in ("neg", "mean", "sum"):
            return None
    shorts = [s.short for s in chain[1:]]
    if (
        step.short not in ("mean", "sum", "neg")
        or "neg" not in shorts
        or not {"mean", "sum"} & set(shorts)
    ):
        return None
    logs = made_by(chain[0].args["self"], dict(by)) if chain[0].short == "gather" else None
    if logs is None or logs.short != "_log_softmax":
        return None
    return "cross-entropy", "F.cross_entropy", [logs, *chain]


def _attention(step: Step, by: Makers) -> Found | None:
    """softmax(q @ kᵀ · scale + mask) @ v."""
    if step.short not in ("bmm", "mm"):
        return None
    steps = [step]
    current = made_by(step.args["self"], dict(by))
    while current is not None and current.short in (
        "native_dropout",
        "clone",
        "_to_copy",
        "dropout",
    ):
        steps.insert(0, current)
        current = made_by(current.args.get("self", current.args.get("input")), dict(by))
    if current is None or current.short not in ("_softmax", "_safe_softmax"):
        return None
    steps.insert(0, current)
    current = made_by(current.args["self"], dict(by))
    for _ in range(5):
        if current is None:
            return None
        steps.insert(0, current)
        if current.short in ("bmm", "mm"):
            return "attention", "F.scaled_dot_product_attention", steps
        if current.short not in ("mul", "div", "add", "masked_fill", "where", "_to_copy", "sub"):
            return None
        current = made_by(current.args["self"], dict(by))
    return None


_MATCHERS: tuple[Callable[[Step, Makers], Found | None], ...] = (
    _softmax, _log_softmax, _norms, _silu, _gelu, _cross_entropy, _attention,
)  # fmt: skip
