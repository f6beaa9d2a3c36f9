"""What several patterns are made of: products of factors, reductions that keep their dim, casts."""

from __future__ import annotations

from dataclasses import dataclass

from kpredict.changes.terms import CASTS, Term, is_near, same


@dataclass(frozen=True, slots=True)
class Product:
    """`number * over… / under…`"""

    number: float
    over: tuple[Term, ...] = ()
    under: tuple[Term, ...] = ()


def product(term: Term, powers: bool = False) -> Product:
    """The factors of a term; `powers` takes whole powers of a value as that many factors."""
    if term.is_number:
        return Product(float(term.value))
    if term.op in ("mul", "div"):
        a, b = product(term["self"], powers), product(term["other"], powers)
        if term.op == "mul":
            return Product(a.number * b.number, a.over + b.over, a.under + b.under)
        if b.number:
            return Product(a.number / b.number, a.over + b.under, a.under + b.over)
    if term.op == "neg":
        a = product(term["self"], powers)
        return Product(-a.number, a.over, a.under)
    if term.op == "reciprocal":
        a = product(term["self"], powers)
        if a.number:
            return Product(1 / a.number, a.under, a.over)
    if powers and term.op in ("pow", "square"):
        n = 2 if term.op == "square" else term.constant("exponent")
        if n in (2, 3):
            a = product(term["self"], powers)
            return Product(a.number ** int(n), a.over * int(n), a.under * int(n))
    return Product(1.0, (term,))


def without(factors: tuple[Term, ...], *removed: Term) -> tuple[Term, ...] | None:
    """The factors less those given, each once; None when one is not there."""
    rest = list(factors)
    for r in removed:
        at = next((i for i, f in enumerate(rest) if same(f, r)), None)
        if at is None:
            return None
        del rest[at]
    return tuple(rest)


def reduction(term: Term, *ops: str) -> tuple[Term, Term] | None:
    """(what is reduced, dim) of a reduction that keeps its dim, by `keepdim` or by `unsqueeze`."""
    if term.op == "values":
        return reduction(term["self"], *(o for o in ops if o == "max"))
    if term.op in ops and term.constant("keepdim") is True:
        dim = term.get("dim")
        return None if dim is None else (term["self"], dim)
    if term.op == "unsqueeze":
        inner = term["self"]
        inner = inner["self"] if inner.op == "values" else inner
        if inner.op in ops and not inner.constant("keepdim", False):
            dim = inner.get("dim")
            if dim is not None and dim.is_number and same(dim, term.get("dim")):
                return inner["self"], dim
    return None


def square(term: Term) -> Term | None:
    """What is squared."""
    if term.op == "square" or (term.op == "pow" and is_near(term.get("exponent"), 2)):
        return term["self"]
    if term.op == "mul" and same(term["self"], term["other"]):
        return term["self"]
    return None


def added(term: Term) -> list[tuple[Term, Term]]:
    """The two sides of an addition, both ways round."""
    if term.op != "add":
        return []
    a, b = term["self"], term["other"]
    return [(a, b), (b, a)]


def one_plus(term: Term) -> Term | None:
    """x of `1 + x`."""
    return next((x for one, x in added(term) if is_near(one, 1.0)), None)


def cast(term: Term) -> tuple[Term, str | Term] | None:
    """(what is cast, to which): the name of a dtype, or the term whose dtype it takes."""
    if term.op in CASTS:
        return term["self"], CASTS[term.op]
    if term.op == "type_as":
        return term["self"], term["other"]
    if term.op == "to":
        wanted = term.get("dtype")
        if wanted is not None and wanted.op == "dtype":
            return term["self"], wanted["self"]
        if wanted is not None and isinstance(wanted.value, str):
            name = wanted.value.removeprefix("torch.")
            names = {"float": "float32", "half": "float16", "double": "float64"}
            return term["self"], names.get(name, name)
    return None


def widened(term: Term) -> Term | None:
    """What an array was before `.float()`."""
    found = cast(term)
    return found[0] if found is not None and found[1] == "float32" else None


def narrowed(term: Term, to: Term) -> Term | None:
    """What was cast to the dtype of `to`."""
    found = cast(term)
    if found is None or isinstance(found[1], str):
        return None
    return found[0] if same(found[1], to) else None
