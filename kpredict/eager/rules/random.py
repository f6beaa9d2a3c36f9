"""Random numbers and dropout.

Read: aten/src/ATen/native/Distributions.cpp, Dropout.cpp, TensorFactories.cpp and native/cuda/
Distributions.cu, Dropout.cu, Randperm.cu, MultinomialKernel.cu of release 2.6.0; templates of
2.13.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.calling import call
from kpredict.eager.copying import copy, expand, fill, like, read_by_host, to
from kpredict.eager.cub import radix_sort
from kpredict.eager.elementwise import blocks, elementwise
from kpredict.eager.generating import fill_random, pointwise_apply, resident_blocks
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.operands import view
from kpredict.eager.promoting import result_type
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_SOURCE = "native/Distributions.cpp, native/cuda/DistributionTemplates.h; 2.6.0, 2.13.0"


@rule(
    "aten.rand", "aten.rand_like", "aten.randn", "aten.randn_like", "aten.randint",
    "aten.randint_like", "aten.random", "aten.random_", "aten.uniform", "aten.uniform_",
    "aten.normal_", "aten.normal.float_float", "aten.exponential", "aten.exponential_",
    "aten.cauchy", "aten.cauchy_", "aten.log_normal", "aten.log_normal_", "aten.geometric",
    "aten.geometric_", "aten.bernoulli_.float", "aten.bernoulli.p",
    source=_SOURCE,
)  # fmt: skip
def filled(op: Op, target: Target) -> Iterable[Launch]:
    """One grid-stride kernel whose grid is at most what the GPU's SMs hold."""
    return fill_random(op.out, target)


@rule("aten.normal", source="native/DistributionTemplates.h normal_out_impl; 2.13.0")
def normal(op: Op, target: Target) -> Iterable[Launch]:
    """Fills the result, then scales by `std` and adds `mean` in place where they are arrays. An
    array of deviations is first checked on the host for negative values."""
    mean, std, out = op["mean"], op["std"], op.out
    if isinstance(std, Tensor) and std.numel:
        least, flag = contiguous(std, shape=()), contiguous(std, shape=(), dtype="bool")
        yield from call("aten.min.default", target, least, self=std)
        yield from elementwise(
            [flag], [least], compute=std.dtype, result="bool", op="aten.ge.Scalar"
        )
        yield from read_by_host(flag)
    if not isinstance(mean, Tensor):
        mean = contiguous(out, shape=())
        yield from fill(mean, because="the mean becomes an array on the GPU")
    yield from fill_random(out, target)
    if isinstance(std, Tensor):
        yield from elementwise(
            [out], [out, std], compute=result_type([out, std]), op="aten.mul_.Tensor"
        )
    yield from elementwise(
        [out], [out, mean], compute=result_type([out, mean]), op="aten.add_.Tensor"
    )


@rule("aten.bernoulli", "aten.bernoulli_.Tensor", source=_SOURCE)
def bernoulli(op: Op, target: Target) -> Iterable[Launch]:
    """One pointwise-apply kernel, four elements per thread; the probabilities are cast to float (to
    double for a double result) by a copy first."""
    p, out = op.get("p", op["self"]), op.out
    cast, casts = to(p, "float64" if out.dtype == "float64" else "float32")
    yield from casts
    yield from pointwise_apply(out, [expand(cast, out.shape)], per_thread=4)


@rule("aten.poisson", source="native/cuda/Distributions.cu; 2.6.0")
def poisson(op: Op, target: Target) -> Iterable[Launch]:
    """One pointwise-apply kernel."""
    return pointwise_apply(op.out, [op["self"]])


@rule("aten._standard_gamma", source="native/cuda/Distributions.cu; 2.6.0")
def gamma(op: Op, target: Target) -> Iterable[Launch]:
    """One pointwise-apply kernel in blocks of 256."""
    return pointwise_apply(op.out, [op["self"]], threads=256)


@rule("aten._sample_dirichlet", source="native/cuda/Distributions.cpp; 2.6.0")
def dirichlet(op: Op, target: Target) -> Iterable[Launch]:
    """A gamma sample, its sum over the last dim, a division in place."""
    out = op.out
    yield from pointwise_apply(out, [op["self"]], threads=256)
    total = contiguous(out, shape=(*out.shape[:-1], 1))
    yield from call("aten.sum.dim_IntList", target, total, self=out, dim=(-1,), keepdim=True)
    yield from elementwise([out], [out, total])


@rule("aten._standard_gamma_grad", "aten._dirichlet_grad", source=_SOURCE)
def sample_gradients(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise kernel."""
    return elementwise([op.out], list(op.inputs))


@rule("aten.binomial", source="native/cuda/Distributions.cu; 2.6.0")
def binomial(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel of its own, eight elements per thread."""
    out = op.out
    if out.numel:
        yield kernel(
            "distribution_binary_elementwise_kernel", [op["count"], op["prob"]], [out],
            grid=blocks(out.numel, 8), block=(128, 1, 1),
        )  # fmt: skip


@rule("aten.native_dropout", "aten._fused_dropout", source="native/cuda/Dropout.cu; 2.6.0")
def dropout(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that writes result and mask: vectorized when input and results are dense, aligned
    and of an even number of elements. Without training a copy and a fill; with p = 1 two fills."""
    x = op["input"] if "input" in op.args else op["self"]
    out, mask = [t for t in op.outputs if isinstance(t, Tensor)]
    if op.get("train") is False:
        yield from copy(out, x)
        yield from fill(mask)
    elif op["p"] == 1 and "native" in op.name:
        yield from fill(out)
        yield from fill(mask)
    elif x.numel == 0:
        return
    else:
        name = "fused_dropout_kernel_vec" if _vector(x) > 1 else "fused_dropout_kernel"
        grid = (resident_blocks(x.numel, target), 1, 1)
        yield kernel(name, [x], [out, mask], grid=grid, block=(256, 1, 1))


def _vector(x: Tensor) -> int:
    """Elements per load: up to 4, dividing the number of elements; 1 for gaps or odd addresses."""
    size = 4 if x.is_dense else 1
    while size > 1 and x.offset % size:
        size //= 2
    while size > 1 and x.numel % size:
        size //= 2
    return size


@rule("aten.native_dropout_backward", "aten._masked_scale", source="native/cuda/Dropout.cu; 2.6.0")
def dropout_backward(op: Op, target: Target) -> Iterable[Launch]:
    """One elementwise kernel over gradient and mask."""
    grad = op["grad_output"] if "grad_output" in op.args else op["self"]
    mask = op["mask"]
    return elementwise([op.out], [grad, mask], compute=(grad.dtype, mask.dtype))


@rule("aten.randperm", source="native/cuda/Randperm.cu; 2.6.0")
def randperm(op: Op, target: Target) -> Iterable[Launch]:
    """A fill (of the check that the dtype can count so far), arange, random keys, a radix sort by
    just enough of their bits, a kernel that shuffles equal keys."""
    out = op.out
    n = out.numel
    if not out.is_cuda:
        return
    yield from fill(contiguous(out, shape=()), because="checks that the dtype can count so far")
    if n == 0:
        return
    numbers, result = contiguous(out), out if out.is_contiguous else contiguous(out)
    yield from call("aten.arange.start_out", target, numbers)
    bits = min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (math.log(0.9) * 12))))
    keys = contiguous(out, dtype="int32" if bits <= 32 else "int64")
    yield from call("aten.random_.from", target, keys, self=keys)
    ordered = contiguous(keys)
    yield from radix_sort([keys, numbers], [ordered, result], bits=bits)
    yield kernel(
        "randperm_handle_duplicate_keys_kernel", [ordered, result], [result],
        grid=blocks(n, 1, 512), block=(512, 1, 1),
    )  # fmt: skip
    if result is not out:
        yield from copy(out, result)


@rule("aten.multinomial", source="native/Distributions.cpp multinomial_out; 2.6.0")
def multinomial(op: Op, target: Target) -> Iterable[Launch]:
    """Without replacement, or for one sample: checks of the probabilities on the GPU, exponential
    noise, a division, and an argmax or a top-k. With replacement: normalized copies, their
    cumulative sum, one kernel that samples."""
    x, count, out = op["self"], op["num_samples"], op.out
    if x.numel == 0 or out.numel == 0:
        return
    if op["replacement"] and count > 1:
        yield from _with_replacement(x, out, target)
        return
    yield from _checks(x, target)
    noise = like(x)
    yield from call("aten.exponential_.default", target, noise, self=noise)
    yield from elementwise([noise], [x, noise], op="aten.div.Tensor")
    if count == 1:
        yield from call("aten.argmax.default", target, out, self=noise, dim=-1, keepdim=True)
    else:
        values = contiguous(out, dtype=x.dtype)
        yield from call(
            "aten.topk.default", target, values, out, self=noise, k=count, dim=-1, largest=True,
            sorted=True,
        )  # fmt: skip


def _checks(x: Tensor, target: Target) -> Iterable[Launch]:
    """Probabilities are finite, not negative, and no row is all zeros: asserted on the GPU."""
    low, high, ok = (
        contiguous(x, shape=()),
        contiguous(x, shape=()),
        contiguous(x, shape=(), dtype="bool"),
    )
    yield from call("aten.aminmax.default", target, low, high, self=x, dim=None)
    for bound, test in ((low, "aten.ge.Scalar"), (high, "aten.lt.Scalar")):
        yield from elementwise([ok], [bound], compute=x.dtype, result="bool", op=test)
    yield from elementwise([ok], [ok, ok], compute="bool", op="aten.bitwise_and.Tensor")
    yield from _assert_on_device(ok)
    rows = contiguous(x, shape=x.shape[:-1])
    empty = contiguous(x, shape=x.shape[:-1], dtype="bool")
    yield from call("aten.sum.dim_IntList", target, rows, self=x, dim=(-1,), keepdim=False)
    yield from elementwise([empty], [rows], compute=x.dtype, result="bool", op="aten.eq.Scalar")
    if x.ndim > 1:
        yield from call("aten.any.default", target, ok, self=empty, dim=None)
    yield from elementwise([ok], [ok], op="aten.bitwise_not.default")
    yield from _assert_on_device(ok)


def _assert_on_device(flag: Tensor) -> Iterable[Launch]:
    launch = kernel("_assert_async_cuda_kernel", [flag], [], grid=(1, 1, 1), block=(1, 1, 1))
    yield replace(launch, ops=("aten._assert_async.default",))


def _with_replacement(x: Tensor, out: Tensor, target: Target) -> Iterable[Launch]:
    rows, width = x.numel // x.shape[-1], x.shape[-1]
    original, normal, sums = (contiguous(x, shape=(rows, width)) for _ in range(3))
    yield from copy(
        original, view(x, (rows, width), (x.stride[0] if x.ndim > 1 else 0, x.stride[-1]))
    )
    yield from copy(normal, original)
    warps = max(min(-(-width // 32) * 32, 1024), 128 if rows > 0 else 32)
    yield kernel(
        "renormRowsL1", [normal], [normal], grid=(min(rows, target.sms * 4), 1, 1),
        block=(warps, 1, 1),
    )  # fmt: skip
    yield from call("aten.cumsum.default", target, sums, self=normal, dim=1)
    samples = out.numel // rows
    yield kernel(
        "sampleMultinomialWithReplacement", [sums, normal], [out],
        grid=(-(-samples // 128), min(rows, 65535), 1), block=(128, 1, 1),
    )  # fmt: skip
