"""`def`, `class` and `import`: the names that definitions make, decorators applied."""

from __future__ import annotations

import ast

from kpredict.source.infer.choices import NEXT
from kpredict.source.infer.displays import enclosed
from kpredict.source.infer.patterns import Patterns
from kpredict.source.infer.state import Frame
from kpredict.source.infer.values import (
    UNKNOWN,
    Class,
    Function,
    Partial,
    Symbol,
    Value,
)  # fmt: skip


class Definitions(Patterns):
    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> str:
        name = node.name if frame.function in ("", "<module>") else f"{frame.function}.{node.name}"
        made = self.make_function(node, frame, name)
        if any(_is_setter(d) for d in node.decorator_list):
            self.assign_name(f"{node.name}.setter", made, frame)
        elif not any(_is_deleter(d) for d in node.decorator_list):
            self.assign_name(node.name, self._decorated(made), frame)
        return NEXT

    def _decorated(self, f: Function) -> Function:
        """What the user's own decorators make of a function; those of libraries change nothing
        here (grad modes and the like are read where the function is called)."""
        value: Value = f
        for d in reversed(f.decorators):
            own = d.function if isinstance(d, Partial) else d
            if isinstance(own, (Function, Class)) and not own.scope.library:
                value = self.call(d, (value,), {})
        if value is f or value is UNKNOWN:
            return f
        return Function(
            f.node, f.scope, f.closure, f.qualname, f.defaults, f.decorators, f.owner, value
        )

    def define_class(self, node: ast.ClassDef, frame: Frame) -> str:
        bases = tuple(self.evaluate(b, frame) for b in node.bases if not isinstance(b, ast.Starred))
        top = frame.function in ("", "<module>")
        inner = Frame(
            frame.scope, node.name, {}, {} if top else enclosed(frame), is_class=True
        )  # fmt: skip
        cls = Class(node.name, bases, inner.names, frame.scope, line=node.lineno)
        inner.owner = cls
        self.execute(node.body, inner)
        cls.attributes = inner.names
        decorators = [self.evaluate(d, frame) for d in node.decorator_list]
        named = any(isinstance(d, Symbol) and d.name == "dataclass" for d in decorators)
        tupled = any(isinstance(b, Symbol) and b.name == "NamedTuple" for b in bases)
        above = [c for c in cls.lines()[1:] if c.fields]
        if named or tupled:
            own = tuple(
                s.target.id
                for s in node.body
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
                and not ast.unparse(s.annotation).startswith(("ClassVar", "typing.ClassVar"))
            )  # fmt: skip
            inherited = [n for c in reversed(above) for n in c.fields]
            cls.fields = tuple(dict.fromkeys((*inherited, *own)))
        elif above:
            cls.fields = above[0].fields
        cls.is_tuple = tupled or any(c.is_tuple for c in above)
        self.assign_name(node.name, cls, frame)
        return NEXT

    # -- imports ---------------------------------------------------------------------------

    def define_import(self, node: ast.Import, frame: Frame) -> str:
        for alias in node.names:
            if alias.asname:
                frame.names[alias.asname] = self.import_module(alias.name, 0, frame)
            else:
                top = alias.name.split(".")[0]
                frame.names[top] = self.import_module(top, 0, frame)
        return NEXT

    def define_import_from(self, node: ast.ImportFrom, frame: Frame) -> str:
        module = self.import_module(node.module or "", node.level, frame)
        for alias in node.names:
            if alias.name == "*":
                self.import_all(module, frame)
            else:
                frame.names[alias.asname or alias.name] = self.attribute(module, alias.name)
        return NEXT

    def import_module(self, name: str, level: int, frame: Frame) -> Value:
        raise NotImplementedError

    def import_all(self, module: Value, frame: Frame) -> None:
        raise NotImplementedError


def _is_setter(d: ast.expr) -> bool:
    return isinstance(d, ast.Attribute) and d.attr == "setter"


def _is_deleter(d: ast.expr) -> bool:
    return isinstance(d, ast.Attribute) and d.attr in ("deleter", "getter")
