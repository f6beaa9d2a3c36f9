"""What a profiler recorded of an op call's arguments → types and arrays of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the profiler recorded of one op call's arguments, in schema order.

    `dims` and `strides` hold the sizes of a tensor, or a list of them for a list of tensors;
    `concrete` holds scalars and lists as text. A column that was not recorded is empty.
    """

    dims: tuple[Any, ...] = ()
    types: tuple[Any, ...] = ()
    strides: tuple[Any, ...] = ()
    concrete: tuple[Any, ...] = ()


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


def tensor_arguments(inputs: Inputs) -> tuple[str, ...]:
    """Each tensor argument as `float32[64,128](128,1)`; strides where they were recorded."""
    found = []
    for i, dims in enumerate(inputs.dims):
        dtype = dtype_of(inputs.types[i]) if i < len(inputs.types) else ""
        if dtype and all(isinstance(d, int) for d in dims):
            stride = inputs.strides[i] if i < len(inputs.strides) else ()
            found.append(f"{dtype}[{_joined(dims)}]" + (f"({_joined(stride)})" if stride else ""))
    return tuple(found)


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
