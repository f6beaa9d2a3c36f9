"""A jaxtyping annotation (`Float[Tensor, "b n d"]`) → TensorSpec, read from the source."""

from __future__ import annotations

import re
from collections.abc import Mapping

import libcst as cst

from kpredict.source.inputs import TensorSpec

_DTYPES: Mapping[str, str] = {
    "Float": "float32", "Float16": "float16", "Float32": "float32", "Float64": "float64",
    "BFloat16": "bfloat16", "Float8e4m3fn": "float8_e4m3fn", "Float8e5m2": "float8_e5m2",
    "Int": "int64", "Integer": "int64", "Int8": "int8", "Int16": "int16", "Int32": "int32",
    "Int64": "int64", "UInt": "uint8", "UInt8": "uint8", "UInt16": "uint16", "UInt32": "uint32",
    "UInt64": "uint64", "Bool": "bool", "Complex": "complex64", "Complex64": "complex64",
    "Complex128": "complex128", "Inexact": "float32", "Real": "float32", "Num": "float32",
    "Shaped": "float32",
}  # fmt: skip


def spec_of_annotation(node: cst.BaseExpression) -> TensorSpec | None:
    """The tensor an annotation asks for, sizes by name; None for any other annotation.

    A dimension `*batch` or `...` (any number of dims) is left out; `_` and `b=4` are handled as
    jaxtyping reads them. Optional and union types are looked through.
    """
    match node:
        case cst.SimpleString() | cst.ConcatenatedString():
            text = node.evaluated_value
            if not isinstance(text, str):
                return None
            try:
                return spec_of_annotation(cst.parse_expression(text))
            except cst.ParserSyntaxError:
                return None
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            return spec_of_annotation(left) or spec_of_annotation(right)
        case cst.Subscript(value=head, slice=elements):
            values = [e.slice.value for e in elements if isinstance(e.slice, cst.Index)]
            name = _last_name(head)
            if name == "Optional" and len(values) == 1:
                return spec_of_annotation(values[0])
            if name == "Annotated" and values:
                return spec_of_annotation(values[0])
            if name in _DTYPES and len(values) == 2 and _last_name(values[0]) == "Tensor":
                dims = values[1]
                if isinstance(dims, (cst.SimpleString, cst.ConcatenatedString)):
                    text = dims.evaluated_value
                    if isinstance(text, str):
                        return TensorSpec(_DTYPES[name], tuple(_sizes(text)))
    return None


def _sizes(text: str) -> list[int | str]:
    sizes: list[int | str] = []
    for word in text.split():
        if word == "..." or word.startswith("*"):
            continue
        word = word.lstrip("#?").partition("=")[2] or word.lstrip("#?")
        if word.isdigit():
            sizes.append(int(word))
        elif word.startswith("_"):
            sizes.append(word.lstrip("_") or "_")
        else:
            sizes.append(re.sub(r"[{}]", "", word))
    return sizes


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""
