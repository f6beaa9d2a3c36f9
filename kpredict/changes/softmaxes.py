"""Softmax and log-softmax by hand: an exponential over its own sum, with or without the shift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kpredict.changes.patterns import product, reduction
from kpredict.changes.rewrites import ROUNDING, Rewrite
from kpredict.changes.terms import Term, same
from kpredict.changes.writing import Writer


@dataclass(frozen=True, slots=True)
class Softmax:
    """`softmax(x, dim)`, or its logarithm."""

    x: Term
    dim: Term
    log: bool = False


def softmax(term: Term) -> Softmax | None:
    """A softmax however it is spelled, PyTorch's own included."""
    if term.op == "softmax" and "dim" in term.args:
        return Softmax(term["self"], term["dim"])
    return by_hand(term)


def by_hand(term: Term) -> Softmax | None:
    if term.op not in ("div", "mul"):
        return None
    found = product(term)
    if found.number != 1.0 or len(found.over) != 1 or len(found.under) != 1:
        return None
    top, bottom = found.over[0], reduction(found.under[0], "sum")
    if bottom is None or top.op != "exp" or not same(top, bottom[0]):
        return None
    return Softmax(_unshifted(top["self"], bottom[1]), bottom[1])


def _unshifted(x: Term, dim: Term) -> Term:
    """x of `x - max(x)`: what is subtracted along the dim changes nothing."""
    if x.op != "sub":
        return x
    shift, inner = x["other"], x["self"]
    whole = shift.op in ("max", "amax") and len(shift.args) == 1 and same(shift["self"], inner)
    found = reduction(shift, "max", "amax")
    along = found is not None and same(found[0], inner) and same(found[1], dim)
    return inner if whole or along else x


def log_softmax(term: Term) -> Softmax | None:
    if term.op == "log_softmax" and "dim" in term.args:
        return Softmax(term["self"], term["dim"], log=True)
    return log_by_hand(term)


def log_by_hand(term: Term) -> Softmax | None:
    if term.op == "log":
        inner = softmax(term["self"])
        return None if inner is None else Softmax(inner.x, inner.dim, log=True)
    if term.op != "sub":
        return None
    x, spread = term["self"], term["other"]
    found = reduction(spread, "logsumexp")
    if found is not None and same(found[0], x):
        return Softmax(x, found[1], log=True)
    if spread.op == "log":
        found = reduction(spread["self"], "sum")
        if found is not None and found[0].op == "exp" and same(found[0]["self"], x):
            return Softmax(_unshifted(x, found[1]), found[1], log=True)
    return None


def find(term: Term) -> Iterator[Rewrite]:
    for match, what, name in (
        (by_hand(term), "softmax", "softmax"),
        (log_by_hand(term), "log-softmax", "log_softmax"),
    ):
        if match is not None:

            def say(w: Writer, found: Softmax = match, name: str = name) -> str:
                return f"{w.functional(name)}({w.say(found.x)}, dim={w.say(found.dim)})"

            yield Rewrite(what, say, ROUNDING)
