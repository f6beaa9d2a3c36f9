"""One operation by another: the edits that put a new expression in place of an old one.

In: a Site and how to say the new expression. Out: edits, which also take away assignments that
nothing needs any more; None when the new expression cannot be said at that place, because a
variable has another value by then or something would run twice or not at all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kpredict.changes.change import Edit
from kpredict.changes.expressions import PURE, Binding
from kpredict.changes.reading import Reading, Site
from kpredict.changes.terms import Term

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


@dataclass(slots=True)
class Writer:
    """Says terms as expressions at a site. `moved` are the expressions it took over as they are."""

    site: Site
    env: Mapping[str, Binding]
    moved: list[ast.expr] = field(default_factory=list)

    @property
    def names(self) -> Reading:
        return self.site.reading

    def functional(self, name: str) -> str:
        """`F.NAME`, as this file spells it."""
        spelled = self.names.names.functional(name)
        if spelled is None or spelled.split(".")[0] in self.env:
            raise CannotSay
        return spelled

    def say(self, term: Term) -> str:
        """The term's value as an expression, fit to be an argument. Raises CannotSay."""
        for name, bound in self.env.items():
            if bound.term is term or (term.op == "leaf" and bound.term.key == term.key):
                return name
        node = term.node
        if getattr(node, "end_col_offset", None) is None or not self._holds(node):
            raise CannotSay
        self.moved.append(node)
        text = self.names.segment(node)
        _parsed(text)
        return text

    def take(self, term: Term) -> None:
        """What a call does besides computing is done by the new expression."""
        self.moved.append(term.node)

    def atom(self, term: Term) -> str:
        """The same, in parentheses where an operator stands beside it."""
        text = self.say(term)
        return text if isinstance(_parsed(text), _ATOMS) else f"({text})"

    def _holds(self, node: ast.expr) -> bool:
        """Whether every name in an expression still has the value it had there."""
        return all(
            self.env.get(n.id) is self.names.bindings.get(n)
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        )


class CannotSay(Exception):
    """A value that no expression gives at the place where it is needed."""


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        raise CannotSay from None


def rewrite(site: Site, say: Callable[[Writer], str]) -> tuple[tuple[Edit, ...], str] | None:
    """The edits that put `say`'s expression at the site, and that expression."""
    assigned = _assignments(site)
    for env in (site.env, _without(site.env, assigned)):
        writer = Writer(site, env)
        try:
            text = " ".join(say(writer).split())
        except CannotSay:
            continue
        if not _in_one_context(site, text):
            continue
        gone = _unneeded(site, assigned, text, writer)
        if any(b.statement not in gone for b in _differing(site.env, env)):
            continue
        if not all(_runs_once(site, node, gone) for node in writer.moved):
            continue
        edits = _edits(site, text, gone)
        if edits is not None:
            return edits, text
    return None


def _in_one_context(site: Site, text: str) -> bool:
    """Whether all that is replaced ran under the same `with` statements: without gradients, or
    under autocast, it is something else. What the new expression names is not replaced."""
    contexts = site.reading.contexts
    return all(
        contexts[s] == contexts[site.statement] for s in _assignments(site, frozenset(_names(text)))
    )


def _names(text: str) -> set[str]:
    return {n.id for n in ast.walk(_parsed(text)) if isinstance(n, ast.Name)}


def _assignments(site: Site, but: Collection[str] = ()) -> set[ast.stmt]:
    """The assignments that the site's expression is made of, but for those to some names."""
    found: set[ast.stmt] = set()
    todo: list[ast.AST] = [site.node]
    while todo:
        for binding in _read_in(todo.pop(), site.reading):
            s = binding.statement
            if s is not None and s not in found and binding.name not in but:
                found.add(s)
                todo.append(s)
    return found


def _read_in(node: ast.AST, reading: Reading) -> Iterator[Binding]:
    inside = set(ast.walk(node))
    first, last = _position(node)
    for name, bound in reading.bindings.items():
        if bound is None:
            continue
        if name in inside or (isinstance(node, ast.AugAssign) and _within(name, first, last)):
            yield bound


def _position(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    return (line, column), (
        getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
    )  # fmt: skip


def _within(node: ast.AST, first: tuple[int, int], last: tuple[int, int]) -> bool:
    start, end = _position(node)
    return first <= start and end <= last


def _without(env: Mapping[str, Binding], gone: set[ast.stmt]) -> dict[str, Binding]:
    """What names would hold had those assignments not given them another value."""
    out: dict[str, Binding] = {}
    for name, bound in env.items():
        while bound.statement in gone and bound.previous is not None:
            bound = bound.previous
        out[name] = bound
    return out


def _differing(env: Mapping[str, Binding], other: Mapping[str, Binding]) -> list[Binding]:
    """Bindings that the second environment supposes away."""
    return [b for name, b in env.items() if other.get(name) is not b]


def _unneeded(site: Site, assigned: set[ast.stmt], text: str, writer: Writer) -> set[ast.stmt]:
    """Those of the assignments that nothing reads once `text` stands at the site."""
    reading = site.reading
    said = _names(text)
    kept_names = {b.statement for name, b in writer.env.items() if name in said}
    gone = {s for s in assigned if s not in kept_names and stands_alone(s, reading)}
    while True:
        wanted = {
            s for s in gone
            if _is_read(s, site, gone) or not _is_pure(s, reading, writer.moved)
            or all(x in gone for x in reading.blocks[s])
        }  # fmt: skip
        if not wanted:
            return gone
        gone -= wanted


def _is_read(s: ast.stmt, site: Site, gone: set[ast.stmt]) -> bool:
    """Whether something that stays reads what an assignment gave."""
    reading = site.reading
    names = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if names & reading.captured:
        return True
    looped = any(
        s is inner for loop in ast.walk(reading.node)
        if isinstance(loop, ast.For | ast.AsyncFor | ast.While) for inner in ast.walk(loop)
    )  # fmt: skip
    spans = [_position(x) for x in (site.node, *gone)]
    for load, bound in reading.bindings.items():
        if load.id not in names or any(_within(load, *span) for span in spans):
            continue
        statement = None if bound is None else bound.statement
        if statement is s:
            return True
        if statement is None and (looped or _position(load)[0] > _position(s)[1]):
            return True  # several ways meet there; this may be one of them
    return False


def _is_pure(s: ast.stmt, reading: Reading, moved: list[ast.expr]) -> bool:
    """Whether an assignment does nothing but compute, apart from what is taken over elsewhere."""
    taken = {inner for node in moved for inner in ast.walk(node)}
    return not any(c not in taken for c in _impure(s, reading))


def _impure(node: ast.AST, reading: Reading) -> Iterator[ast.Call]:
    """Calls that may do something besides, or draw random numbers."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        term = reading.terms.get(call)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else (
            call.func.id if isinstance(call.func, ast.Name) else "")  # fmt: skip
        if (term is None or term.op in ("opaque", "dropout")) and name not in PURE:
            yield call


def _runs_once(site: Site, node: ast.expr, gone: set[ast.stmt]) -> bool:
    """Whether what an expression does besides computing happens as often as before."""
    if not any(True for _ in _impure(node, site.reading)):
        return True
    return any(node is inner for s in (site.node, *gone) for inner in ast.walk(s))


def stands_alone(s: ast.stmt, reading: Reading) -> bool:
    """Whether a statement has its lines for itself."""
    start, end = reading.span(s)
    before = reading.text[reading.text.rfind("\n", 0, start) + 1 : start]
    after = reading.text[end : _line_end(reading.text, end)].strip()
    return not before.strip() and (not after or after.startswith("#"))


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def removal(s: ast.stmt, reading: Reading) -> Edit:
    """Takes away a statement that is alone on its lines, and the lines with it."""
    start, end = reading.span(s)
    first = reading.text.rfind("\n", 0, start) + 1
    return Edit(first, min(_line_end(reading.text, end) + 1, len(reading.text)), "")


def _edits(site: Site, text: str, gone: set[ast.stmt]) -> tuple[Edit, ...] | None:
    reading = site.reading
    start, end = reading.span(site.node)
    if isinstance(site.node, ast.AugAssign):
        target = site.node.target
        old = site.env.get(target.id) if isinstance(target, ast.Name) else None
        if old is None or old.statement not in gone:
            return None  # the array that changes in place may be seen elsewhere
        text = f"{reading.segment(target)} = {text}"
    elif isinstance(_parsed(text), _ATOMS):
        start, end = _with_parentheses(reading.text, start, end)
    edits = [Edit(start, end, text), *(removal(s, reading) for s in gone)]
    return tuple(sorted(edits))


def _with_parentheses(text: str, start: int, end: int) -> tuple[int, int]:
    """A span with the parentheses around it, when they only group."""
    before = text[:start].rstrip(" ")
    after = end + len(text[end:]) - len(text[end:].lstrip(" "))
    if not before.endswith("(") or not text.startswith(")", after):
        return start, end
    caller = before[:-1].rstrip(" ")[-1:]
    if caller.isalnum() or caller in ("_", ")", "]"):
        return start, end
    return len(before) - 1, after + 1
