"""A jaxtyping annotation (`Float[Tensor, "b n d"]`) → TensorSpec, read from the source."""

from __future__ import annotations

import libcst as cst

from kpredict.source.inputs import TensorSpec
from kpredict.source.jaxtyping import DTYPES, sizes_of


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
            if name in DTYPES and len(values) == 2 and _last_name(values[0]) == "Tensor":
                dims = values[1]
                if isinstance(dims, (cst.SimpleString, cst.ConcatenatedString)):
                    text = dims.evaluated_value
                    if isinstance(text, str):
                        return TensorSpec(DTYPES[name], tuple(sizes_of(text)))
    return None


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""
