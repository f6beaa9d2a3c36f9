"""Masks over attention scores: filled in, chosen by `where`, or added; and the causal one.

In: the terms of scores and masks. Out: a Mask, and whether the source shows that it leaves exactly
the lower triangle: made by `tril`, `triu` or both of them negated, here or by the constructor.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass

from kpredict.changes.expressions import Evaluator
from kpredict.changes.patterns import added, cast
from kpredict.changes.reading import Reading
from kpredict.changes.terms import Term
from kpredict.changes.writing import Writer


@dataclass(frozen=True, slots=True)
class Mask:
    """Where to look (`keep`) or not to (`drop`), or what to add; `fill` is what is filled in."""

    term: Term
    how: str
    fill: float = -math.inf


def peel(scores: Term, is_scores: Callable[[Term], bool]) -> tuple[Term, Mask] | None:
    """The scores before a mask was laid over them, and the mask. `is_scores` knows the scores from
    what is added to them."""
    if scores.op == "masked_fill" and _is_low(scores.get("value")):
        return scores["self"], Mask(scores["mask"], "drop", _fill(scores["value"]))
    if scores.op == "where":
        yes, no = scores["self"], scores["other"]
        if _is_low(no):
            return yes, Mask(scores["condition"], "keep", _fill(no))
        if _is_low(yes):
            return no, Mask(scores["condition"], "drop", _fill(yes))
    for rest, mask in added(scores):
        if is_scores(_peeled(rest, is_scores)):
            return rest, Mask(mask, "add")
    found = cast(scores)
    if found is not None and found[1] == "float32":
        inner = peel(found[0], is_scores)
        return inner or None
    return None


def _peeled(term: Term, is_scores: Callable[[Term], bool]) -> Term:
    while (found := peel(term, is_scores)) is not None:
        term = found[0]
    return term


def _fill(term: Term) -> float:
    return float(term.value) if term.is_number else -1e30


def _is_low(term: Term | None) -> bool:
    """Minus infinity, a large negative number, or the least of a dtype."""
    if term is None:
        return False
    if term.is_number:
        return bool(term.value <= -1e4)
    text = ast.unparse(term.node) if isinstance(term.node, ast.Attribute) else ""
    return text.endswith(".min") and "finfo(" in text


def kept(mask: Mask, w: Writer) -> str:
    """Where to look, as an expression."""
    term = mask.term
    if mask.how == "keep":
        return w.say(term)
    if term.op == "eq" and term["other"].is_number and term["other"].value == 0:
        return f"{w.atom(term['self'])} != 0"
    if term.op == "logical_not":
        return w.say(term["self"])
    return f"~{w.atom(term)}"


def is_causal(mask: Mask, reading: Reading) -> bool:
    """Whether the source shows that a mask leaves exactly the lower triangle."""
    found = _triangle(mask.term, reading)
    if mask.how == "add":
        return found == "low"
    return found == ("lower" if mask.how == "keep" else "upper")


def _triangle(term: Term, reading: Reading, depth: int = 12) -> str | None:
    """"lower": true on and below the diagonal; "upper": true above it; "low": minus infinity above
    it and 0 elsewhere."""  # fmt: skip
    if depth == 0:
        return None
    if term.op == "tril" and term.constant("diagonal", 0) == 0 and term["self"].op == "ones":
        return "lower"
    if term.op == "triu" and term.constant("diagonal", 0) == 1:
        inner = term["self"]
        if inner.op == "ones":
            return "upper"
        fill = inner.get("1") if inner.op == "full" else None
        return "low" if fill is not None and fill.value == -math.inf else None
    if term.op in ("eq", "ne") and term["other"].is_const and term["other"].value in (0, 1):
        inside = _triangle(term["self"], reading, depth - 1)
        turned = (term["other"].value == 0) == (term.op == "eq")
        return _turned(inside) if turned else inside
    if term.op == "logical_not":
        return _turned(_triangle(term["self"], reading, depth - 1))
    if term.op == "slice" and not _from_zero(term.node):
        return None
    if term.op in ("bool", "view", "unsqueeze", "slice", "to", "type_as", "float"):
        return _triangle(term["self"], reading, depth - 1)
    if term.op == "leaf" and term.key is not None and term.key[0].startswith("self."):
        made = reading.names.made.get((reading.owner, term.key[0].removeprefix("self.")))
        if made is not None:
            inner = Evaluator(reading.names, "", {}, lambda _: None).evaluate(made)
            return _triangle(inner, reading, depth - 1)
    return None


def _turned(triangle: str | None) -> str | None:
    return {"lower": "upper", "upper": "lower"}.get(triangle or "")


def _from_zero(node: ast.expr) -> bool:
    """Whether an index takes a leading part of each dim: `[:, :, :T, :T]`."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(p, ast.Slice) and p.lower is None and p.step is None)
        or (isinstance(p, ast.Constant) and p.value in (None, ...))
        for p in parts
    )
