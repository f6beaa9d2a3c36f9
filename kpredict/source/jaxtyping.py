"""The tables of jaxtyping's annotations: names of dtypes, and how dimensions are written."""

from __future__ import annotations

import re
from collections.abc import Mapping

DTYPES: Mapping[str, str] = {
    "Float": "float32", "Float16": "float16", "Float32": "float32", "Float64": "float64",
    "BFloat16": "bfloat16", "Float8e4m3fn": "float8_e4m3fn", "Float8e5m2": "float8_e5m2",
    "Int": "int64", "Integer": "int64", "Int8": "int8", "Int16": "int16", "Int32": "int32",
    "Int64": "int64", "UInt": "uint8", "UInt8": "uint8", "UInt16": "uint16", "UInt32": "uint32",
    "UInt64": "uint64", "Bool": "bool", "Complex": "complex64", "Complex64": "complex64",
    "Complex128": "complex128", "Inexact": "float32", "Real": "float32", "Num": "float32",
    "Shaped": "float32",
}  # fmt: skip


def sizes_of(text: str) -> list[int | str]:
    found: list[int | str] = []
    for word in text.split():
        if word == "..." or word.startswith("*"):
            continue
        word = word.lstrip("#?").partition("=")[2] or word.lstrip("#?")
        if word.isdigit():
            found.append(int(word))
        elif word.startswith("_"):
            found.append(word.lstrip("_") or "_")
        else:
            found.append(re.sub(r"[{}]", "", word))
    return found
