"""Updates one array at a time: a loop of in-place arithmetic becomes calls of torch._foreach_*.

`for p in model.parameters(): p -= lr * p.grad` launches for every parameter; one foreach call takes
them all. Only loops whose whole body is in-place arithmetic with numbers from outside the loop,
with the loop's own arrays and their attributes; a condition on an array may leave some out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kpredict.changes.change import Alternatives, Change, Edit, Kind
from kpredict.changes.reading import Reading
from kpredict.changes.rewrites import ROUNDING
from kpredict.changes.writing import stands_alone

_AUGMENTED: Mapping[type[ast.operator], str] = {
    ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_",
}  # fmt: skip
_PAIRED = ("addcmul_", "addcdiv_")


def _opposite(test: str) -> str:
    if test.endswith(" is None") and test.count(" ") == 2:
        return test.replace(" is None", " is not None")
    return f"not ({test})"


class _NotSo(Exception):
    """A loop that does something else."""


def find(reading: Reading) -> Iterator[Alternatives]:
    torch = reading.names.spell("torch")
    for s in reading.blocks:
        if isinstance(s, ast.For) and not s.orelse and torch and stands_alone(s, reading):
            try:
                lines = _Loop(reading, s, torch).rewritten()
            except _NotSo:
                continue
            start, end = reading.span(s)
            text = f"\n{' ' * s.col_offset}".join(lines)
            yield (
                Change(
                    Kind.OPTIMIZER, f"update loop → {_called(lines)}",
                    s.lineno, s.end_lineno or s.lineno, (Edit(start, end, text),), ROUNDING,
                    reading.name,
                ),
            )  # fmt: skip


def _called(lines: list[str]) -> str:
    """`torch._foreach_mul_, torch._foreach_add_`"""
    calls = [line.partition("(")[0] for line in lines if "._foreach_" in line.partition("(")[0]]
    return ", ".join(dict.fromkeys(calls))


@dataclass(slots=True)
class _Loop:
    """One loop: `lists` names the list of each of its variables, `known` what other names in its
    body stand for."""

    reading: Reading
    node: ast.For
    torch: str
    lists: dict[str, str] = field(default_factory=dict)
    known: dict[str, ast.expr] = field(default_factory=dict)

    def rewritten(self) -> list[str]:
        """The statements in the loop's place."""
        sources = self._sources()
        if self._read_outside():
            raise _NotSo
        body, condition = self._body()
        if condition and len(sources) > 1:
            raise _NotSo
        lines = []
        for name, source in sources.items():
            listed = f"list({source})"
            if condition:
                listed = f"[{name} for {name} in {source} if {condition}]"
            lines.append(f"{self.lists[name]} = {listed}")
        calls = [call for s in body for call in self._statement(s)]
        if not calls:
            raise _NotSo
        return [*lines, *calls]

    def _read_outside(self) -> bool:
        """Whether something else may read what the loop leaves in its variables."""
        mine = set(ast.walk(self.node))
        others = {
            n
            for other in ast.walk(self.reading.node)
            if isinstance(other, ast.For) and other not in mine and self._names(other.target)
            and self.node not in set(ast.walk(other))
            for n in ast.walk(other)
        }  # fmt: skip
        return any(n not in mine and n not in others for n in self._names(self.reading.node))

    def _names(self, node: ast.AST) -> list[ast.Name]:
        """Where a node names a variable of the loop."""
        return [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in self.lists]

    def _sources(self) -> dict[str, str]:
        """What each variable runs over."""
        target, over = self.node.target, self.node.iter
        match target, over:
            case ast.Name(id=name), _:
                found = {name: over}
            case ast.Tuple(elts=names), ast.Call(func=ast.Name(id="zip"), args=args, keywords=[]):
                if len(names) != len(args) or not all(isinstance(n, ast.Name) for n in names):
                    raise _NotSo
                found = {n.id: a for n, a in zip(names, args, strict=True)
                         if isinstance(n, ast.Name)}  # fmt: skip
            case _:
                raise _NotSo
        used = {n.id for n in ast.walk(self.reading.node) if isinstance(n, ast.Name)}
        for name in found:
            listed = f"{name}s"
            while listed in used:
                listed += "_"
            self.lists[name] = listed
        return {name: self.reading.segment(node) for name, node in found.items()}

    def _body(self) -> tuple[list[ast.stmt], str]:
        """The statements that run for each array, and for which arrays."""
        body = self.node.body
        match body[0]:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]):
                return body[1:], _opposite(self._asked(test))
            case ast.If(test=test, body=inner, orelse=[]) if len(body) == 1:
                return inner, self._asked(test)
        return body, ""

    def _asked(self, test: ast.expr) -> str:
        if any(isinstance(n, ast.Call) for n in ast.walk(test)):
            raise _NotSo
        return self.reading.segment(test)

    def _statement(self, s: ast.stmt) -> Iterator[str]:
        match s:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._arrays(value)  # another name for `p.grad`
                self.known[name] = value
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _AUGMENTED:
                yield self._call(self._arrays(target), _AUGMENTED[type(op)], [value], {})
            case ast.Expr(value=ast.Call() as call):
                yield from self._chain(call)
            case ast.Pass():
                pass
            case _:
                raise _NotSo

    def _chain(self, call: ast.Call) -> Iterator[str]:
        """`p.mul_(d).add_(q)`: one call after the other on the same arrays."""
        links: list[ast.Call] = []
        node: ast.expr = call
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            links.insert(0, node)
            node = node.func.value
        arrays = self._arrays(node)
        for link in links:
            assert isinstance(link.func, ast.Attribute)
            keywords = {k.arg or "": k.value for k in link.keywords}
            yield self._call(arrays, link.func.attr, link.args, keywords)

    def _call(
        self, arrays: str, method: str, args: list[ast.expr], keywords: Mapping[str, ast.expr]
    ) -> str:
        given = self._given(method, args, dict(keywords))
        return f"{self.torch}._foreach_{method}({', '.join([arrays, *given])})"

    def _given(self, method: str, args: list[ast.expr], keywords: dict[str, ast.expr]) -> list[str]:
        """The arguments of the foreach call."""
        if method in ("add_", "sub_") and len(args) == 1 and keywords.keys() <= {"alpha"}:
            if self._is_scalar(args[0]) and not keywords:
                return [self._scalar(args[0])]
            other, scale = self._scaled(args[0])
            factors = [self._atom(a) for a in keywords.values()] + scale
            return [other, f"alpha={' * '.join(factors)}"] if factors else [other]
        if method in ("mul_", "div_") and len(args) == 1 and not keywords:
            if self._is_scalar(args[0]):
                return [self._scalar(args[0])]
            return [self._arrays(args[0])]
        if method == "copy_" and len(args) == 1 and not keywords:
            return [self._arrays(args[0])]
        if method == "zero_" and not args and not keywords:
            return []
        if method == "lerp_":
            values = [*args, *(keywords[k] for k in ("end", "weight") if k in keywords)]
            if len(values) == 2:
                return [self._arrays(values[0]), self._scalar(values[1])]
        if method in _PAIRED and len(args) == 2 and keywords.keys() <= {"value"}:
            pair = [self._arrays(a) for a in args]
            return [*pair, *(f"value={self._scalar(v)}" for v in keywords.values())]
        raise _NotSo

    def _scaled(self, node: ast.expr) -> tuple[str, list[str]]:
        """Arrays times numbers: the arrays, and the numbers."""
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                if self._is_scalar(left):
                    other, scale = self._scaled(right)
                    return other, [self._atom(left), *scale]
                other, scale = self._scaled(left)
                return other, [*scale, self._atom(right)]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                other, scale = self._scaled(inner)
                return other, ["-1", *scale]
        return self._arrays(node), []

    def _arrays(self, node: ast.expr) -> str:
        """A list of arrays: a variable of the loop, or an attribute of it for each."""
        if isinstance(node, ast.Name) and node.id in self.known:
            return self._arrays(self.known[node.id])
        if isinstance(node, ast.Name) and node.id in self.lists:
            return self.lists[node.id]
        root = node
        while isinstance(root, ast.Attribute) and root.attr in ("grad", "data"):
            root = root.value
        if root is not node and isinstance(root, ast.Name) and root.id in self.lists:
            return f"[{self.reading.segment(node)} for {root.id} in {self.lists[root.id]}]"
        raise _NotSo

    def _is_scalar(self, node: ast.expr) -> bool:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return not names & {*self.lists, *self.known} and not any(
            isinstance(n, ast.Call | ast.NamedExpr | ast.Await) for n in ast.walk(node)
        )

    def _scalar(self, node: ast.expr) -> str:
        if not self._is_scalar(node):
            raise _NotSo
        return " ".join(self.reading.segment(node).split())

    def _atom(self, node: ast.expr) -> str:
        text = self._scalar(node)
        simple = isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.UnaryOp)
        return text if simple else f"({text})"
