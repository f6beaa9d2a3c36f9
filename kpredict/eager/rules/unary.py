"""Unary pointwise ops: one pass each, in the dtype the op computes in.

Read: aten/src/ATen/native/UnaryOps.cpp and native/cuda/Unary*.cu of release 2.6.0; names and grids
checked with torch 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.calling import call
from kpredict.eager.copying import copy, fill, like
from kpredict.eager.elementwise import elementwise, indexed
from kpredict.eager.launches import contiguous
from kpredict.eager.operands import one_pass, operands, view
from kpredict.eager.promoting import category, real_part, result_type, to_float
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_SOURCE = "native/UnaryOps.cpp, native/cuda/Unary*.cu; 2.6.0"

# ops whose kernel the jiterator compiles for every dtype: the name it gives the kernel
_JIT = {
    "erfc": "erfc_kernel", "erfinv": "erfinv_kernel", "exp2": "exp2_kernel", "i0": "i0",
    "lgamma": "lgamma_kernel", "digamma": "digamma", "sinc": "sinc",
    "special_entr": "entr", "special_erfcx": "erfcx", "special_i0e": "calc_i0e",
    "special_i1": "i1", "special_i1e": "i1e", "special_log_ndtr": "log_ndtr",
    "special_ndtri": "ndtri", "special_airy_ai": "airy_ai_forward",
    "special_bessel_j0": "bessel_j0_forward", "special_bessel_j1": "bessel_j1_forward",
    "special_bessel_y0": "bessel_y0_forward", "special_bessel_y1": "bessel_y1_forward",
    "special_modified_bessel_i0": "modified_bessel_i0_forward",
    "special_modified_bessel_i1": "modified_bessel_i1_forward",
    "special_modified_bessel_k0": "modified_bessel_k0_forward",
    "special_modified_bessel_k1": "modified_bessel_k1_forward",
    "special_scaled_modified_bessel_k0": "scaled_modified_bessel_k0_forward",
    "special_scaled_modified_bessel_k1": "scaled_modified_bessel_k1_forward",
    "special_spherical_bessel_j0": "spherical_bessel_j0_forward",
}  # fmt: skip

# ops whose kernel the jiterator compiles for complex numbers only
_JIT_COMPLEX = {
    "abs": "abs_kernel", "angle": "angle_kernel", "neg": "neg_kernel", "sgn": "sgn_kernel",
    "exp": "exp_kernel", "log": "log_kernel", "log2": "log2_kernel", "log10": "log10_kernel",
    "sqrt": "sqrt_kernel", "rsqrt": "rsqrt_kernel", "sigmoid": "sigmoid", "atan": "atan_impl",
    "atanh": "atanh_impl", "cos": "cos_impl", "cosh": "cosh_impl", "sin": "sin_impl",
    "sinh": "sinh_impl", "tan": "tan_impl", "tanh": "tanh_impl",
}  # fmt: skip


def _jit(op: Op, dtype: str) -> str:
    """The jiterator's kernel name, when it compiles this op's kernel for `dtype`."""
    name = op.packet.removeprefix("aten.").removesuffix("_")
    return _JIT.get(name) or (_JIT_COMPLEX.get(name, "") if category(dtype) == 3 else "")


@rule(
    "aten.neg", "aten.sign", "aten.sgn", "aten.bitwise_not", "aten.frac", "aten.relu",
    source=_SOURCE,
)  # fmt: skip
def same_dtype(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that computes in the input's dtype."""
    dtype = op["self"].dtype
    return one_pass(op, dtype, jit=_jit(op, dtype))


@rule(
    *(f"aten.{n}" for n in _JIT),
    "aten.acos", "aten.acosh", "aten.asin", "aten.asinh", "aten.atan", "aten.atanh", "aten.cos",
    "aten.cosh", "aten.erf", "aten.exp", "aten.expm1", "aten.log", "aten.log10", "aten.log1p",
    "aten.log2", "aten.logit", "aten.reciprocal", "aten.rsqrt", "aten.sigmoid", "aten.sin",
    "aten.sinh", "aten.sqrt", "aten.tan", "aten.tanh",
    source=_SOURCE,
)  # fmt: skip
def to_floating(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel in floating point: integers and bools are cast in the load. Special functions, and
    several functions of complex numbers, are compiled at run time under a name of their own."""
    dtype = to_float(operands(op)[0].dtype)
    return one_pass(op, dtype, jit=_jit(op, dtype))


@rule("aten.ceil", "aten.floor", "aten.round", "aten.trunc", source=_SOURCE)
def rounding(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; integers need none and are copied."""
    x = op["self"]
    if category(x.dtype) == 1 and not op.get("decimals"):
        return copy(op.out, x, because="integers are whole already")
    return one_pass(op, x.dtype)


@rule("aten.abs", "aten.angle", source=_SOURCE)
def magnitude(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; of complex numbers one into a complex temporary, then a copy of its real part."""
    x = op["self"]
    if "angle" in op.name and not x.is_complex:
        return one_pass(op, to_float(x.dtype))
    return size_of(op.out, x, _jit(op, "complex64"))


def size_of(out: Tensor, x: Tensor, jit: str = "abs_kernel") -> list[Launch]:
    """`x.abs()` into `out`; `jit` names the complex kernel, whose results are complex too."""
    if not x.is_complex or out.is_complex:
        return elementwise([out], [x], result=x.dtype, jit=jit if x.is_complex else "")
    whole = like(x)
    real = view(whole, x.shape, [2 * s for s in whole.stride], dtype=out.dtype)
    return [
        *elementwise([whole], [x], jit=jit),
        *copy(out, real, because="keeps the real part"),
    ]


@rule("aten.rad2deg", "aten.deg2rad", source=_SOURCE)
def degrees(op: Op, target: Target) -> Iterable[Launch]:
    """A multiplication with a float on the host."""
    return one_pass(op, result_type([op["self"], 1.0]))


@rule("aten.polygamma", source="native/cuda/UnaryGammaKernels.cu; 2.6.0")
def polygamma(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel compiled at run time: digamma for n = 0, trigamma for 1, else polygamma."""
    jit = {0: "digamma", 1: "trigamma"}.get(op["n"], "polygamma")
    return one_pass(op, to_float(op["self"].dtype), jit=jit)


@rule("aten.nan_to_num", source=_SOURCE)
def nan_to_num(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; integers have no NaN and are copied."""
    x = op["self"]
    if category(x.dtype) < 2:
        return copy(op.out, x, because="integers have no NaN")
    return one_pass(op, x.dtype)


@rule("aten.logical_not", "aten.signbit", source=_SOURCE)
def to_bool(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that takes the input's dtype and gives bool; the sign of a bool is a fill."""
    x = op["self"]
    if x.dtype == "bool" and "signbit" in op.name:
        return fill(op.out, because="no bool is negative")
    return one_pass(op, x.dtype, result="bool")


@rule("aten.isposinf", "aten.isneginf", source="native/TensorCompare.cpp; 2.6.0")
def is_signed_infinity(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that gives bool; a fill with False for integers."""
    x = op["self"]
    if category(x.dtype) < 2:
        return fill(op.out, because="integers are finite")
    return one_pass(op, x.dtype, result="bool")


@rule("aten.isnan", source="native/TensorCompare.cpp: self != self; 2.6.0")
def isnan(op: Op, target: Target) -> Iterable[Launch]:
    """`self != self`: one kernel with the input as both operands."""
    x = op["self"]
    return elementwise(
        [op.out], [x, x], compute=x.dtype, result="bool", reads=[x], op="aten.ne.Tensor"
    )


@rule("aten.isinf", source="native/TensorCompare.cpp; 2.6.0")
def isinf(op: Op, target: Target) -> Iterable[Launch]:
    """`abs` and `== inf`: two kernels; a fill for integers; both parts and an `or` for complex."""
    x = op["self"]
    if category(x.dtype) < 2:
        return fill(op.out, because="integers are finite")
    if x.is_complex:
        found, flags = [], []
        for offset in (0, 1):
            part = view(x, x.shape, [2 * s for s in x.stride], offset, real_part(x.dtype))
            flags.append(contiguous(x, dtype="bool"))
            found += _abs_is_inf(flags[-1], part)
        return found + elementwise([op.out], flags, compute="bool", op="aten.logical_or.default")
    return _abs_is_inf(op.out, x)


def _abs_is_inf(out: Tensor, x: Tensor) -> list[Launch]:
    size = like(x)
    return [
        *elementwise([size], [x], op="aten.abs.default"),
        *elementwise([out], [size], compute=x.dtype, result="bool", op="aten.eq.Scalar"),
    ]


@rule("aten.frexp", source="native/cuda/UnaryOpsKernel.cu; 2.6.0")
def frexp(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel with two outputs, mantissa and exponent."""
    outs = [t for t in op.outputs if isinstance(t, Tensor)]
    return elementwise(outs, operands(op)[:1])


@rule("aten.conj_physical", "aten._conj_physical", source="native/UnaryOps.cpp; 2.6.0")
def conj_physical(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel for complex numbers, nothing for real ones."""
    x = op["self"]
    if not x.is_complex:
        return []
    return one_pass(op, x.dtype, jit="conj_kernel" if x.dtype == "complex32" else "")


@rule("aten.mvlgamma", source="native/UnaryOps.cpp mvlgamma; 2.6.0")
def mvlgamma(op: Op, target: Target) -> Iterable[Launch]:
    """arange, a sum of every element with every step, lgamma in place, a sum over the steps, an
    addition in place; in place of the input, a copy."""
    x, steps = op["self"], op["p"]
    dtype = x.dtype if op.is_inplace else to_float(x.dtype)
    line = contiguous(x, shape=(steps,), dtype=dtype)
    grid = contiguous(x, shape=(*x.shape, steps), dtype=dtype)
    total = contiguous(x, dtype=dtype) if op.is_inplace else op.out
    column = view(x, (*x.shape, 1), (*x.stride, 1))
    yield from indexed(line)
    yield from elementwise([grid], [line, column], compute=dtype, op="aten.add.Tensor")
    yield from elementwise([grid], [grid], jit=_JIT["lgamma"], op="aten.lgamma_.default")
    yield from call("aten.sum.dim_IntList", target, total, self=grid, dim=(-1,), keepdim=False)
    yield from elementwise([total], [total], op="aten.add_.Scalar")
    if op.is_inplace:
        yield from copy(op.out, total)
