"""`read_source` by the standard library's `ast`, for machines without libcst.

In: Python text. Out: the same Source as `entries.read_source`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence

from kpredict.model import KpredictError
from kpredict.source.directives import assemble
from kpredict.source.inputs import InputSpec, TensorSpec
from kpredict.source.jaxtyping import DTYPES, sizes_of
from kpredict.source.nouns import EntryKind, EntryPoint, Parameter, Source

_Def = ast.FunctionDef | ast.AsyncFunctionDef
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_source(path: str, text: str) -> Source:
    """Read one file's text. Raises KpredictError with the line of a syntax error."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        message = f"Syntax error on line {error.lineno}: {error.msg.rstrip('.?')}."
        raise KpredictError(message) from None
    except (ValueError, RecursionError, MemoryError):
        raise KpredictError(f"{path} is nested too deeply to be read.") from None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = [node for node in tree.body if isinstance(node, _DEFS)]
    found: list[tuple[EntryPoint, tuple[int, int]]] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found += [_method(node, m) for m in node.body if isinstance(m, _DEFS)]
            if _is_module(node, classes):
                found.append(_module(node))
        elif isinstance(node, _DEFS):
            entry = _entry(node, node.name, EntryKind.FUNCTION, _parameters(node.args, 0))
            found.append((entry, _span(node)))
    return assemble(
        path, text, found, _comments(text), _constants(tree.body),
        {*classes, *(f.name for f in functions)}, any(_is_main(node) for node in tree.body),
    )  # fmt: skip


def _module(node: ast.ClassDef) -> tuple[EntryPoint, tuple[int, int]]:
    methods = {m.name: _parameters(m.args, 1) for m in node.body if isinstance(m, _DEFS)}
    entry = EntryPoint(
        node.name, EntryKind.MODULE, node.lineno, node.end_lineno or node.lineno,
        methods.get("forward", ()), methods.get("__init__", ()),
    )  # fmt: skip
    return entry, _span(node)


def _method(owner: ast.ClassDef, node: _Def) -> tuple[EntryPoint, tuple[int, int]]:
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    parameters = _parameters(node.args, 0 if static else 1)
    return _entry(node, f"{owner.name}.{node.name}", EntryKind.METHOD, parameters), _span(node)


def _entry(node: _Def, name: str, kind: EntryKind, parameters: tuple[Parameter, ...]) -> EntryPoint:
    return EntryPoint(name, kind, node.lineno, node.end_lineno or node.lineno, parameters)


def _span(node: _Def | ast.ClassDef) -> tuple[int, int]:
    """The first line, decorators included, and that of the first statement after a docstring."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    body = node.body
    at = 1 if len(body) > 1 and ast.get_docstring(node, clean=False) is not None else 0
    return first, _first_line(body[at])


def _first_line(node: ast.stmt) -> int:
    decorated = node.decorator_list if isinstance(node, (*_DEFS, ast.ClassDef)) else ()
    return min([node.lineno, *(d.lineno for d in decorated)])


def _parameters(args: ast.arguments, skip: int) -> tuple[Parameter, ...]:
    positional = [*args.posonlyargs, *args.args]
    required = len(positional) - len(args.defaults)
    found = [
        Parameter(a.arg, "positional", i >= required, spec_of_annotation(a.annotation))
        for i, a in enumerate(positional)
    ]
    found = found[skip:]
    if args.vararg is not None:
        found.append(_rest(args.vararg, "args"))
    found += [
        Parameter(a.arg, "keyword", default is not None, spec_of_annotation(a.annotation))
        for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    if args.kwarg is not None:
        found.append(_rest(args.kwarg, "kwargs"))
    return tuple(found)


def _rest(argument: ast.arg, kind: str) -> Parameter:
    return Parameter(argument.arg, kind, annotated=spec_of_annotation(argument.annotation))


def spec_of_annotation(node: ast.expr | None) -> InputSpec | None:
    """As `annotations.spec_of_annotation`: the tensor that a jaxtyping annotation asks for."""
    match node:
        case ast.Constant(value=str(text)):
            try:
                return spec_of_annotation(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError):
                return None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return spec_of_annotation(left) or spec_of_annotation(right)
        case ast.Subscript(value=head, slice=index):
            values = index.elts if isinstance(index, ast.Tuple) else [index]
            name = _last_name(head)
            if name == "Annotated" or (name == "Optional" and len(values) == 1):
                return spec_of_annotation(values[0])
            if name in DTYPES and len(values) == 2 and _last_name(values[0]) == "Tensor":
                dims = values[1]
                if isinstance(dims, ast.Constant) and isinstance(dims.value, str):
                    return TensorSpec(DTYPES[name], tuple(sizes_of(dims.value)))
    return None


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_module(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    if any(isinstance(m, _DEFS) and m.name == "forward" for m in node.body):
        return bool(node.bases)
    bases = [ast.unparse(base) for base in node.bases]
    return any(
        base.rsplit(".", 1)[-1] == "Module"
        or (base in classes and base != node.name and _is_module(classes[base], classes))
        for base in bases
    )


def _comments(text: str) -> dict[int, str]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return {}
    return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}


def _constants(body: Sequence[ast.stmt]) -> dict[str, object]:
    constants: dict[str, object] = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id in ("ENTRY", "MODE", "D2H_VALUE"):
                try:
                    constants[target.id] = ast.literal_eval(node.value)
                except (ValueError, TypeError):
                    constants[target.id] = None
    return constants


def _is_main(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = (node.test.left, *node.test.comparators)
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
