"""Python expressions → terms: what is computed, however it is spelled.

`x.softmax(-1)`, `torch.softmax(x, dim=-1)` and `F.softmax(x, -1)` are one term. Only operations of
the table below are understood; everything else is opaque: a value of which nothing is known but
where it comes from. Numbers are folded (`math.sqrt(2.0 / math.pi)` is a number).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

UNARY = "exp log sqrt rsqrt erf tanh sigmoid neg square abs log1p expm1 reciprocal float half"
UNARY += " root bfloat16 double long contiguous T mT t dtype values item"

_SIGNATURES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(UNARY.split(), ()),
    "sum": ("dim", "keepdim"), "mean": ("dim", "keepdim"), "amax": ("dim", "keepdim"),
    "max": ("dim", "keepdim"), "logsumexp": ("dim", "keepdim"),
    "var": ("dim", "unbiased", "keepdim"), "softmax": ("dim",), "log_softmax": ("dim",),
    "pow": ("exponent",), "add": ("other",), "sub": ("other",), "mul": ("other",),
    "div": ("other",), "matmul": ("other",), "bmm": ("other",), "mm": ("other",),
    "transpose": ("dim0", "dim1"), "unsqueeze": ("dim",), "squeeze": ("dim",),
    "gather": ("dim", "index"), "masked_fill": ("mask", "value"), "to": ("dtype",),
    "type_as": ("other",), "expand": (), "eq": ("other",), "ne": ("other",),
    "tril": ("diagonal",), "triu": ("diagonal",), "bool": (),
    "logical_not": (), "one_hot": ("num_classes",), "dropout": ("p", "training"),
    "where": ("condition", "other"),
}  # fmt: skip
_KEYWORDS = {"axis": "dim", "keepdims": "keepdim"}
_EXTRA: Mapping[str, frozenset[str]] = {
    "var": frozenset(("correction",)), "softmax": frozenset(("dtype",)),
    "log_softmax": frozenset(("dtype",)),
}  # fmt: skip
_ALIASES = {
    "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg",
    "swapaxes": "transpose", "swapdims": "transpose", "type": "to", "square_": "",
    "masked_fill_": "", "true_divide_": "", "int": "",
}  # fmt: skip
_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
    ast.MatMult: "matmul",
}  # fmt: skip
CASTS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}
_LIBRARIES = ("torch", "torch.nn.functional", "torch.special")


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value. `op` is one of the table's names, "const", "leaf" or "opaque".

    `args` are the operands by name, the first one "self". A leaf is a name or a chain of
    attributes and its `key` tells its versions apart: two leaves are the same value exactly when
    their keys are equal. `node` is the expression that computes it.
    """

    node: ast.expr
    op: str
    args: Mapping[str, Term] = field(default_factory=dict)
    value: Any = None
    key: tuple[str, int] | None = None

    def __getitem__(self, name: str) -> Term:
        return self.args[name]

    def get(self, name: str) -> Term | None:
        return self.args.get(name)

    def constant(self, name: str, default: Any = None) -> Any:
        """The value of an operand that is a constant; `default` when it is not given."""
        found = self.args.get(name)
        if found is None:
            return default
        return found.value if found.op == "const" else found

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    @property
    def is_number(self) -> bool:
        return self.op == "const" and isinstance(self.value, (int, float)) and (
            not isinstance(self.value, bool)
        )  # fmt: skip


def const(node: ast.expr, value: Any) -> Term:
    return Term(node, "const", value=value)


_ITSELF = frozenset("opaque slice view dropout".split())


def same(a: Term | None, b: Term | None) -> bool:
    """Whether two terms are surely one value; what is opaque equals only itself."""
    if a is None or b is None:
        return False
    if a is b:
        return True
    if a.op != b.op or a.op in _ITSELF:
        return False
    if a.op == "leaf":
        return a.key == b.key
    if a.op == "const":
        return bool(a.value == b.value)
    return (
        a.value == b.value
        and a.args.keys() == b.args.keys()
        and all(same(a.args[k], b.args[k]) for k in a.args)
    )


def is_near(term: Term | float | None, wanted: float) -> bool:
    """Whether a number is `wanted`, as people write it (1.41421 for a root of two)."""
    value = term.value if isinstance(term, Term) and term.is_number else term
    return isinstance(value, (int, float)) and math.isclose(value, wanted, rel_tol=5e-5)


def inside(term: Term) -> Iterator[Term]:
    """The term and all that it is made of."""
    yield term
    for a in term.args.values():
        yield from inside(a)


def operation(
    node: ast.expr, name: str, operands: list[Term], keywords: Mapping[str, Term]
) -> Term | None:
    """A call of the table's `name`, its operands by parameter; None if it is not understood."""
    name = _ALIASES.get(name, name)
    parameters = _SIGNATURES.get(name)
    if not name or parameters is None or not operands:
        return None
    first, *rest = operands
    if name == "where":
        if len(operands) != 3 or keywords:
            return None
        return Term(node, name, dict(zip(("condition", "self", "other"), operands, strict=True)))
    if len(rest) > len(parameters):
        return None
    args = {"self": first, **dict(zip(parameters, rest, strict=False))}
    for key, value in keywords.items():
        key = _KEYWORDS.get(key, key)
        if key in args or key not in (*parameters, *_EXTRA.get(name, ())):
            return None
        args[key] = value
    if name == "var" and "dim" in args and isinstance(args["dim"].value, bool):
        return None  # x.var(False): the first parameter was unbiased, of everything
    return _folded(node, name, args)


def binary(node: ast.BinOp, left: Term, right: Term) -> Term | None:
    name = _OPERATORS.get(type(node.op))
    if name is None:
        return None
    return operation(node, name, [left, right], {})


def _folded(node: ast.expr, name: str, args: Mapping[str, Term]) -> Term:
    """The operation, or its value when all operands are numbers."""
    values = [a.value for a in args.values() if a.is_number]
    if len(values) == len(args) and name in _FOLDED:
        try:
            return const(node, _FOLDED[name](*values))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            pass
    return Term(node, name, args)


_FOLDED: Mapping[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "pow": lambda a, b: a**b, "neg": lambda a: -a,
    "sqrt": math.sqrt, "root": math.sqrt, "exp": math.exp, "log": math.log,
    "rsqrt": lambda a: a**-0.5, "reciprocal": lambda a: 1 / a,
}  # fmt: skip


def is_library(path: str, name: str) -> bool:
    """Whether `path` (`torch.nn.functional`) is where PyTorch has functions of the table."""
    return path in _LIBRARIES and (name in _SIGNATURES or name in _ALIASES)


def is_method(name: str) -> bool:
    return name in _SIGNATURES or bool(_ALIASES.get(name))
