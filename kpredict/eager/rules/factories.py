"""New arrays: constants, ranges, identities, windows.

Read: aten/src/ATen/native/TensorFactories.cpp and native/cuda/RangeFactories.cu, TensorFactories.cu
of release 2.6.0; checked with torch 2.13.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.calling import call
from kpredict.eager.copying import copy, fill, read_by_host
from kpredict.eager.elementwise import blocks, elementwise, indexed
from kpredict.eager.launches import contiguous, kernel
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

_SOURCE = "native/TensorFactories.cpp; 2.6.0"


@rule(
    "aten.zeros", "aten.zeros_like", "aten.new_zeros", "aten.ones", "aten.ones_like",
    "aten.new_ones", "aten.full", "aten.full_like", "aten.new_full", "aten.scalar_tensor",
    "aten._new_zeros_with_same_feature_meta",
    source=_SOURCE,
)  # fmt: skip
def constants(op: Op, target: Target) -> Iterable[Launch]:
    """A new array and a fill: one elementwise kernel; nothing when it has no elements."""
    return fill(op.out)


@rule("aten.arange", "aten.range", source="native/cuda/RangeFactories.cu; 2.6.0")
def ranges(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that computes each element from its index."""
    return by_index(op.out)


@rule("aten.linspace", "aten.logspace", source="native/cuda/RangeFactories.cu; 2.6.0")
def spaces(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that computes each element from its index; a fill when there is one element. End
    points that are arrays on the GPU are read by the host first."""
    for end in (op["start"], op["end"]):
        if isinstance(end, Tensor):
            yield from read_by_host(end)
    yield from fill(op.out) if op.out.numel == 1 else by_index(op.out)


def by_index(out: Tensor) -> list[Launch]:
    """A kernel that writes from the index; into other layouts by way of a row-major array."""
    if not out.is_cuda:
        return []
    if out.is_contiguous:
        return indexed(out)
    straight = contiguous(out)
    return [*indexed(straight), *copy(out, straight)]


@rule("aten.eye", source="native/cuda/TensorFactories.cu eye_out_cuda; 2.6.0")
def eye(op: Op, target: Target) -> Iterable[Launch]:
    """A fill with 0, then a fill of the diagonal with 1."""
    out = op.out
    diagonal = view(out, (min(out.shape),), (sum(out.stride),))
    return [*fill(out, because="fills with 0"), *fill(diagonal, because="the diagonal")]


@rule("aten.tril_indices", "aten.triu_indices", source="native/cuda/TensorFactories.cu; 2.6.0")
def triangle_indices(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel of its own when there is anything to write, whatever the offset."""
    out = op.out
    if out.numel:
        name = op.packet.removeprefix("aten.") + "_kernel"
        yield kernel(name, [], [out], grid=blocks(out.shape[1], 1, 512), block=(512, 1, 1))


@rule(
    "aten.hann_window", "aten.hamming_window", "aten.bartlett_window", "aten.blackman_window",
    "aten.kaiser_window",
    source=_SOURCE,
)  # fmt: skip
def windows(op: Op, target: Target) -> Iterable[Launch]:
    """arange, then the window's formula in place, an elementwise kernel per step. A periodic window
    is computed with one element more. One element is a fill."""
    out, name = op.out, op.packet.removeprefix("aten.").removesuffix("_window")
    if out.numel < 2:
        yield from fill(out)
        return
    w = contiguous(out, shape=(out.numel + (op.get("periodic", True) is not False),))
    yield from call("aten.arange.start_out", target, w)
    if name in ("hann", "hamming"):
        yield from _in_place(w, "mul_", "cos_", "mul_", "add_")
    elif name == "bartlett":
        yield from _in_place(w, "mul_")
        half = ((w.numel - 1) >> 1) + 1
        yield from _in_place(narrow(w, 0, half, w.numel - half), "mul_", "add_")
    elif name == "blackman":
        yield from _in_place(w, "mul_")
        for term in (terms := [contiguous(w), contiguous(w)]):
            yield from elementwise([term], [w], op="aten.mul.Scalar")
            yield from _in_place(term, "cos_", "mul_")
        yield from elementwise([terms[0]], terms, op="aten.sub.Tensor")
        yield from elementwise([w], [terms[0]], op="aten.add.Scalar")
    else:
        yield from elementwise([contiguous(w)], [w], jit="kaiser_window")


@rule("aten.fft_fftfreq", "aten.fft_rfftfreq", source="native/SpectralOps.cpp; 2.6.0")
def frequencies(op: Op, target: Target) -> Iterable[Launch]:
    """Ranges, of fftfreq a second one over the negative half, and a division in place."""
    out = op.out
    yield from call("aten.arange.start_out", target, out)
    if op.packet == "aten.fft_fftfreq":
        positive = (out.numel + 1) // 2
        negative = narrow(out, 0, positive, out.numel - positive)
        yield from call("aten.arange.start_out", target, negative)
    yield from _in_place(out, "mul_")


def _in_place(t: Tensor, *steps: str) -> list[Launch]:
    return [launch for step in steps for launch in elementwise([t], [t], op=f"aten.{step}.default")]
