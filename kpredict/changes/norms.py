"""Layer norm and RMS norm by hand, with weight and bias, and with casts to float32 and back.

A layer norm divides by the root of the biased variance: what divides by the unbiased one, or adds
epsilon to the standard deviation, is another function and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kpredict.changes.patterns import (
    added,
    narrowed,
    product,
    reduction,
    square,
    widened,
)
from kpredict.changes.rewrites import ROUNDING, Rewrite
from kpredict.changes.terms import Term, is_near, same
from kpredict.changes.writing import CannotSay, Writer


@dataclass(frozen=True, slots=True)
class Norm:
    """`norm(x)` over the last `dims` dims, times `weight`, plus `bias`."""

    layer: bool
    x: Term
    dims: int
    eps: Term
    weight: Term | None = None
    bias: Term | None = None

    @property
    def what(self) -> str:
        return "layer norm" if self.layer else "RMS norm"

    def say(self, w: Writer) -> str:
        name = "layer_norm" if self.layer else "rms_norm"
        weight = "" if self.weight is None else f", {w.say(self.weight)}"
        bias = "" if self.bias is None else f", {w.say(self.bias)}"
        if self.bias is not None and self.weight is None:
            raise CannotSay
        x = w.say(self.x)
        shape = f"{w.atom(self.x)}.shape[-{self.dims}:]"
        return f"{w.functional(name)}({x}, {shape}{weight}{bias}, eps={w.say(self.eps)})"


def norm(term: Term) -> Norm | None:
    """The norm a term is, affine or not, in the dtype it computes in."""
    if term.op == "add":
        for a, b in added(term):
            found = _scaled(a)
            if found is not None and found.layer and found.weight is not None:
                return replace(found, bias=b)
        return None
    return _scaled(term) or _around_casts(term)


def _scaled(term: Term) -> Norm | None:
    """A norm, perhaps times a weight."""
    found = product(term)
    if found.number != 1.0 or not 1 <= len(found.over) <= 3 or len(found.under) > 1:
        return None
    for i, x in enumerate(found.over):
        others = found.over[:i] + found.over[i + 1 :]
        for j, r in enumerate((*found.under, *others)):
            inverse = j >= len(found.under)
            if bool(found.under) == inverse:
                continue
            rest = others if not inverse else others[: j - len(found.under)] + (
                others[j - len(found.under) + 1 :])  # fmt: skip
            made = _root(r, inverse)
            if made is None or len(rest) > 1:
                continue
            core = _core(x, *made)
            if core is not None:
                return replace(core, weight=rest[0] if rest else None)
    return None


def _root(term: Term, inverse: bool) -> tuple[Term, Term] | None:
    """(s, eps) of `sqrt(s + eps)`, or of its inverse."""
    if term.op == "pow":
        fits = is_near(term.get("exponent"), -0.5 if inverse else 0.5)
    else:
        fits = term.op == ("rsqrt" if inverse else "sqrt")
    if not fits:
        return None
    sides = added(term["self"])
    numbers = [(s, eps) for s, eps in sides if eps.is_number]
    leaves = [(s, eps) for s, eps in sides if eps.op == "leaf"]
    return next(iter((*numbers, *leaves)), None)


def _core(x: Term, spread: Term, eps: Term) -> Norm | None:
    found = reduction(spread, "mean")
    squared = square(found[0]) if found is not None else None
    if found is not None and squared is not None and same(squared, x):
        dims = _last(found[1])
        if dims and not _is_centred(x, found[1]):
            return Norm(False, x, dims, eps)
    if x.op != "sub":
        return None
    source, mean = x["self"], reduction(x["other"], "mean")
    if mean is None or not same(mean[0], source) or not _variance(spread, source, mean[1]):
        return None
    dims = _last(mean[1])
    return Norm(True, source, dims, eps) if dims else None


def _is_centred(x: Term, dim: Term) -> bool:
    if x.op != "sub":
        return False
    mean = reduction(x["other"], "mean")
    return mean is not None and same(mean[0], x["self"]) and same(mean[1], dim)


def _variance(term: Term, x: Term, dim: Term) -> bool:
    """Whether a term is the biased variance of x over `dim`, kept."""
    found = reduction(term, "var")
    if found is not None and same(found[0], x) and same(found[1], dim):
        var = term["self"] if term.op == "unsqueeze" else term
        return var.constant("unbiased") is False or var.constant("correction") == 0
    found = reduction(term, "mean")
    if found is not None and same(found[1], dim):
        centred = square(found[0])
        return centred is not None and _is_centred(centred, dim) and same(centred["self"], x)
    if term.op == "sub":  # mean of squares less the square of the mean
        squares, mean = reduction(term["self"], "mean"), square(term["other"])
        inner = reduction(mean, "mean") if mean is not None else None
        if squares is not None and inner is not None:
            return (
                same(square(squares[0]), x)
                and same(inner[0], x)
                and same(squares[1], dim)
                and same(inner[1], dim)
            )
    return False


def _last(dim: Term) -> int:
    """How many trailing dims it names; 0 when that is not sure."""
    values = dim.value if isinstance(dim.value, tuple) else (dim.value,)
    wanted = sorted(values) if all(isinstance(v, int) for v in values) else []
    return len(wanted) if dim.is_const and wanted == list(range(-len(wanted), 0)) else 0


def _around_casts(term: Term) -> Norm | None:
    """`norm(x.float()).to(x.dtype)`, perhaps times a weight: the norm of x in its own dtype."""
    whole = product(term)
    if whole.number != 1.0 or whole.under or not 1 <= len(whole.over) <= 2:
        return None
    for i, factor in enumerate(whole.over):
        rest = whole.over[:i] + whole.over[i + 1 :]
        inner = _scaled(factor["self"]) if "self" in factor.args else None
        before = widened(inner.x) if inner is not None else None
        if inner is None or before is None or narrowed(factor, before) is None:
            continue
        if rest and inner.weight is not None:
            continue
        return replace(inner, x=before, weight=rest[0] if rest else inner.weight)
    return None


def find(term: Term) -> Iterator[Rewrite]:
    if term.op not in ("add", "mul", "div", "to", "type_as"):
        return
    found = norm(term)
    if found is not None:
        yield Rewrite(found.what, found.say, ROUNDING, even=found.weight is not None)
