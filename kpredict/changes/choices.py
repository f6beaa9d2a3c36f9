"""An `if` that chooses one of two arrays → `torch.where`, so that nothing is read on the host.

`if cond: x = a else: x = b`, `if cond: x = a`, and `if cond: return a` before `return b`. Both
sides are then computed, so neither may do anything else: no calls but of PyTorch's functions.
"""

from __future__ import annotations

import ast
import re

from kpredict.changes.change import Edit
from kpredict.changes.reading import Reading
from kpredict.changes.terms import is_method

_NUMBERS = frozenset(("int", "bool", "range", "str", "round"))


def choice(s: ast.stmt, r: Reading) -> tuple[str, Edit] | None:
    """The condition, and the edit that puts `torch.where` in the place of an `if`; None for an `if`
    that does anything else than choose a value."""
    torch = r.names.spell("torch")
    if torch is None or not isinstance(s, ast.If):
        return None
    sides = _sides(s, r)
    if sides is None:
        return None
    head, yes, no, end = sides
    test = s.test
    sides_said = [_said(yes, r), _said(no, r)]
    if None in sides_said or isinstance(test, ast.BoolOp):
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, sides_said = test.operand, sides_said[::-1]
    condition = _without_reads(test, r)
    if not isinstance(test, ast.Compare) and not re.search(r"\.(any|all)\(\)$", condition):
        condition = f"({condition}).bool()"
    new = f"{head}{torch}.where({condition}, {', '.join(map(str, sides_said))})"
    return condition, Edit(r.span(s)[0], end, " ".join(new.split()))


Side = ast.expr | str


def _sides(s: ast.If, r: Reading) -> tuple[str, Side, Side, int] | None:
    """(what stands before the choice, value if true, value if false, where it ends)."""
    if len(s.body) != 1 or len(s.orelse) > 1:
        return None
    block = r.blocks[s]
    after = block[block.index(s) + 1 :]
    other = s.orelse[0] if s.orelse else None
    match s.body[0], other:
        case ast.Return(value=yes), ast.Return(value=no) if yes is not None and no is not None:
            return "return ", yes, no, r.span(s)[1]
        case ast.Return(value=yes), None if yes is not None and len(after) == 1:
            last = after[0]
            if isinstance(last, ast.Return) and last.value is not None:
                return "return ", yes, last.value, r.span(last)[1]
        case (
            ast.Assign(targets=[ast.Name(id=a)], value=yes),
            ast.Assign(targets=[ast.Name(id=c)], value=no),
        ) if a == c:
            return f"{a} = ", yes, no, r.span(s)[1]
        case ast.Assign(targets=[ast.Name(id=a)], value=yes), None:
            return f"{a} = ", yes, a, r.span(s)[1]
    return None


_COMPUTE = frozenset(
    "clamp clip clamp_min clamp_max relu sin cos floor ceil round sign norm view reshape flatten "
    "permute detach clone nan_to_num cumsum flip roll repeat index_select std prod any all isnan "
    "isinf isfinite min argmax argmin size lerp addcmul addcdiv".split()
)
_RANDOM = re.compile(r"rand|dropout|bernoulli|multinomial|normal|poisson")


def _said(side: Side, r: Reading) -> str | None:
    """A side of a choice; None for what cannot be computed in vain, or is no array."""
    if isinstance(side, str):
        return side
    if isinstance(side, ast.Constant | ast.Tuple | ast.List | ast.Dict | ast.Set):
        return None
    for n in ast.walk(side):
        if isinstance(n, ast.Await | ast.Yield | ast.NamedExpr):
            return None
        if isinstance(n, ast.Call):
            path = r.names.path(n.func)
            name = n.func.attr if isinstance(n.func, ast.Attribute) else ""
            if path:
                computes = path.startswith("torch.") and not _RANDOM.search(path)
            else:
                computes = is_method(name) or name in _COMPUTE
            if not computes or name.endswith("_"):
                return None
    return r.segment(side)


def _without_reads(node: ast.expr, r: Reading) -> str:
    """The text of an expression, `.item()` left out of it."""
    start, end = r.span(node)
    text = r.text[start:end]
    for a, b in sorted((item_span(n, r) for n in reads_in(node)), reverse=True):
        text = text[: a - start] + text[b - start :]
    return text


def reads_in(node: ast.AST) -> list[ast.Call]:
    """Calls of `.item()` whose result need not be a number of Python's."""
    numbers = {
        a
        for n in ast.walk(node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in _NUMBERS
        for a in n.args
    }
    return [
        n
        for n in ast.walk(node)
        if isinstance(n, ast.Call) and not n.args and not n.keywords and n not in numbers
        and isinstance(n.func, ast.Attribute) and n.func.attr == "item"
    ]  # fmt: skip


def item_span(call: ast.Call, r: Reading) -> tuple[int, int]:
    """Where `.item()` stands."""
    assert isinstance(call.func, ast.Attribute)
    return r.span(call.func.value)[1], r.span(call)[1]
