"""Ops over lists of tensors, fused optimizers, and the gradient scaler.

Read: aten/src/ATen/native/ForeachOpsKernels.cpp, ForeachUtils.h and native/cuda/Foreach*.cu,
Fused*.cu, AmpKernels.cu of release 2.6.0; headers of 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kpredict.eager.calling import call
from kpredict.eager.chunking import multi_tensor_apply
from kpredict.eager.copying import fill
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import kernel, workspace
from kpredict.eager.promoting import category, result_type
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_SOURCE = "native/cuda/Foreach*.cu, native/ForeachUtils.h; 2.6.0, 2.13.0"
_UNARY = (
    "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
    "lgamma", "log", "log10", "log1p", "log2", "reciprocal", "round", "rsqrt", "sigmoid", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow")
_FLOAT_ONLY = frozenset({"div", "clamp_max", "clamp_min", "maximum", "minimum", "pow", "lerp"})
"""Integers take the slow path: the op gives floats, or its fast path does not cover them."""


def fast(
    lists: Sequence[Sequence[Tensor]],
    scalars: Sequence[Any] = (),
    *,
    floats: bool = False,
    same_dtypes: bool = True,
) -> bool:
    """Whether one kernel may take the lists (check_fast_path_restrictions).

    All tensors on the GPU, dense, of one dtype per list (of one dtype at all if `same_dtypes`);
    those at one index alike in sizes and strides; no number that would promote a tensor; no
    integers where the op must give `floats`.
    """
    first = lists[0][0]
    for tensors in lists:
        for t in tensors:
            if not (t.is_cuda and t.is_dense and t.dtype == tensors[0].dtype):
                return False
            if same_dtypes and t.dtype != first.dtype:
                return False
    for tensors in lists[1:]:
        if any(not _alike(a, b) for a, b in zip(lists[0], tensors, strict=True)):
            return False
    for i, t in enumerate(lists[0]):
        if floats and category(t.dtype) < 2:
            return False
        if scalars and result_type([scalars[0 if len(scalars) == 1 else i], t]) != t.dtype:
            return False
    return True


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and all(
        size == 1 or x == y for size, x, y in zip(a.shape, a.stride, b.stride, strict=True)
    )


def _short(op: Op) -> str:
    """`add` of `aten._foreach_add_.Scalar`."""
    return op.packet.removeprefix("aten._foreach_").removesuffix("_")


def _results(op: Op) -> list[Tensor]:
    """What the op writes: its own list when in place, else the tensors it returns."""
    if op.is_inplace:
        return list(op["self"])
    return [t for t in op.outputs if isinstance(t, Tensor)]


def _apply(op: Op, lists: Sequence[Sequence[Tensor]], target: Target, **more: Any) -> list[Launch]:
    """The fast path: the results are a list of their own unless the op is in place."""
    if op.is_inplace:
        return multi_tensor_apply(
            lists, target, reads=range(len(lists)), writes=[0], because=_why(lists), **more
        )
    everything = [*lists, _results(op)]
    return multi_tensor_apply(
        everything, target, reads=range(len(lists)), writes=[len(lists)], because=_why(lists),
        **more,
    )  # fmt: skip


def _why(lists: Sequence[Sequence[Tensor]]) -> str:
    return f"{len(lists[0])} tensors in chunks of 65536 elements"


def _one_by_one(op: Op, name: str, target: Target, each: Sequence[dict[str, Any]]) -> list[Launch]:
    """The slow path: the op of single tensors, once per tensor."""
    suffix = "_" if op.is_inplace else ""
    overload = "" if "." in name else ".default"
    packet, _, rest = name.partition(".")
    full = f"aten.{packet}{suffix}{'.' + rest if rest else overload}"
    found: list[Launch] = []
    for out, args in zip(_results(op), each, strict=True):
        found += call(full, target, out, **args)
    return found


@rule(*(f"aten._foreach_{n}" for n in _UNARY), source=_SOURCE)
def unary(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table of tensors or blocks. Integers, and lists that are not alike, are
    taken one by one."""
    tensors = op["self"]
    if fast([tensors], floats=True):
        return _apply(op, [tensors], target)
    return _one_by_one(op, _short(op), target, [{"self": t} for t in tensors])


@rule("aten._foreach_neg", "aten._foreach_abs", "aten._foreach_zero_", source=_SOURCE)
def unary_of_all(op: Op, target: Target) -> Iterable[Launch]:
    """As the other unary ops, integers included; the size of complex numbers is taken one by
    one."""
    tensors, name = op["self"], _short(op)
    if fast([tensors]) and not (name == "abs" and any(t.is_complex for t in tensors)):
        reads: list[int] = [] if name == "zero" else [0]
        if name == "zero":
            return multi_tensor_apply([tensors], target, reads=reads, writes=[0])
        return _apply(op, [tensors], target)
    return _one_by_one(op, name, target, [{"self": t} for t in tensors])


@rule(*(f"aten._foreach_{n}" for n in _BINARY), source=_SOURCE)
def binary(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table over the tensors and their partners: a second list, one number, a
    number each (which shrinks the table), or one tensor on the GPU. Lists that differ in dtype,
    strides or device, and numbers that would promote, are taken one by one."""
    if op.name.startswith("aten._foreach_pow.ScalarAndTensor"):
        return _number_to_powers(op, target)
    name = _SAME_AS.get(_short(op), _short(op))
    tensors, other = list(op["self"]), _partner(op)
    lists, joint = [tensors], True
    numbers: Sequence[Any] = ()
    more: dict[str, Any] = {}
    if isinstance(other, Tensor):
        if other.is_cuda:
            more, joint = {"also_reads": [other]}, tensors[0].dtype == other.dtype
        else:
            numbers = (_host_number(other),)
    elif not isinstance(other, tuple):
        numbers = (other,)
    elif isinstance(other[0], Tensor):
        lists.append(list(other))
        numbers = (op.get("alpha", 1),) if name in ("add", "sub") else ()
    else:
        numbers, more = other, {"scalars": True}
    if joint and fast(lists, numbers, floats=name in _FLOAT_ONLY):
        return _apply(op, lists, target, **more)
    partners = other if isinstance(other, tuple) else (other,) * len(tensors)
    return _one_by_one(
        op, _single(name, partners[0]), target,
        [{"self": t, _KEYS.get(name, "other"): p} for t, p in zip(tensors, partners, strict=True)],
    )  # fmt: skip


_SAME_AS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_KEYS = {"pow": "exponent", "clamp_min": "min", "clamp_max": "max"}


def _partner(op: Op) -> Any:
    """The other operand: a tuple of tensors or numbers, a tensor, or a number."""
    names = ("other", "scalar", "scalars", "exponent", "tensor")
    return next(op.args[k] for k in names if op.args.get(k) is not None)


def _single(name: str, partner: Any) -> str:
    """The overload of the op of single tensors that takes such a partner."""
    if name == "pow":
        return "pow.Tensor_Tensor" if isinstance(partner, Tensor) else "pow.Tensor_Scalar"
    if name in _KEYS:
        return f"{name}.Tensor" if isinstance(partner, Tensor) else name
    return f"{name}.Tensor"


def _host_number(t: Tensor) -> complex:
    """A number of the category of a host tensor: what promotion asks of it."""
    return {0: True, 1: 1, 2: 1.0, 3: 1j}[category(t.dtype)]


def _number_to_powers(op: Op, target: Target) -> list[Launch]:
    exponents = list(op["exponent"])
    if fast([exponents]):
        return _apply(op, [exponents], target)
    return _one_by_one(
        op, "pow.Scalar", target, [{"self": op["self"], "exponent": t} for t in exponents]
    )


@rule("aten._foreach_addcmul", "aten._foreach_addcdiv", source=_SOURCE)
def addc(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table over the three lists, and a fourth for the results out of place.
    A list of 0-dim tensors may stand for one factor, but not for the divisor (2.13)."""
    lists = [list(op["self"]), list(op["tensor1"]), list(op["tensor2"])]
    kind = op.overload.removesuffix("_out")
    scalars: Sequence[Any] = ()
    if kind == "Scalar":
        scalars = [op.get("value", 1)]
    elif kind == "ScalarList":
        scalars = op["scalars"]
    if category(lists[0][0].dtype) > 1:
        if fast(lists, scalars):
            return _apply(op, lists, target, scalars=kind != "Scalar")
        if kind == "Scalar" and _one_factor_is_0d(lists, scalars, "mul" in op.name):
            return _apply(op, lists, target)
    return _one_by_one(
        op, _short(op), target,
        [{"self": a, "tensor1": b, "tensor2": c} for a, b, c in zip(*lists, strict=True)],
    )  # fmt: skip


def _one_factor_is_0d(
    lists: Sequence[Sequence[Tensor]], scalars: Sequence[Any], commutes: bool
) -> bool:
    """Whether one list holds 0-dim tensors of the others' dtype, and the rest is alike."""
    for factor, rest in ((lists[1], lists[2]), (lists[2], lists[1]))[: 1 + commutes]:
        if all(t.ndim == 0 and t.is_cuda and t.dtype == lists[0][0].dtype for t in factor):
            return fast([lists[0], rest], scalars)
    return False


@rule("aten._foreach_lerp", source=_SOURCE)
def lerp(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table over both lists, and the list of weights where there is one."""
    lists = [list(op["self"]), list(op["tensors1"])]
    kind = op.overload.removesuffix("_out")
    weights: Sequence[Any] = [op.get("weight")] * len(lists[0])
    if kind == "List":
        weights = list(op["weights"])
        if fast([*lists, weights], floats=True):
            return _apply(op, [*lists, weights], target)
    elif kind == "ScalarList":
        weights = list(op["weight"])
        if fast(lists, weights, floats=True):
            return _apply(op, lists, target, scalars=True)
    elif fast(lists, floats=True):
        return _apply(op, lists, target)
    return _one_by_one(
        op, "lerp.Tensor" if kind == "List" else "lerp.Scalar", target,
        [{"self": a, "end": b, "weight": w} for a, b, w in zip(*lists, weights, strict=True)],
    )  # fmt: skip


@rule("aten._foreach_copy_", source=_SOURCE)
def copies(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table, casting on the way; one by one when the lists are not alike."""
    lists = [list(op["src"]), list(op["self"])]
    if fast(lists, same_dtypes=False):
        return multi_tensor_apply(lists, target, reads=[0], writes=[1], because=_why(lists))
    return _one_by_one(
        op, "copy", target,
        [
            {"self": to, "src": src, "non_blocking": op.get("non_blocking")}
            for src, to in zip(*lists, strict=True)
        ],
    )  # fmt: skip


@rule("aten._foreach_clone", source=_SOURCE)
def clones(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table; one by one when the list is not alike."""
    tensors = list(op["self"])
    if fast([tensors]):
        return _apply(op, [tensors], target)
    return _one_by_one(op, "clone", target, [{"self": t} for t in tensors])


_PER_CLEANUP = 400


@rule("aten._foreach_norm", "aten._foreach_powsum", "aten._foreach_max", source=_SOURCE)
def per_tensor(op: Op, target: Target) -> Iterable[Launch]:
    """A fill of the partial results, kernels over the chunks, and one clean-up kernel per 400
    tensors. Other orders than 1, 2 and infinity, integers and complex numbers go one by one."""
    tensors, name = list(op["self"]), _short(op)
    results = _results(op)
    order = op.get("ord", 2)
    simple = name == "max" or order in (1, 2) or order == float("inf")
    real = name == "max" or all(category(t.dtype) == 2 for t in tensors)
    if not (fast([tensors]) and simple and real):
        for t, out in zip(tensors, results, strict=True):
            if name == "max":
                yield from call("aten.max.default", target, out, self=t)
            else:
                yield from call("aten.linalg_vector_norm.default", target, out, self=t, ord=order)
        return
    chunks = max(-(-t.numel // 65536) for t in tensors)
    dtype = "float32" if results[0].dtype in ("float16", "bfloat16") else results[0].dtype
    partial = workspace(len(tensors) * chunks, results[0].dtype if name == "max" else dtype)
    yield from fill(partial, because="the partial results start at 0")
    for launch in multi_tensor_apply([tensors], target, reads=[0], writes=[]):
        yield kernel(
            launch.name, launch.reads, [partial], grid=launch.grid, block=launch.block,
            because=_why([tensors]),
        )  # fmt: skip
    cleanup = "lpmax_cleanup" if name == "max" else "lpnorm_cleanup"
    for start in range(0, len(tensors), _PER_CLEANUP):
        part = results[start : start + _PER_CLEANUP]
        yield kernel(cleanup, [partial], part, grid=(len(part), 1, 1), block=(512, 1, 1))
    for t, out in zip(tensors, results, strict=True):
        if t.numel == 0 and name != "max":
            yield from fill(out, because="the norm of nothing is 0")


_STATES = {
    "adam": ("grads", "exp_avgs", "exp_avg_sqs"),
    "adamw": ("grads", "exp_avgs", "exp_avg_sqs"),
    "sgd": ("grads", "momentum_buffer_list"),
    "adagrad": ("grads", "state_sums"),
}


@rule(
    "aten._fused_adam_", "aten._fused_adamw_", "aten._fused_sgd_", "aten._fused_adagrad_",
    "aten._fused_adam", "aten._fused_adamw", "aten._fused_sgd", "aten._fused_adagrad",
    source="native/cuda/Fused*Kernel.cu; 2.6.0, 2.13.0",
)  # fmt: skip
def fused_optimizer(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table over parameters, gradients and states: all are read, all but the
    gradients written (those too when a gradient scaler unscales them)."""
    name = op.packet.removeprefix("aten._fused_").removesuffix("_")
    lists = [list(op["self"]), *(list(op[n]) for n in _STATES[name])]
    if op.get("amsgrad"):
        lists.append(list(op["max_exp_avg_sqs"]))
    lists = [tensors for tensors in lists if tensors]
    written = [d for d in range(len(lists)) if d != 1 or op.get("grad_scale") is not None]
    steps = [t for t in op.get("state_steps") or () if t.is_cuda]
    scalars = [op.get(k) for k in ("lr", "grad_scale", "found_inf")]
    return multi_tensor_apply(
        lists, target, reads=range(len(lists)), writes=written, because=_why(lists),
        also_reads=[*steps, *(t for t in scalars if isinstance(t, Tensor))],
    )  # fmt: skip


@rule(
    "aten._amp_foreach_non_finite_check_and_unscale_",
    "aten._amp_foreach_non_finite_check_and_unscale",
    source="native/cuda/AmpKernels.cu; 2.6.0",
)  # fmt: skip
def unscale(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per full table that scales the gradients and notes what is not finite; gradients
    that are not dense or of another dtype take an elementwise kernel each."""
    grads = list(op["self"])
    if not grads:
        return
    together = grads
    if not fast([grads]):
        together = []
        for t in grads:
            if t.is_dense and t.dtype == grads[0].dtype:
                together.append(t)
            else:
                yield from elementwise([t], [t], reads=[t, op["inv_scale"]])
    yield from multi_tensor_apply(
        [together], target, reads=[0], writes=[0], also_reads=[op["inv_scale"]]
    )


@rule(
    "aten._amp_update_scale_", "aten._amp_update_scale", source="native/cuda/AmpKernels.cu; 2.6.0"
)
def update_scale(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel of one thread."""
    scale, tracker, found = op["self"], op["growth_tracker"], op["found_inf"]
    yield kernel(
        "amp_update_scale_cuda_kernel", [scale, tracker, found], [scale, tracker],
        grid=(1, 1, 1), block=(1, 1, 1),
    )  # fmt: skip
