"""Walks through functions, statement by statement, and keeps what names are bound to.

In: Python text. Out: a Reading per function, with a Site for every operation that the terms know.
What cannot be followed (loops, branches that meet, arrays changed in place) becomes a value of
its own, equal to nothing else: a pattern is then not found, never found wrongly.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from kpredict.changes.expressions import Binding, Env, Evaluator
from kpredict.changes.names import Def, is_self, read_names
from kpredict.changes.reading import Reading, Site, definitions, is_inplace, line_offsets
from kpredict.changes.terms import Term, binary, inside
from kpredict.source.dotted import dotted

_VIEWS = frozenset(
    "transpose T mT t unsqueeze squeeze expand contiguous to float half bfloat16 double type_as "
    "values slice view leaf opaque long bool dropout".split()
)
_NO_SITE = frozenset("leaf const opaque tuple slice view dtype".split())
_HARMLESS = frozenset("print append extend info debug warning add_scalar _check".split())


def read(text: str, tree: ast.Module) -> Iterator[Reading]:
    """Every function of the file, methods and nested ones too."""
    names, offsets = read_names(tree), line_offsets(text)
    for owner, name, node in definitions(tree.body):
        reading = Reading(name, node, owner, text, offsets, names)
        _Walk(reading).run()
        yield reading


class _Walk:
    """Goes through one function and keeps what names are bound to."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        node = reading.node
        stored = frozenset(_set_attributes(node))
        self.versions = 0
        self.contexts: tuple[ast.stmt, ...] = ()
        self.evaluator = Evaluator(reading.names, reading.owner, {}, self.mutate, stored)
        a = node.args
        given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)]
        for p in given:
            self.forget(p.arg)
        self.open = {
            n for s in ast.walk(node) if isinstance(s, ast.Global | ast.Nonlocal) for n in s.names
        }

    @property
    def env(self) -> Env:
        return self.evaluator.env

    def run(self) -> None:
        self.block(self.reading.node.body)
        r, e = self.reading, self.evaluator
        r.bindings, r.terms, r.captured = e.bindings, e.terms, e.captured | self.open

    # -- what names hold ----------------------------------------------------------------------

    def forget(self, name: str) -> None:
        """From here on the name holds some value of which nothing is known."""
        self.versions += 1
        leaf = ast.Name(name, ast.Load())  # without a place: it can be said by its name only
        version = 0 if is_self(leaf) else self.versions
        self.env[name] = Binding(name, Term(leaf, "leaf", key=(name, version)))

    def mutate(self, node: ast.expr) -> None:
        """The array of an expression changes in place: so do all names that may share it."""
        self.spread(self.evaluator.terms.get(node) or self.evaluator.evaluate(node))

    def spread(self, term: Term) -> None:
        touched = set(_memory(term))
        for name, bound in list(self.env.items()):
            if not touched.isdisjoint(_token(t) for t in inside(bound.term)):
                self.forget(name)

    def bind(self, target: ast.expr, term: Term, statement: ast.stmt) -> None:
        match target:
            case ast.Name(id=name):
                if name in self.open:
                    self.forget(name)
                else:
                    self.env[name] = Binding(name, term, statement, self.env.get(name))
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for i, t in enumerate(targets):
                    given = term.get(str(i)) if term.op == "tuple" else None
                    if term.op == "max" and i == 0 and len(targets) == 2:
                        given = Term(ast.Name("values"), "values", {"self": term})
                    if given is not None and len(targets) >= 2 and isinstance(t, ast.Name):
                        self.bind(t, given, statement)
                    else:
                        self.lose(t)
            case _:
                self.lose(target)

    def lose(self, target: ast.expr) -> None:
        """Names of a target that is bound to what we do not follow; items that are set."""
        for n in ast.walk(target):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                self.forget(n.id)
            elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store | ast.Del):
                self.evaluator.evaluate(n.slice)
                self.mutate(n.value)

    # -- statements ---------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> None:
        for s in statements:
            self.reading.blocks[s] = statements
            self.reading.contexts[s] = self.contexts
            self.statement(s)

    def value(self, node: ast.expr, s: ast.stmt) -> Term:
        """Evaluate an expression of a statement and note its operations."""
        env = dict(self.env)
        before = len(self.evaluator.terms)
        term = self.evaluator.evaluate(node)
        for found, made in list(self.evaluator.terms.items())[before:]:
            if made.op not in _NO_SITE and not isinstance(found, ast.Name):
                self.reading.sites.append(Site(found, made, s, env, self.reading))
        return term

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.Assign(targets=targets, value=value):
                term = self.value(value, s)
                for t in targets:
                    self.bind(t, term, s) if len(targets) == 1 else self.lose(t)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.bind(target, self.value(value, s), s)
            case ast.AugAssign():
                self.augmented(s)
            case ast.Expr(value=value):
                self.value(value, s)
                if isinstance(value, ast.Call):
                    self.called(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.value(test, s)
                self.branches([body, orelse])
            case (
                ast.For(target=target, iter=over, body=body, orelse=orelse)
                | ast.AsyncFor(target=target, iter=over, body=body, orelse=orelse)
            ):
                self.value(over, s)
                self.loop(s, [target], body, orelse)
            case ast.While(test=test, body=body, orelse=orelse):
                self.loop(s, [], body, orelse, test)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self.value(item.context_expr, s)
                    if item.optional_vars is not None:
                        self.lose(item.optional_vars)
                self.contexts = (*self.contexts, s)
                self.block(body)
                self.contexts = self.contexts[:-1]
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                self.branches([[*body, *orelse], *(h.body for h in handlers), []])
                self.block(final)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.evaluator.captured |= {n.id for n in ast.walk(s) if isinstance(n, ast.Name)}
                self.forget(s.name)
            case ast.Match(subject=subject, cases=cases):
                self.value(subject, s)
                self.branches([*(c.body for c in cases), []])
            case _:
                for child in ast.iter_child_nodes(s):
                    if isinstance(child, ast.expr):
                        self.value(child, s)
                for target in getattr(s, "targets", []):
                    self.lose(target)

    def augmented(self, s: ast.AugAssign) -> None:
        """`x *= y`: a new value for the name; its array may have changed in place."""
        value = self.value(s.value, s)
        if not isinstance(s.target, ast.Name):
            self.lose(s.target)
            return
        name = s.target.id
        load = ast.copy_location(ast.Name(name, ast.Load()), s.target)
        old = self.evaluator.evaluate(load)
        before = self.env.get(name)
        made = binary(ast.BinOp(load, s.op, s.value), old, value)
        self.spread(old)
        if before is None or made is None or old.op in _VIEWS or name in self.open:
            self.forget(name)
        else:
            env = dict(self.env) | {name: before}
            self.reading.sites.append(Site(s, made, s, env, self.reading))
            self.env[name] = Binding(name, made, s, before)

    def called(self, call: ast.Call) -> None:
        """A call for its effect alone may change what it is given."""
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else dotted(function)
        if name in _HARMLESS:
            return
        for a in (*call.args, *(k.value for k in call.keywords)):
            if isinstance(a, ast.Name):
                self.mutate(a)

    def branches(self, ways: list[list[ast.stmt]]) -> None:
        start = dict(self.env)
        ends: list[Env] = []
        for way in ways:
            self.evaluator.env = dict(start)
            self.block(way)
            if not (way and isinstance(way[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)):
                ends.append(self.env)
        self.evaluator.env = dict(ends[0]) if ends else dict(start)
        for name in {n for e in ends for n in e}:
            if len({id(e.get(name)) for e in ends}) > 1:
                self.forget(name)

    def loop(
        self, s: ast.stmt, targets: list[ast.expr], body: list[ast.stmt],
        orelse: list[ast.stmt], test: ast.expr | None = None,
    ) -> None:  # fmt: skip
        """What the body changes is known neither at its start nor after it."""
        changed = sorted(_changed(body))
        self.unsettle(changed)
        for t in targets:
            self.lose(t)
        if test is not None:
            self.value(test, s)
        self.block(body)
        self.unsettle(changed)
        self.block(orelse)
        self.unsettle(sorted(_changed(orelse)))

    def unsettle(self, names: Iterable[str]) -> None:
        for name in names:
            bound = self.env.get(name)
            if bound is not None:
                self.spread(bound.term)
            self.forget(name)


def _memory(term: Term) -> Iterator[object]:
    """Tokens of the terms whose array an expression may share: through views what they look at."""
    yield _token(term)
    if term.op in _VIEWS:
        for a in term.args.values():
            yield from _memory(a)


def _token(term: Term) -> object:
    return term.key or id(term)


def _set_attributes(function: Def) -> Iterator[str]:
    """Dotted attributes that a function sets or changes in place."""
    for n in ast.walk(function):
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store | ast.Del):
            yield dotted(n)
        elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store | ast.Del):
            yield dotted(n.value)
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and is_inplace(n.func):
            yield dotted(n.func.value)


def _changed(body: list[ast.stmt]) -> set[str]:
    """Names that statements bind or change in place."""
    found: set[str] = set()
    for n in (n for s in body for n in ast.walk(s)):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store | ast.Del):
            found.add(n.id)
        elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
            found.add(dotted(n.value).split(".")[0])
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and is_inplace(n.func):
            found.add(dotted(n.func.value).split(".")[0])
    return found - {"", "self"}
