"""GELU (exact and tanh) and SiLU by hand, also as factors of a longer product."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from kpredict.changes.patterns import Product, added, one_plus, product, without
from kpredict.changes.rewrites import ROUNDING, Rewrite
from kpredict.changes.terms import Term, is_near, same
from kpredict.changes.writing import Writer


def find(term: Term) -> Iterator[Rewrite]:
    if term.op not in ("mul", "div"):
        return
    whole = product(term)
    for matched in (*_gelus(whole), *_silus(whole)):
        what, call, rest = matched
        yield Rewrite(what, _sayer(call, rest), ROUNDING, rank=_rank(rest))


Found = tuple[str, tuple[str, Term, str], Product]


def _rank(rest: Product) -> int:
    return int(bool(rest.over or rest.under) or rest.number != 1.0)


def _sayer(call: tuple[str, Term, str], rest: Product) -> Callable[[Writer], str]:
    name, x, options = call

    def say(w: Writer) -> str:
        text = f"{w.functional(name)}({w.say(x)}{options})"
        for factor in rest.over:
            text += f" * {w.atom(factor)}"
        for factor in rest.under:
            text += f" / {w.atom(factor)}"
        return text if rest.number == 1.0 else f"{rest.number!r} * {text}"

    return say


def _gelus(whole: Product) -> Iterator[Found]:
    """`0.5 · x · (1 + erf(x / √2))`, or `1 + tanh(√(2/π) · (x + 0.044715 · x³))`."""
    for factor in whole.over:
        inner = one_plus(factor)
        if inner is None or inner.op not in ("erf", "tanh"):
            continue
        x = _erf_of(inner["self"]) if inner.op == "erf" else _tanh_of(inner["self"])
        rest = without(whole.over, factor, x) if x is not None else None
        if x is None or rest is None:
            continue
        number = whole.number / 0.5
        number = 1.0 if math.isclose(number, 1.0) else number
        options = "" if inner.op == "erf" else ', approximate="tanh"'
        yield "GELU", ("gelu", x, options), Product(number, rest, whole.under)


def _erf_of(u: Term) -> Term | None:
    """x of `x / √2`."""
    found = product(u)
    if len(found.over) == 1 and not found.under and is_near(found.number, math.sqrt(0.5)):
        return found.over[0]
    return None


def _tanh_of(u: Term) -> Term | None:
    """x of `√(2/π) · (x + 0.044715 · x³)`, the bracket factored out or not."""
    found = product(u)
    if found.under or not is_near(found.number, math.sqrt(2 / math.pi)):
        return None
    if len(found.over) == 1:
        for x, cubic in added(found.over[0]):
            if _is_power(cubic, x, 3):
                return x
    if len(found.over) == 2:
        for x, bracket in (found.over, found.over[::-1]):
            inner = one_plus(bracket)
            if inner is not None and _is_power(inner, x, 2):
                return x
    return None


def _is_power(term: Term, x: Term, n: int) -> bool:
    """Whether a term is `0.044715 · xⁿ`."""
    found = product(term, powers=True)
    return (
        is_near(found.number, 0.044715)
        and not found.under
        and len(found.over) == n
        and all(same(f, x) for f in found.over)
    )


def _silus(whole: Product) -> Iterator[Found]:
    """`x · sigmoid(x)`, or `x / (1 + exp(-x))`."""
    for factor in whole.over:
        if factor.op == "sigmoid":
            rest = without(whole.over, factor, factor["self"])
            if rest is not None:
                product_ = Product(whole.number, rest, whole.under)
                yield "SiLU", ("silu", factor["self"], ""), product_
    for factor in whole.under:
        inner = one_plus(factor)
        if inner is None or inner.op != "exp" or inner["self"].op != "neg":
            continue
        x = inner["self"]["self"]
        over, under = without(whole.over, x), without(whole.under, factor)
        if over is not None and under is not None:
            yield "SiLU", ("silu", x, ""), Product(whole.number, over, under)
