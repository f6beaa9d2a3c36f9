"""What a file gives to torch.compile, read from its tree: functions, and names that mean one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Compilation:
    """A function that is compiled, or (`node` None) a name bound to one, with the options that are
    constants."""

    node: FunctionNode | None
    options: Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Compilations:
    """`nodes` are the file's functions by qualified name, `all_nodes` its whole tree."""

    nodes: Sequence[tuple[str, FunctionNode]]
    all_nodes: Sequence[ast.AST]

    @cached_property
    def functions(self) -> Mapping[str, Compilation]:
        """By qualified name: compiled by decorator, by call, or a module's forward when the class
        or an object of it is compiled in this file."""
        out: dict[str, Compilation] = {}
        for name, n in self.nodes:
            for d in n.decorator_list:
                if _is_compile(d.func if isinstance(d, ast.Call) else d):
                    out[name] = Compilation(n, _constants(d) if isinstance(d, ast.Call) else {})
        nodes = dict(self.nodes)
        for call in self.all_nodes:
            given = _given(call)
            if given is None or not isinstance(call, ast.Call):
                continue
            what, options = given
            for word in dict.fromkeys((what, self._classes.get(what, what))):
                near = [f"{s}.{word}" if s else word for s in self._scopes(call.lineno)]
                for name in (*near, f"{word}.forward"):
                    if name in nodes:
                        out.setdefault(name, Compilation(nodes[name], options))
                        break
        return out

    @cached_property
    def _names(self) -> Mapping[tuple[str, str], Compilation]:
        """By the function a name is known in ("" for the module), and the name."""
        out: dict[tuple[str, str], Compilation] = {}
        scopes = {"", *(q for q, _ in self.nodes)}
        for name, c in self.functions.items():
            scope, _, last = name.rpartition(".")
            if scope in scopes and c.node is not None and c.node.decorator_list:
                out[scope, last] = c
        for n in self.all_nodes:
            given = _given(n.value) if isinstance(n, ast.Assign) else None
            if given is not None and isinstance(n, ast.Assign):
                scope = next(self._scopes(n.lineno))
                for t in n.targets:
                    if isinstance(t, ast.Name):
                        out[scope, t.id] = Compilation(None, given[1])
        return out

    def name_at(self, name: str, line: int) -> Compilation | None:
        """What a plain name means at a line, when it is compiled: the innermost function's own."""
        found = (self._names.get((s, name)) for s in self._scopes(line))
        return next((c for c in found if c is not None), None)

    @cached_property
    def _classes(self) -> Mapping[str, str]:
        """`model = Net(…)` → {"model": "Net"}."""
        return {
            n.targets[0].id: n.value.func.id
            for n in self.all_nodes
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
            and isinstance(n.targets[0], ast.Name) and isinstance(n.value.func, ast.Name)
        }  # fmt: skip

    def _scopes(self, line: int) -> Iterator[str]:
        """Qualified names of the functions around a line, innermost first, then "" ."""
        around = [(n.lineno, q) for q, n in self.nodes if n.lineno <= line <= (n.end_lineno or 0)]
        yield from (q for _, q in sorted(around, reverse=True))
        yield ""


def _is_compile(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "compile" and (
        isinstance(node.value, ast.Name) and node.value.id == "torch"
    )  # fmt: skip


def _given(node: ast.AST) -> tuple[str, Mapping[str, object]] | None:
    """`torch.compile(f, dynamic=True)` or `torch.compile(dynamic=True)(f)` → ("f", the options).
    Of an object made in the call, its class; "" for what has no name."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    if _is_compile(node.func):
        options = _constants(node)
    elif isinstance(node.func, ast.Call) and _is_compile(node.func.func) and not node.func.args:
        options = _constants(node.func)
    else:
        return None
    first = node.args[0].func if isinstance(node.args[0], ast.Call) else node.args[0]
    return (first.id if isinstance(first, ast.Name) else ""), options


def _constants(call: ast.Call) -> Mapping[str, object]:
    """Keyword arguments that are constants; one of another kind is there, as None."""
    return {
        k.arg: k.value.value if isinstance(k.value, ast.Constant) else None
        for k in call.keywords
        if k.arg is not None
    }
