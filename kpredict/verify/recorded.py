"""What a profiler recorded of an op call's arguments → types and arrays of the model."""

from __future__ import annotations

from typing import Any

_DTYPES = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "long int": "int64", "long": "int64", "long long": "int64", "int": "int32",
    "short int": "int16", "short": "int16", "signed char": "int8", "unsigned char": "uint8",
    "unsigned short": "uint16", "unsigned int": "uint32", "unsigned long": "uint64",
    "bool": "bool", "c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
    "c10::complex<c10::Half>": "complex32", "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2", "c10::Float8_e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip


def dtype_of(name: Any) -> str:
    """The profiler's type name of a tensor argument as torch prints it; "" for no tensor."""
    return _DTYPES.get(name, "") if isinstance(name, str) else ""
