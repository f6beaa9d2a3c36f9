"""Python's operators on Arrays and on plain values, their truth, and the attributes of an Array."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kpredict.model import ITEMSIZE
from kpredict.source.infer.dispatching import Dispatching
from kpredict.source.infer.joining import touches
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.surface import dtypes
from kpredict.source.infer.values import (
    UNKNOWN,
    Array,
    Class,
    Device,
    DType,
    Function,
    Instance,
    Layout,
    Symbol,
    Value,
)  # fmt: skip

BINARY: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul), ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv), ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("pow", operator.pow), ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("bitwise_and", operator.and_), ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor), ast.LShift: ("bitwise_left_shift", operator.lshift),
    ast.RShift: ("bitwise_right_shift", operator.rshift),
}  # fmt: skip
COMPARE: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne), ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt), ast.GtE: ("ge", operator.ge),
}  # fmt: skip
_DUNDER: Mapping[type[ast.operator], str] = {
    ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
"""Python's names of operators where ATen has others."""
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_NAMED = (Symbol, Function, Class)
LARGEST_FOLD = 100_000  # longest sequence or text that folding of constants may build


class Arrays(Dispatching):
    def binary(self, op: type[ast.operator], a: Value, b: Value) -> Value:
        name, python = BINARY[op]
        if isinstance(a, Instance) or isinstance(b, Instance):
            return self.overloaded(f"__{_DUNDER.get(op, name)}__", a, b)
        if not isinstance(a, Array) and not isinstance(b, Array):
            return fold(python, a, b)
        if name == "matmul":
            return self.torch_call("matmul", (a, b), {})
        if isinstance(a, Array):
            return self.aten(name, a, b)
        assert isinstance(b, Array)
        if a is UNKNOWN or name in ("add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"):
            if a is UNKNOWN and name in ("div", "pow"):
                return self._whichever(name, b)
            return self.aten(name, b, a)
        if name == "sub":
            return self.aten("rsub", b, a)
        if name == "div":
            return self.aten("mul", self.aten("reciprocal", b), a)
        return self.aten(name, a, b)

    def _whichever(self, name: str, b: Array) -> Value:
        """`unknown / array`: an array's division or a number's."""
        return self.aten(name, fresh(None, b.dtype, b.device), b)

    def overloaded(self, name: str, a: Value, b: Value) -> Value:
        """An operator of which one side is an object of the user's: its method, if it has one."""
        for owner, method, other in ((a, name, b), (b, f"__r{name[2:]}", a)):
            if isinstance(owner, Instance) and isinstance(owner.cls.find(method), Function):
                return self.call(self.attribute(owner, method), (other,), {})
        if touches([a, b]):
            self.missing(name)
        return UNKNOWN

    def augmented(self, op: type[ast.operator], a: Value, b: Value) -> Value:
        if isinstance(a, Array):
            name, _ = BINARY[op]
            if name == "matmul":
                return self.binary(op, a, b)
            return self.aten(name + "_", a, b)
        if isinstance(a, list) and isinstance(b, (list, tuple)) and op is ast.Add:
            a += b
            return a
        if isinstance(a, Instance):
            method = f"__i{_DUNDER.get(op, BINARY[op][0])}__"
            if isinstance(a.cls.find(method), Function):
                return self.call(self.attribute(a, method), (b,), {})
        return self.binary(op, a, b)

    def compare(self, op: type[ast.cmpop], a: Value, b: Value) -> Value:
        if op in (ast.Is, ast.IsNot):
            return self._identical(a, b, op is ast.IsNot)
        if op in (ast.In, ast.NotIn):
            return _contains(a, b, op is ast.NotIn)
        name, python = COMPARE[op]
        if isinstance(a, Instance) and isinstance(a.cls.find(f"__{name}__"), Function):
            return self.call(self.attribute(a, f"__{name}__"), (b,), {})
        if isinstance(a, Array):
            return self.aten(name, a, b)
        if isinstance(b, Array):
            mirrored = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(name, name)
            return self.aten(mirrored, b, a)
        named = isinstance(a, _NAMED) or isinstance(b, _NAMED)
        if named and name in ("eq", "ne") and UNKNOWN not in (a, b):
            return (a == b) == (name == "eq")
        return fold(python, a, b)

    @staticmethod
    def _identical(a: Value, b: Value, negated: bool) -> Value:
        if a is UNKNOWN or b is UNKNOWN:
            return UNKNOWN
        if isinstance(a, (int, float, str)) and isinstance(b, (int, float, str)):
            return (type(a) is type(b) and a == b) != negated
        if isinstance(a, (DType, Device, Layout, Symbol)):
            return (a == b) != negated
        return (a is b) != negated

    def unary(self, op: ast.unaryop, a: Value) -> Value:
        if isinstance(a, Array):
            if isinstance(op, ast.USub):
                return self.aten("neg", a)
            if isinstance(op, ast.Invert):
                return self.aten("bitwise_not", a)
            if isinstance(op, ast.Not):
                self.truth(a)
                return UNKNOWN
            return a
        if isinstance(op, ast.Not):
            known = self.truth(a)
            return UNKNOWN if known is None else not known
        try:
            return UNKNOWN if a is UNKNOWN else _UNARY[type(op)](a)
        except Exception:
            return UNKNOWN

    def truth(self, value: Value) -> bool | None:
        """`bool(value)`, or None when it is not known. A GPU array makes the host wait."""
        if isinstance(value, Array):
            if value.device == "cuda":
                self.aten("_local_scalar_dense", value)
                self.sync("bool", value)
            open_ = self.assume is None or value.key in self.checks
            return None if open_ else bool(self.assume)
        if value is UNKNOWN or not isinstance(value, _PLAIN):
            return None
        return bool(value)

    # -- attributes ------------------------------------------------------------------------

    def array_attribute(self, a: Array, name: str) -> Value:
        """The value of a plain attribute; UNKNOWN for a name that is no such attribute."""
        shape = UNKNOWN if a.shape is None else tuple(UNKNOWN if d is None else d for d in a.shape)
        simple: dict[str, Value] = {
            "shape": shape, "device": Device(a.device),
            "dtype": UNKNOWN if a.dtype is None else DType(a.dtype),
            "is_cuda": a.device == "cuda", "requires_grad": a.requires_grad,
            "ndim": UNKNOWN if a.ndim is None else a.ndim,
            "data": replace(a, requires_grad=False), "layout": Layout("strided"),
            "is_sparse": False, "is_quantized": False, "is_nested": False, "is_meta": False,
            "itemsize": ITEMSIZE.get(a.dtype or "", UNKNOWN),
        }  # fmt: skip
        if name in simple:
            return simple[name]
        if name in ("T", "mT", "H", "mH") and a.ndim == 2:
            return self.aten("transpose", a, 0, 1)
        if name == "mT":
            return self.aten("transpose", a, -2, -1)
        if name == "T" and a.ndim is not None:
            return self.aten("permute", a, tuple(range(a.ndim - 1, -1, -1)))
        if name in ("real", "imag"):
            return (
                self.aten("view_as_real", a)
                if a.dtype is None
                else replace(
                    a,
                    dtype={"complex64": "float32", "complex128": "float64"}.get(a.dtype, a.dtype),
                    stride=None,
                )
            )
        if name == "grad":
            return self.gradient_of(a)
        return UNKNOWN


def fold(f: Callable[[Any, Any], Any], a: Value, b: Value) -> Value:
    """`f(a, b)` on plain values; UNKNOWN where it fails or would build something huge."""
    if a is UNKNOWN or b is UNKNOWN or not isinstance(a, _PLAIN) or not isinstance(b, _PLAIN):
        return UNKNOWN
    if f is operator.pow and isinstance(b, int) and abs(b) > 64:
        return UNKNOWN
    if f is operator.lshift and isinstance(b, int) and b > 128:
        return UNKNOWN
    if f is operator.mul:
        pairs: tuple[tuple[Any, Any], ...] = ((a, b), (b, a))
        for seq, n in pairs:
            long = isinstance(seq, (str, list, tuple)) and isinstance(n, int)
            if long and len(seq) * max(n, 0) > LARGEST_FOLD:
                return UNKNOWN
    if f is operator.mod and isinstance(a, str):
        return UNKNOWN
    try:
        return f(a, b)
    except Exception:
        return UNKNOWN


_PLAIN = (int, float, complex, str, bytes, tuple, list, dict, set, frozenset, range, slice,
          type(None), DType, Device, Layout)  # fmt: skip


def _contains(item: Value, container: Value, negated: bool) -> Value:
    if isinstance(container, (list, tuple, set, dict, str, range, frozenset)):
        if item is UNKNOWN or isinstance(item, Array):
            return UNKNOWN
        try:
            found = item in container
        except Exception:
            return UNKNOWN
        if not found and not isinstance(container, (str, range)) and UNKNOWN in list(container):
            return UNKNOWN
        return found != negated
    return UNKNOWN


def dtype_named(name: str) -> DType | None:
    """`float32` or `long` as an attribute of torch, if it is one."""
    found = dtypes().get(name)
    return DType(found) if found else None
