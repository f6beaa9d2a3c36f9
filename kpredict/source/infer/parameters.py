"""What the parameters of a function are, when nobody calls it: by annotation, else unknown.

`Tensor` and jaxtyping annotations make arrays; the positional parameters of a module's `forward`
are arrays by convention; a default of a number, text or bool says only what kind of value it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from kpredict.source.dotted import dotted
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.values import UNKNOWN, Array, Class, Function, Several, Value

_TENSORS = {
    "Tensor": None, "torch.Tensor": None, "FloatTensor": "float32", "torch.FloatTensor": "float32",
    "LongTensor": "int64", "torch.LongTensor": "int64", "BoolTensor": "bool",
    "torch.BoolTensor": "bool", "torch.HalfTensor": "float16", "IntTensor": "int32",
    "torch.IntTensor": "int32", "nn.Parameter": None,
}  # fmt: skip
_JAXTYPING = {
    "Float": None, "Float32": "float32", "Float16": "float16", "BFloat16": "bfloat16",
    "Float64": "float64", "Int": "int64", "Int64": "int64", "Int32": "int32", "Bool": "bool",
    "UInt8": "uint8", "Integer": "int64", "Num": None, "Shaped": None, "Complex64": "complex64",
}  # fmt: skip


_NO_ARRAY = re.compile(
    r"(type|name|mode|config|cfg|dim|size|len|length|flag|kind|step|idx|layer|path|fn|func|module"
    r"|model|tokenizer|ctx|batch|data|inputs|kwargs|args|list|dict)s?$"
)
"""Endings of names that mostly hold no single array."""


def annotated(node: ast.expr | None, dims: Mapping[str, int]) -> tuple[Value, bool]:
    """What an annotation makes of a parameter, and whether it may be None as well."""
    if node is None:
        return UNKNOWN, False
    text = dotted(node)
    if text in _TENSORS:
        return fresh(None, _TENSORS[text], "cuda"), False
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return annotated(ast.parse(node.value, mode="eval").body, dims)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return UNKNOWN, False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right], dims)
    if isinstance(node, ast.Subscript):
        head = dotted(node.value).rsplit(".", 1)[-1]
        inside = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if head == "Optional":
            return annotated(inside[0], dims)[0], True
        if head == "Union":
            return _union(inside, dims)
        if head in _JAXTYPING:
            return _jaxtyped(head, inside, dims), False
        if head in ("list", "List", "Sequence", "Iterable"):
            item, _ = annotated(inside[0], dims)
            return (Several(item), False) if isinstance(item, Array) else (UNKNOWN, False)
        if head in ("tuple", "Tuple"):
            return _tupled(inside, dims), False
        if head == "Annotated":
            return annotated(inside[0], dims)
    return UNKNOWN, False


def _union(parts: list[ast.expr], dims: Mapping[str, int]) -> tuple[Value, bool]:
    rest = [p for p in parts if not (isinstance(p, ast.Constant) and p.value is None)]
    values = [annotated(p, dims) for p in rest]
    if len(values) == 1:
        return values[0][0], len(rest) < len(parts) or values[0][1]
    if values and all(isinstance(v, Array) for v, _ in values):
        return fresh(None, None, "cuda"), len(rest) < len(parts)
    return UNKNOWN, len(rest) < len(parts)


def _jaxtyped(head: str, inside: list[ast.expr], dims: Mapping[str, int]) -> Array:
    shape: tuple[int | None, ...] | None = None
    if len(inside) > 1 and isinstance(inside[1], ast.Constant) and isinstance(inside[1].value, str):
        words = inside[1].value.split()
        if not any(w.startswith(("*", "...")) for w in words):
            names = [re.sub(r"^[#_?]|^.*=", "", w) for w in words]
            shape = tuple(int(n) if n.isdigit() else dims.get(n) for n in names)
    return fresh(shape, _JAXTYPING[head], "cuda")


def _tupled(inside: list[ast.expr], dims: Mapping[str, int]) -> Value:
    values = [annotated(p, dims)[0] for p in inside]
    if len(inside) == 2 and isinstance(inside[1], ast.Constant) and inside[1].value is Ellipsis:
        return Several(values[0]) if isinstance(values[0], Array) else UNKNOWN
    return tuple(values) if any(isinstance(v, Array) for v in values) else UNKNOWN


def parameters(
    f: Function, *, forward: bool = False, given: Mapping[str, Value] | None = None,
    dims: Mapping[str, int] | None = None,
) -> tuple[dict[str, Value], dict[str, Array]]:  # fmt: skip
    """Values for every parameter but `self`, and the arrays among them that may be None."""
    a = f.node.args
    positional = [*a.posonlyargs, *a.args]
    method = f.owner is not None and f.kind != "static"
    values: dict[str, Value] = {}
    perhaps: dict[str, Array] = {}
    for i, p in enumerate([*positional, *a.kwonlyargs]):
        if method and i == 0:
            continue
        if given and p.arg in given:
            values[p.arg] = given[p.arg]
            continue
        if given and p.arg in f.defaults:  # called with the inputs told, the rest is as it is
            values[p.arg] = f.defaults[p.arg]
            continue
        value, optional = annotated(p.annotation, dims or {})
        has_default = p.arg in f.defaults
        if optional or (has_default and f.defaults[p.arg] is None):
            if isinstance(value, Array):
                perhaps[p.arg] = value
            value = UNKNOWN
        elif (
            forward
            and p.annotation is None
            and not has_default
            and i < len(positional)
            and not _NO_ARRAY.search(p.arg)
        ):
            value = fresh(None, None, "cuda")
        values[p.arg] = value
    return values, perhaps


def initial(cls: Class) -> dict[str, Value]:
    """Arguments for an `__init__` that nobody calls: its defaults where they are plain, else
    unknown."""
    init = cls.find("__init__")
    if not isinstance(init, Function):
        return {}
    names = [p.arg for p in (*init.node.args.posonlyargs, *init.node.args.args)][1:]
    return {n: UNKNOWN for n in names if n not in init.defaults}
