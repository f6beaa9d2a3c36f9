"""Attention by hand: `softmax(q @ kᵀ · scale + mask) @ v`, with dropout on the weights passed on.

A mask may be added, or fill with minus infinity where it says so. A mask that the source shows to
be the lower triangle becomes `is_causal=True`, so that no mask is read at all. Filling with a large
negative number is the same only where no row is masked out altogether, as under a causal mask.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kpredict.changes.masks import Mask, is_causal, kept, peel
from kpredict.changes.patterns import cast, product
from kpredict.changes.reading import Reading, Site
from kpredict.changes.rewrites import ROUNDING, Rewrite
from kpredict.changes.softmaxes import softmax
from kpredict.changes.terms import Term, is_near, same
from kpredict.changes.writing import CannotSay, Writer

_MASKED = f"{ROUNDING}; a row that is masked out altogether gives 0 and no longer NaN"


@dataclass(frozen=True, slots=True)
class Attention:
    q: Term
    k: Term
    v: Term
    number: float = 1.0
    over: tuple[Term, ...] = ()
    under: tuple[Term, ...] = ()
    masks: tuple[Mask, ...] = ()
    dropout: Term | None = None


def find(term: Term, site: Site) -> Iterator[Rewrite]:
    found = _attention(term, site.reading)
    if found is None:
        return
    causal = [m for m in found.masks if is_causal(m, site.reading)]
    note = ROUNDING if found.dropout is None else f"{ROUNDING}; other random numbers are dropped"
    if len(causal) == len(found.masks) == 1:
        bare = replace(found, masks=())
        yield Rewrite("attention", _Sayer(bare, site.reading, causal=True), note)
    if any(m.how != "add" and m.fill != -math.inf for m in found.masks):
        return
    if found.masks:
        filled = any(m.how != "add" for m in found.masks)
        note = note.replace(ROUNDING, _MASKED) if filled else note
    yield Rewrite("attention", _Sayer(found, site.reading), note, rank=len(causal))


def _attention(term: Term, reading: Reading) -> Attention | None:
    pair = _matmul(term)
    if pair is None:
        return None
    weights, v = pair
    dropout = None
    while weights.op == "dropout" or cast(weights) is not None:
        if weights.op == "dropout":
            if dropout is not None:
                return None
            dropout = weights
        weights = weights["self"]
    found = softmax(weights)
    if found is None or found.dim.value != -1:
        return None
    scores, masks = found.x, []
    while True:
        peeled = peel(scores, _has_scores)
        if peeled is None:
            break
        scores, mask = peeled
        masks.append(mask)
    whole = product(scores)
    products = [f for f in whole.over if _scores(f) is not None]
    if len(products) != 1:
        return None
    q, k = _scores(products[0]) or (term, term)
    over = tuple(f for f in whole.over if f is not products[0])
    if not all(_may_be_scalar(f, reading) for f in (*over, *whole.under)):
        return None
    return _with_scaled_q(
        Attention(q, k, v, whole.number, over, whole.under, tuple(masks), dropout), reading
    )


def _with_scaled_q(found: Attention, reading: Reading) -> Attention:
    """A scale on q or k is a scale of the scores."""
    for is_q in (True, False):
        factors = product(found.q if is_q else found.k)
        arrays = [f for f in factors.over if not _is_scalar(f, reading)]
        if len(arrays) == 1 and all(_is_scalar(f, reading) for f in factors.under):
            scalars = tuple(f for f in factors.over if f is not arrays[0])
            found = replace(
                found, q=arrays[0] if is_q else found.q, k=found.k if is_q else arrays[0],
                number=found.number * factors.number, over=found.over + scalars,
                under=found.under + factors.under,
            )  # fmt: skip
    return found


def _matmul(term: Term) -> tuple[Term, Term] | None:
    """(a, b) of `a @ b` over the last two dims."""
    if term.op in ("matmul", "bmm", "mm"):
        return term["self"], term["other"]
    if term.op == "einsum" and _contracts(term, -2):
        return term["self"], term["other"]
    return None


def _scores(term: Term) -> tuple[Term, Term] | None:
    """(q, k) of `q @ kᵀ`; k may be a term that is yet to be transposed (marked by `_turned`)."""
    if term.op == "einsum" and _contracts(term, -1):
        return term["self"], term["other"]
    pair = _matmul(term)
    if pair is None:
        return None
    q, turned = pair
    if turned.op == "mT" or (turned.op == "transpose" and _last_two(turned)):
        return q, turned["self"]
    return q, Term(turned.node, "transpose", {"self": turned})


def _has_scores(term: Term) -> bool:
    return any(_scores(f) is not None for f in product(term).over)


def _last_two(term: Term) -> bool:
    return {term.constant("dim0"), term.constant("dim1")} == {-1, -2}


def _contracts(term: Term, at: int) -> bool:
    """Whether an einsum is a batched matrix product over the last letter of the first array and
    the letter `at` of the second: `bid,bjd->bij` (-1), `bij,bjd->bid` (-2)."""
    equation = term.value.replace(" ", "") if isinstance(term.value, str) else ""
    inputs, _, out = equation.partition("->")
    a, _, b = inputs.partition(",")
    if not (a + b + out).isalpha() or min(len(a), len(b)) < 2:
        return False
    other = b[-1] if at == -2 else b[-2]
    return (
        a[:-2] == b[:-2]
        and a[-1] == b[at]
        and out == a[:-1] + other
        and len(set(a + b)) == len(a) + 1
    )


def _may_be_scalar(term: Term, reading: Reading) -> bool:
    """A number, or a name that may hold one: should it hold an array, the call says so."""
    if term.op in ("pow", "root"):
        return _may_be_scalar(term["self"], reading)
    return term.op == "leaf" or _is_scalar(term, reading)


def _is_scalar(term: Term, reading: Reading) -> bool:
    """Whether a factor is surely a Python number: made of sizes, or by the constructor."""
    if term.is_number:
        return True
    if term.op in ("pow", "root", "mul", "div"):
        return all(_is_scalar(a, reading) for a in term.args.values())
    node = term.node
    if term.op == "leaf" and term.key is not None and term.key[0].startswith("self."):
        made = reading.names.made.get((reading.owner, term.key[0].removeprefix("self.")))
        return made is not None and _is_number(made)
    return _is_size(node) is not None


def _is_number(node: ast.expr) -> bool:
    """An expression of a constructor that gives a number: a power, a root, arithmetic of names."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.BinOp(left=left, right=right, op=ast.Pow()):
            return _is_number(right) or _is_number(left)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) or _is_number(right)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
            return True
    return False


def _is_size(node: ast.expr) -> ast.expr | None:
    """The array of `x.size(-1)` or `x.shape[-1]`."""
    match node:
        case ast.Call(func=ast.Attribute(value=array, attr="size"), args=[_], keywords=[]):
            return array
        case ast.Subscript(value=ast.Attribute(value=array, attr="shape")):
            return array
    return None


def _is_default_scale(found: Attention, reading: Reading) -> bool:
    """Whether the scale is one over the root of the head's size, as `size(-1)` of q or k gives."""
    if found.number != 1.0 or len(found.over) + len(found.under) != 1:
        return False
    factor = (*found.over, *found.under)[0]
    wanted = -0.5 if found.over else 0.5
    root = "" if found.over else "root"
    if factor.op != root and not (factor.op == "pow" and is_near(factor.get("exponent"), wanted)):
        return False
    size = factor["self"].node
    array = _is_size(size)
    last = array is not None and ast.unparse(size).endswith(("size(-1)", "shape[-1]"))
    term = reading.terms.get(array) if array is not None else None
    return last and (same(term, found.q) or same(term, found.k))


@dataclass(frozen=True, slots=True)
class _Sayer:
    found: Attention
    reading: Reading
    causal: bool = False

    def __call__(self, w: Writer) -> str:
        f = self.found
        k = w.say(f.k) if f.k.op != "transpose" or "dim0" in f.k.args else (
            f"{w.atom(f.k['self'])}.transpose(-2, -1)")  # fmt: skip
        parts = [w.say(f.q), k, w.say(f.v)]
        if f.masks:
            parts.append(f"attn_mask={self._mask(w)}")
        if f.dropout is not None:
            parts.append(f"dropout_p={self._dropout(w, f.dropout)}")
        if self.causal:
            parts.append("is_causal=True")
        if not _is_default_scale(f, self.reading):
            parts.append(f"scale={self._scale(w)}")
        return f"{w.functional('scaled_dot_product_attention')}({', '.join(parts)})"

    def _scale(self, w: Writer) -> str:
        f = self.found
        over = [w.atom(t) if len(f.over) + len(f.under) > 1 else w.say(t) for t in f.over]
        text = " * ".join(([repr(f.number)] if f.number != 1.0 or not over else []) + over)
        return " / ".join([text, *(w.atom(t) for t in f.under)])

    def _mask(self, w: Writer) -> str:
        masks = self.found.masks
        if all(m.how == "add" for m in masks):
            return " + ".join(w.atom(m.term) if len(masks) > 1 else w.say(m.term) for m in masks)
        if any(m.how == "add" for m in masks):
            raise CannotSay
        said = [kept(m, w) for m in masks]
        return said[0] if len(said) == 1 else " & ".join(f"({s})" for s in said)

    def _dropout(self, w: Writer, term: Term) -> str:
        module = term.get("module")
        w.take(term)
        if module is not None:
            name = w.say(module)
            return f"{name}.p if {name}.training else 0.0"
        p = w.say(term["p"]) if "p" in term.args else "0.5"
        training = term.get("training")
        if training is None or training.value is True:
            return p
        return f"{p} if {w.say(training)} else 0.0"
