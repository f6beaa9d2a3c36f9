"""Evaluates the expressions of one function to Terms, as they stand, statement after statement.

Used by `reading`, which keeps the environment: what each name is bound to at each place.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from kpredict.changes.names import Names, is_self
from kpredict.changes.terms import Term, binary, const, is_library, is_method, operation
from kpredict.source.dotted import dotted


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """What a name holds from one statement on. `statement` made it, if it is a plain assignment;
    None for parameters, loops, and where several ways meet. `previous` is what it held before."""

    name: str
    term: Term
    statement: ast.stmt | None = None
    previous: Binding | None = None


Env = dict[str, Binding]
_COMPARED: dict[type[ast.cmpop], str] = {ast.Eq: "eq", ast.NotEq: "ne"}
_ATTRIBUTES = ("T", "mT", "values", "dtype")
_NUMBERS = {
    "math.pi": math.pi, "torch.pi": math.pi, "numpy.pi": math.pi, "math.inf": math.inf,
    "torch.inf": math.inf, "numpy.inf": math.inf, "math.e": math.e,
}  # fmt: skip
_SCALAR = {"math.sqrt": "root", "numpy.sqrt": "root", "math.exp": "exp", "math.log": "log",
           "math.pow": "pow", "torch.tensor": "contiguous"}  # fmt: skip
PURE = frozenset(
    "size numel dim len float int bool stride range isinstance ndimension finfo sqrt arange "
    "is_contiguous element_size tuple list min max".split()
)


@dataclass(slots=True)
class Evaluator:
    """`bindings` says, for each name that is read, what it was then; `terms` what each expression
    is; `mutate` is told of every expression that is changed in place."""

    names: Names
    owner: str
    env: Env
    mutate: Callable[[ast.expr], None]
    assigned: frozenset[str] = frozenset()  # dotted attributes that the function sets
    bindings: dict[ast.Name, Binding | None] = field(default_factory=dict)
    terms: dict[ast.expr, Term] = field(default_factory=dict)
    captured: set[str] = field(default_factory=set)

    def evaluate(self, node: ast.expr) -> Term:
        term = self._term(node)
        self.terms[node] = term
        return term

    def _term(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=value):
                return const(node, value)
            case ast.Name(ctx=ast.Load()):
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.UnaryOp(op=op, operand=operand):
                inner = self.evaluate(operand)
                name = {ast.USub: "neg", ast.Invert: "logical_not"}.get(type(op), "")
                return operation(node, name, [inner], {}) or Term(node, "opaque")
            case ast.BinOp(left=left, right=right):
                a, b = self.evaluate(left), self.evaluate(right)
                return binary(node, a, b) or Term(node, "opaque")
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                operands = [self.evaluate(left), self.evaluate(right)]
                return operation(node, _COMPARED[type(op)], operands, {}) or Term(node, "opaque")
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                terms = [self.evaluate(e) for e in elements]
                if terms and all(t.is_const for t in terms):
                    return const(node, tuple(t.value for t in terms))
                return Term(node, "tuple", {str(i): t for i, t in enumerate(terms)})
            case ast.Subscript(value=value, slice=index):
                return self._subscript(node, value, index)
            case ast.Call():
                return self._call(node)
            case (
                ast.Lambda()
                | ast.ListComp()
                | ast.SetComp()
                | ast.DictComp()
                | (ast.GeneratorExp())
            ):
                self.captured |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                return Term(node, "opaque")
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.evaluate(value)
                self.captured.add(name)
                self.env[name] = Binding(name, Term(node, "opaque"))
                return Term(node, "opaque")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child)
        return Term(node, "opaque")

    def _name(self, node: ast.Name) -> Term:
        bound = self.env.get(node.id)
        self.bindings[node] = bound
        if bound is not None:
            return bound.term
        given = self.names.constants.get(node.id)
        if given is not None:
            value = Evaluator(self.names, "", {}, lambda _: None).evaluate(given)
            if value.is_const:
                return const(node, value.value)
        return Term(node, "leaf", key=(node.id, 0))

    def _path(self, node: ast.expr) -> str:
        """The library path of an expression, if no variable of the function hides the import."""
        first = dotted(node).split(".")[0]
        return "" if first in self.env else self.names.path(node)

    def _attribute(self, node: ast.Attribute) -> Term:
        path = self._path(node)
        if path in _NUMBERS:
            return const(node, _NUMBERS[path])
        if path:
            return const(node, path)  # torch.float32
        inner = self.evaluate(node.value)
        name = dotted(node)
        if node.attr in _ATTRIBUTES:
            return operation(node, node.attr, [inner], {}) or Term(node, "opaque")
        if inner.op == "leaf" and name and name not in self.assigned and inner.key is not None:
            return Term(node, "leaf", key=(f"{inner.key[0]}.{node.attr}", inner.key[1]))
        return Term(node, "opaque")

    def _subscript(self, node: ast.Subscript, value: ast.expr, index: ast.expr) -> Term:
        inner = self.evaluate(value)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        terms = [self.evaluate(p) for p in parts if not isinstance(p, ast.Slice)]
        for p in (p for p in parts if isinstance(p, ast.Slice)):
            for bound in (p.lower, p.upper, p.step):
                if bound is not None:
                    self.evaluate(bound)
        if inner.op == "max" and len(terms) == 1 and terms[0].value == 0 and terms[0].is_number:
            return Term(node, "values", {"self": inner})
        new = [i for i, p in enumerate(parts) if isinstance(p, ast.Constant) and p.value is None]
        if len(new) == 1:
            others = [p for i, p in enumerate(parts) if i != new[0]]
            if all(_is_whole(p) for p in others):
                at = new[0]
                ellipsis = [i for i, p in enumerate(parts) if isinstance(p, ast.Constant)
                            and p.value is ...]  # fmt: skip
                dim = at - len(parts) if ellipsis and ellipsis[0] < at else at
                return Term(node, "unsqueeze", {"self": inner, "dim": const(index, dim)})
        if len(terms) == len(parts) == 2:
            return Term(node, "pick", {"self": inner, "0": terms[0], "1": terms[1]})
        return Term(node, "slice", {"self": inner}, value=ast.unparse(index))

    def _call(self, node: ast.Call) -> Term:
        function = node.func
        path = self._path(function)
        receiver = None
        if not path and isinstance(function, ast.Attribute):
            receiver = self.evaluate(function.value)
        elif not path and not isinstance(function, ast.Name):
            self.evaluate(function)
        operands = [self.evaluate(a) for a in node.args]
        keywords = {k.arg or "**": self.evaluate(k.value) for k in node.keywords}
        if any(isinstance(a, ast.Starred) for a in node.args) or "**" in keywords:
            return Term(node, "opaque")
        if "out" in keywords:
            self.mutate(next(k.value for k in node.keywords if k.arg == "out"))
            return Term(node, "opaque")
        if path:
            return self._library(node, path, operands, keywords)
        if isinstance(function, ast.Name):
            if function.id == "float" and len(operands) == 1 and not keywords:
                return _infinity(node, operands[0])
            return Term(node, "opaque")
        if receiver is None or not isinstance(function, ast.Attribute):
            return Term(node, "opaque")
        if is_self(function.value):
            return self._module(node, function.attr, operands, keywords)
        return self._method(node, function, receiver, operands, keywords)

    def _method(
        self, node: ast.Call, function: ast.Attribute, receiver: Term, operands: list[Term],
        keywords: dict[str, Term],
    ) -> Term:  # fmt: skip
        name = function.attr
        if name.endswith("_") and not name.endswith("__"):
            self.mutate(function.value)
            return Term(node, "opaque")
        if name == "where" and len(operands) == 2:
            operands = [operands[0], receiver, operands[1]]
        else:
            operands = [receiver, *operands]
        if name in ("view", "reshape"):
            return Term(node, "view", {"self": receiver})
        if not is_method(name) or name in _ATTRIBUTES or name == "one_hot":
            return Term(node, "opaque")
        return operation(node, name, operands, keywords) or Term(node, "opaque")

    def _library(
        self, node: ast.Call, path: str, operands: list[Term], keywords: dict[str, Term]
    ) -> Term:
        where, _, name = path.rpartition(".")
        if path in _SCALAR:
            found = operation(node, _SCALAR[path], operands, keywords)
            if found is not None and found.op == "contiguous" and operands[0].is_number:
                return const(node, operands[0].value)  # torch.tensor(0.5)
            if found is not None and (found.is_const or found.op == "root"):
                return found  # of a number, as `math.sqrt(q.size(-1))`
            return Term(node, "opaque")
        if path == "torch.einsum" and len(operands) == 3 and not keywords:
            parts = {"self": operands[1], "other": operands[2]}
            return Term(node, "einsum", parts, value=operands[0].value)
        if path == "torch.ones" or path == "torch.full":
            return Term(node, name, {str(i): t for i, t in enumerate(operands)})
        if name.endswith("_") and node.args:
            self.mutate(node.args[0])
        if not is_library(where, name):
            return Term(node, "opaque")
        return operation(node, name, operands, keywords) or Term(node, "opaque")

    def _module(
        self, node: ast.Call, name: str, operands: list[Term], keywords: dict[str, Term]
    ) -> Term:
        """`self.drop(x)`, where the constructor says `self.drop = nn.Dropout(...)`."""
        made = self.names.made.get((self.owner, name))
        if not isinstance(made, ast.Call) or len(operands) != 1 or keywords:
            return Term(node, "opaque")
        path = self.names.path(made.func)
        if path == "torch.nn.Dropout":
            module = Term(node.func, "leaf", key=(f"self.{name}", 0))
            return Term(node, "dropout", {"self": operands[0], "module": module})
        if path == "torch.nn.Softmax":
            given = [*made.args, *(k.value for k in made.keywords if k.arg == "dim")]
            if len(given) == 1:
                dim = Evaluator(self.names, "", {}, lambda _: None).evaluate(given[0])
                if dim.is_number:
                    return Term(node, "softmax", {"self": operands[0], "dim": dim})
        return Term(node, "opaque")


def _infinity(node: ast.Call, operand: Term) -> Term:
    if operand.is_const and isinstance(operand.value, str):
        try:
            return const(node, float(operand.value))
        except ValueError:
            pass
    return const(node, float(operand.value)) if operand.is_number else Term(node, "opaque")


def _is_whole(node: ast.expr) -> bool:
    """`:` or `...` in an index."""
    if isinstance(node, ast.Slice):
        return node.lower is None and node.upper is None and node.step is None
    return isinstance(node, ast.Constant) and node.value is ...
