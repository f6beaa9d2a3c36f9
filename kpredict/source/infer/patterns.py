"""`match`: whether a pattern fits a value, as far as the source tells, and the names it binds."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from typing import Any

from kpredict.source.infer.choices import MAYBE, NEXT
from kpredict.source.infer.loops import Loops
from kpredict.source.infer.state import Frame
from kpredict.source.infer.values import UNKNOWN, Array, Class, Instance, Several, Symbol, Value


class Patterns(Loops):
    def match_value(self, node: ast.Match, rest: Sequence[ast.stmt], frame: Frame) -> str | None:
        """None to go on with `rest`, else how the whole block ended."""
        subject = self.evaluate(node.subject, frame)
        return self._cases(node.cases, subject, rest, frame)

    def _cases(
        self, cases: Sequence[ast.match_case], subject: Value, rest: Sequence[ast.stmt],
        frame: Frame,
    ) -> str | None:  # fmt: skip
        """The cases from here on, as a chain of `if … else`."""
        for i, case in enumerate(cases):
            found = self._fits(case.pattern, subject, frame)
            if found is not False and case.guard is not None:
                guard = self.truth_of(self.evaluate(case.guard, frame))
                found = False if guard is False else found and guard
            if found is False:
                continue
            if found is True:
                end = self.execute(case.body, frame)
                return self.perhaps_rest(rest, frame) if end == MAYBE else end or None
            body, others = case.body, cases[i + 1 :]
            ways = (
                partial(self.execute, body, frame),
                lambda others=others: self._cases(others, subject, (), frame) or NEXT,
            )
            return self.branch(ways, rest, frame)
        return None

    def _fits(self, p: ast.pattern, value: Value, frame: Frame) -> bool | None:
        """Whether `p` fits; None when nobody knows. Binds its names in any case but a sure no."""
        match p:
            case ast.MatchAs(pattern=inner, name=name):
                found = True if inner is None else self._fits(inner, value, frame)
                if name is not None and found is not False:
                    frame.names[name] = value
                return found
            case ast.MatchOr(patterns=patterns):
                answers = []
                for q in patterns:
                    answers.append(self._fits(q, value, frame))
                    if answers[-1]:
                        return True
                return None if None in answers else False
            case ast.MatchValue(value=node):
                wanted = self.evaluate(node, frame)
                same = self.compare(ast.Eq, value, wanted)
                return None if value is UNKNOWN else self.truth_of(same)
            case ast.MatchSingleton(value=constant):
                return None if value is UNKNOWN else value is constant
            case ast.MatchSequence(patterns=patterns):
                return self._sequence(patterns, value, frame)
            case ast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
                return self._mapping(keys, patterns, rest, value, frame)
            case ast.MatchClass():
                return self._matches_class(p, value, frame)
        return None

    def _all(self, pairs: Sequence[tuple[ast.pattern, Value]], frame: Frame) -> bool | None:
        answers = [self._fits(p, v, frame) for p, v in pairs]
        return False if False in answers else None if None in answers else True

    def _sequence(self, patterns: Sequence[ast.pattern], value: Value, frame: Frame) -> bool | None:
        open_ = value is UNKNOWN or isinstance(value, (Several, Instance))
        items = value if isinstance(value, (list, tuple)) else None
        if isinstance(value, Instance) and value.cls.is_tuple:
            items, open_ = self.item(value, slice(None)), False
        if items is None and not open_:
            return False
        star = next((i for i, q in enumerate(patterns) if isinstance(q, ast.MatchStar)), None)
        if items is None:
            one = value.item if isinstance(value, Several) else UNKNOWN
            for q in patterns:
                self._bind_names(q, one, frame)
            return None
        if len(items) < len(patterns) - (star is not None) or (
            star is None and len(items) != len(patterns)
        ):
            return False
        if star is None:
            return self._all(list(zip(patterns, items, strict=True)), frame)
        after = len(patterns) - star - 1
        middle = list(items[star : len(items) - after])
        named = patterns[star]
        if isinstance(named, ast.MatchStar) and named.name:
            frame.names[named.name] = middle
        kept = [*patterns[:star], *patterns[star + 1 :]]
        return self._all(
            list(zip(kept, [*items[:star], *items[len(items) - after :]], strict=True)), frame
        )

    def _bind_names(self, p: ast.pattern, value: Value, frame: Frame) -> None:
        """The names inside a pattern that may fit something unknown."""
        for n in ast.walk(p):
            name = n.name if isinstance(n, (ast.MatchAs, ast.MatchStar)) else None
            if name:
                frame.names[name] = value

    def _mapping(
        self, keys: Sequence[ast.expr], patterns: Sequence[ast.pattern], rest: str | None,
        value: Value, frame: Frame,
    ) -> bool | None:  # fmt: skip
        if not isinstance(value, dict):
            for q in patterns:
                self._bind_names(q, UNKNOWN, frame)
            return None if value is UNKNOWN or isinstance(value, Instance) else False
        wanted = [self.evaluate(k, frame) for k in keys]
        if any(k is UNKNOWN for k in wanted):
            return None
        if any(k not in value for k in wanted):
            return False
        if rest:
            frame.names[rest] = {k: v for k, v in value.items() if k not in wanted}
        pairs = [(q, value[k]) for q, k in zip(patterns, wanted, strict=True)]
        return self._all(pairs, frame)

    def _matches_class(self, p: ast.MatchClass, value: Value, frame: Frame) -> bool | None:
        kind = self.evaluate(p.cls, frame)
        found = self.truth_of(self.call(Symbol("builtins.isinstance"), (value, kind), {}))
        if found is False:
            return False
        parts: list[tuple[ast.pattern, Value]] = []
        if p.patterns:
            names: Any = kind.find("__match_args__") if isinstance(kind, Class) else UNKNOWN
            if isinstance(kind, Class) and names is UNKNOWN:
                names = kind.fields
            if isinstance(names, (list, tuple)):
                parts += [
                    (q, self.attribute(value, n)) for q, n in zip(p.patterns, names, strict=False)
                ]
            else:
                parts += [(p.patterns[0], value)]  # int(n), str(s): the value itself
        parts += [
            (q, self.attribute(value, n)) for q, n in zip(p.kwd_patterns, p.kwd_attrs, strict=True)
        ]
        inside = self._all(parts, frame)
        if inside is False and not isinstance(value, Array):
            return False
        return found and inside
