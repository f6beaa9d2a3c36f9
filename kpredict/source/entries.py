"""A file's text → Source: its entry points, what says their inputs, and its conventions.

In: Python text. Out: a frozen Source. Nothing is imported or run; the one place libcst reads a
whole file for the main job. Raises KpredictError for text that is not Python.
"""

from __future__ import annotations

import ast

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from kpredict.model import KpredictError
from kpredict.source.annotations import spec_of_annotation
from kpredict.source.directives import assemble
from kpredict.source.nouns import EntryKind, EntryPoint, Parameter, Source


def read_source(path: str, text: str) -> Source:
    """Read one file's text. Raises KpredictError with the line of a syntax error."""
    _check_is_python(path, text)
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise KpredictError(f"libcst cannot read line {error.raw_line}.") from None
    try:
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        reader = _Reader()
        wrapper.visit(reader)
    except RecursionError:
        raise KpredictError(f"{path} is nested too deeply to be read.") from None
    return reader.source(path, text)


def _check_is_python(path: str, text: str) -> None:
    """Ask Python's own parser first: its messages are better, and libcst's dies of deep nesting."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        message = f"Syntax error on line {error.lineno}: {error.msg.rstrip('.?')}."
        raise KpredictError(message) from None
    except (ValueError, RecursionError, MemoryError):
        raise KpredictError(f"{path} is nested too deeply to be read.") from None


class _Reader(cst.CSTVisitor):
    """Collects defs, comments and the conventions' assignments in one pass."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        self._scopes: list[tuple[str, cst.CSTNode]] = []
        self._found: list[tuple[EntryPoint, tuple[int, int]]] = []
        self._classes: dict[str, cst.ClassDef] = {}
        self._methods: dict[str, dict[str, cst.FunctionDef]] = {}
        self._comments: dict[int, str] = {}
        self._constants: dict[str, object] = {}
        self._defines: set[str] = set()
        self._main = False

    def _lines(self, node: cst.CSTNode) -> tuple[int, int]:
        where = self.get_metadata(PositionProvider, node)
        return where.start.line, where.end.line

    # what the file defines

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if not self._scopes:
            self._defines.add(node.name.value)
            self._classes[node.name.value] = node
            self._methods[node.name.value] = {}
        self._scopes.append((node.name.value, node))

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._scopes.pop()
        name = original_node.name.value
        if self._scopes or not self._is_module(original_node):
            return
        methods = self._methods[name]
        forward = methods.get("forward")
        last = self._lines(original_node)[1]
        line = self._def_line(original_node)
        entry = EntryPoint(
            name, EntryKind.MODULE, line, last,
            _parameters(forward.params, method=True) if forward else (),
            _parameters(methods["__init__"].params, method=True) if "__init__" in methods else (),
        )  # fmt: skip
        self._found.append(
            (entry, (self._first_line(original_node), self._body_line(original_node)))
        )

    def _is_module(self, node: cst.ClassDef) -> bool:
        name = node.name.value
        bases = [_dotted(b.value) for b in node.bases]
        if "forward" in self._methods.get(name, {}):
            return bool(bases)
        return any(
            base.rsplit(".", 1)[-1] == "Module"
            or (base in self._classes and base != name and self._is_module(self._classes[base]))
            for base in bases
        )

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        name = node.name.value
        if not self._scopes:
            self._defines.add(name)
            self._add(node, name, EntryKind.FUNCTION)
        elif len(self._scopes) == 1 and isinstance(self._scopes[0][1], cst.ClassDef):
            owner = self._scopes[0][0]
            self._methods[owner][name] = node
            self._add(node, f"{owner}.{name}", EntryKind.METHOD)
        self._scopes.append((name, node))

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._scopes.pop()

    def _add(self, node: cst.FunctionDef, name: str, kind: EntryKind) -> None:
        last = self._lines(node)[1]
        static = any(_dotted(d.decorator) == "staticmethod" for d in node.decorators)
        method = kind is EntryKind.METHOD and not static
        entry = EntryPoint(
            name, kind, self._def_line(node), last, _parameters(node.params, method=method)
        )
        self._found.append((entry, (self._first_line(node), self._body_line(node))))

    def _def_line(self, node: cst.FunctionDef | cst.ClassDef) -> int:
        return self._lines(node.name)[0]

    def _first_line(self, node: cst.FunctionDef | cst.ClassDef) -> int:
        """The line of the first decorator, else of the def."""
        return min(self._lines(part)[0] for part in (node, *node.decorators))

    def _body_line(self, node: cst.FunctionDef | cst.ClassDef) -> int:
        """The line of the first statement in the body; a docstring is passed over."""
        body = node.body.body
        if not body:
            return self._def_line(node)
        at = 1 if len(body) > 1 and _is_docstring(body[0]) else 0
        return self._lines(body[at])[0]

    # comments and conventions

    def visit_Comment(self, node: cst.Comment) -> None:
        self._comments[self._lines(node)[0]] = node.value

    def visit_Assign(self, node: cst.Assign) -> None:
        if not self._scopes and len(node.targets) == 1:
            name = _dotted(node.targets[0].target)
            if name in ("ENTRY", "MODE", "D2H_VALUE"):
                self._constants[name] = _constant(node.value)

    def visit_If(self, node: cst.If) -> None:
        test = node.test
        if not self._scopes and isinstance(test, cst.Comparison):
            self._main |= "__name__" in (
                _dotted(test.left), *(_dotted(c.comparator) for c in test.comparisons)
            )  # fmt: skip

    def source(self, path: str, text: str) -> Source:
        return assemble(
            path, text, self._found, self._comments, self._constants, self._defines, self._main
        )


def _parameters(params: cst.Parameters, *, method: bool) -> tuple[Parameter, ...]:
    positional = [*params.posonly_params, *params.params]
    found = [_parameter(p, "positional") for p in positional[1 if method else 0 :]]
    if isinstance(params.star_arg, cst.Param):
        found.append(_parameter(params.star_arg, "args"))
    found += [_parameter(p, "keyword") for p in params.kwonly_params]
    if params.star_kwarg is not None:
        found.append(_parameter(params.star_kwarg, "kwargs"))
    return tuple(found)


def _parameter(param: cst.Param, kind: str) -> Parameter:
    annotated = spec_of_annotation(param.annotation.annotation) if param.annotation else None
    return Parameter(param.name.value, kind, param.default is not None, annotated)


def _dotted(node: cst.BaseExpression) -> str:
    """`torch.nn.Module` as text; empty for anything but names and attributes."""
    match node:
        case cst.Name(value=name):
            return name
        case cst.Attribute(value=inner, attr=cst.Name(value=name)):
            head = _dotted(inner)
            return f"{head}.{name}" if head else ""
        case cst.Subscript(value=inner):
            return _dotted(inner)
    return ""


def _constant(node: cst.BaseExpression) -> object:
    try:
        return ast.literal_eval(cst.Module([]).code_for_node(node))
    except (ValueError, SyntaxError):
        return None


def _is_docstring(node: cst.CSTNode) -> bool:
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString()), *_]):
            return True
    return False
