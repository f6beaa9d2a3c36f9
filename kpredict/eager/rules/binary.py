"""Binary pointwise ops: arithmetic, powers, comparisons, logic and bits.

Read: aten/src/ATen/native/BinaryOps.cpp, Pow.cpp and native/cuda/Binary*.cu, Compare*.cu,
PowKernel.cu, GcdLcmKernel.cu, ZetaKernel.cu of release 2.6.0; checked with torch 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.copying import copy, fill, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import contiguous
from kpredict.eager.operands import common_dtype, one_pass
from kpredict.eager.promoting import category, result_type, to_float
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_SOURCE = "native/BinaryOps.cpp, native/cuda/Binary*.cu; 2.6.0"

_JIT = {
    "gcd": "gcd", "lcm": "lcm", "special_zeta": "zeta",
    **{
        f"special_{p}": f"{p}_forward"
        for p in (
            "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
            "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
            "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
            "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w",
        )
    },
}  # fmt: skip
_JIT_COMPLEX = {
    "logical_and": "logical_and_kernel", "logical_or": "logical_or_kernel",
    "logical_xor": "logical_xor_kernel", "logaddexp": "logaddexp_kernel",
    "sigmoid_backward": "sigmoid_backward", "tanh_backward": "tanh_backward",
}  # fmt: skip
_JIT_HALF_COMPLEX = {"mul": "mul_kernel", "div": "div_kernel", "pow": "pow_kernel"}


def _jit(op: Op, dtype: str) -> str:
    """The jiterator's kernel name, when it compiles this op's kernel for `dtype`."""
    name = op.packet.removeprefix("aten.").removesuffix("_")
    found = _JIT.get(name, "")
    if dtype.startswith("complex"):
        found = found or _JIT_COMPLEX.get(name, "")
    if dtype == "complex32":
        found = found or _JIT_HALF_COMPLEX.get(name, "")
    return found


@rule(
    "aten.add", "aten.sub", "aten.rsub", "aten.mul", "aten.maximum", "aten.minimum", "aten.fmax",
    "aten.fmin", "aten.remainder", "aten.fmod", "aten.floor_divide", "aten.hypot", "aten.gcd",
    "aten.lcm", "aten.igamma", "aten.igammac", "aten.nextafter", "aten.heaviside",
    "aten.logaddexp", "aten.logaddexp2", "aten.bitwise_and", "aten.bitwise_or",
    "aten.bitwise_xor", "aten.bitwise_left_shift", "aten.bitwise_right_shift", "aten.__lshift__",
    "aten.__rshift__", "aten.__ilshift__", "aten.__irshift__", "aten.sigmoid_backward",
    "aten.tanh_backward", "aten.logit_backward", "aten.pow.Tensor_Tensor",
    source=_SOURCE,
)  # fmt: skip
def promoted(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel in the dtype the operands promote to; an operand or output of another dtype is
    cast in the kernel. A number, or a 0-dim tensor on the host, is a kernel argument."""
    dtype = result_type(v for k, v in op.args.items() if k not in ("alpha", "out", "eps"))
    return one_pass(op, dtype, jit=_jit(op, dtype))


@rule(
    "aten.div", "aten.atan2", "aten.copysign", "aten.xlogy",
    "aten.special_xlog1py", "aten.special_zeta",
    *(f"aten.{name}" for name in _JIT if "polynomial" in name),
    source=_SOURCE,
)  # fmt: skip
def promoted_to_float(op: Op, target: Target) -> Iterable[Launch]:
    """As other binary ops, but integers compute in floating point (unless `div` rounds)."""
    dtype = result_type(v for k, v in op.args.items() if k != "out")
    if op.get("rounding_mode") is None:
        dtype = to_float(dtype)
    return one_pass(op, dtype, jit=_jit(op, dtype))


@rule(
    "aten.eq", "aten.ne", "aten.lt", "aten.le", "aten.gt", "aten.ge", "aten.logical_and",
    "aten.logical_or", "aten.logical_xor",
    source=_SOURCE + ", native/cuda/Compare*.cu",
)  # fmt: skip
def compared(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that takes the promoted dtype and gives bool."""
    dtype = common_dtype(op)
    return one_pass(op, dtype, result="bool", jit=_jit(op, dtype))


@rule("aten.pow.Tensor_Scalar", "aten.pow_.Scalar", source="native/Pow.cpp; 2.6.0")
def power(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel, whatever the exponent; a fill for exponent 0, a copy for 1. Where a float
    exponent promotes an integer base, the base is cast by a copy first."""
    x, exponent = op["self"], op["exponent"]
    base, casts = to(x, result_type([x, exponent]))
    yield from casts
    if exponent == 0:
        yield from fill(op.out, because="x ** 0 is 1")
    elif exponent == 1:
        yield from copy(op.out, x, because="x ** 1 is x")
    else:
        jit = "pow_kernel" if base.dtype == "complex32" else ""
        yield from elementwise([op.out], [base], result=base.dtype, jit=jit)


def power_of_number(out: Tensor, base: complex, exponent: Tensor) -> list[Launch]:
    """`base ** tensor`: the number is written to a 0-dim array on the GPU, which the kernel then
    broadcasts; only base 1 is a mere fill."""
    if base == 1:
        return fill(out, because="1 ** x is 1")
    dtype = result_type([base])
    scalar = contiguous(exponent, shape=(), dtype=dtype)
    common = result_type([base, exponent])
    return [
        *fill(scalar, because="the base becomes an array on the GPU"),
        *elementwise(
            [out], [scalar, exponent], compute=common, result=common, op="aten.pow.Tensor_Tensor"
        ),
    ]


@rule("aten.pow.Scalar", source="native/Pow.cpp pow_Scalar_out; 2.6.0")
def power_scalar_base(op: Op, target: Target) -> Iterable[Launch]:
    """A fill that puts the base on the GPU, then one kernel that broadcasts it."""
    return power_of_number(op.out, op["self"], op["exponent"])


@rule("aten.ldexp", source="native/BinaryOps.cpp ldexp; 2.6.0")
def ldexp(op: Op, target: Target) -> Iterable[Launch]:
    """`self * 2 ** other`: a fill, a power and a product."""
    x, other = op["self"], op["other"]
    if category(x.dtype) < 2 or x.dtype == "float32":
        scale = contiguous(other, dtype=result_type([other, 2.0]))
        yield from power_of_number(scale, 2.0, other)
    else:
        two = contiguous(x, shape=())
        scale = contiguous(other, dtype=result_type([two, other]))
        yield from fill(two, because="a 2 of the dtype of `self`")
        yield from elementwise([scale], [two, other], op="aten.pow.Tensor_Tensor")
    dtype = result_type([x, scale])
    yield from elementwise([op.out], [x, scale], compute=dtype, result=dtype, op="aten.mul.Tensor")
