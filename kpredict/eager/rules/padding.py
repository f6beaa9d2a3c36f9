"""Padding: constant, reflected and replicated borders, both directions."""

from __future__ import annotations

from collections.abc import Iterable

from kpredict.eager.copying import compact, copy, fill, zero
from kpredict.eager.launches import kernel
from kpredict.eager.operands import narrow
from kpredict.eager.registry import rule
from kpredict.model import Launch, Op, Target, Tensor

GRID_LIMIT = 65535
"""Blocks along y and z of one launch; more planes or images take more launches."""


@rule("aten.constant_pad_nd", source="native/PadNd.cpp constant_pad_nd; 2.6.0")
def constant_pad_nd(op: Op, target: Target) -> Iterable[Launch]:
    """A fill of the result and a copy into its inner part. When nothing grows, the part that is
    kept is cloned: one copy."""
    x, out, pads = op["self"], op.out, _pads(op)
    kept = _cut(x, [(dim, -before, -after) for dim, before, after in pads])
    if not any(before > 0 or after > 0 for _, before, after in pads):
        return copy(out, kept, because="only cut: the kept part is cloned")
    return [
        *fill(out, because="the border's value everywhere"),
        *copy(_cut(out, pads), kept, because="the inner part"),
    ]


def _pads(op: Op) -> list[tuple[int, int, int]]:
    """(dim, before, after): pairs are given from the last dim on."""
    pad, last = op["pad"], op["self"].ndim - 1
    return [(last - i, pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]


def _cut(t: Tensor, pads: list[tuple[int, int, int]]) -> Tensor:
    """`t` without that much at the ends of each dim; what is negative is not cut."""
    for dim, before, after in pads:
        start, end = max(before, 0), max(after, 0)
        t = narrow(t, dim, start, t.shape[dim] - start - end)
    return t


@rule(
    "aten.reflection_pad1d", "aten.reflection_pad2d", "aten.reflection_pad3d",
    source="cuda/ReflectionPad.cu; 2.6.0, main of 2026",
)  # fmt: skip
def reflection_pad(op: Op, target: Target) -> Iterable[Launch]:
    """The input is made contiguous, then one kernel per 65,535 planes and per 65,535 images. In 1-D
    more planes or images than that go to one flat kernel."""
    x, copies = compact(op["self"])
    n = _padded_dims(op)
    if n == 1 and _launches(op.out, n) > 1:
        return [*copies, kernel("reflection_pad1d_flat", [x], [op.out], because="many planes")]
    return [*copies, *_planes(f"reflection_pad{n}d_out_kernel", x, op.out, op.out, n)]


@rule(
    "aten.reflection_pad1d_backward", "aten.reflection_pad2d_backward",
    "aten.reflection_pad3d_backward",
    source="cuda/ReflectionPad.cu; 2.6.0, main of 2026",
)  # fmt: skip
def reflection_pad_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then atomic additions by kernels as in the forward direction; in 1-D and 2-D the
    gradient is made contiguous."""
    yield from zero(op.out, because="gradients are added up in it")
    grad, n = op["grad_output"], _padded_dims(op)
    if n < 3:
        grad, copies = compact(grad)
        yield from copies
    if n == 1 and _launches(op.out, n) > 1:
        yield kernel("reflection_pad1d_backward_flat", [grad], [op.out], because="many planes")
        return
    yield from _planes(f"reflection_pad{n}d_backward_out_kernel", grad, op.out, op.out, n)


@rule(
    "aten.replication_pad1d", "aten.replication_pad2d", "aten.replication_pad3d",
    source="cuda/ReplicationPadding.cu; 2.6.0",
)  # fmt: skip
def replication_pad(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel per 65,535 planes and per 65,535 images, any strides."""
    n = _padded_dims(op)
    return _planes(f"replication_pad_forward_kernel{n}d", op["self"], op.out, op.out, n)


@rule(
    "aten.replication_pad1d_backward", "aten.replication_pad2d_backward",
    "aten.replication_pad3d_backward", source="cuda/ReplicationPadding.cu; 2.6.0",
)  # fmt: skip
def replication_pad_backward(op: Op, target: Target) -> Iterable[Launch]:
    """Zeros, then atomic additions by kernels as in the forward direction."""
    grad, n = op["grad_output"], _padded_dims(op)
    yield from zero(op.out, because="gradients are added up in it")
    yield from _planes("replication_pad_backward_kernel", grad, op.out, grad, n)


def _padded_dims(op: Op) -> int:
    """1, 2 or 3, by the op's name."""
    return int(op.packet.split("_pad")[1][0])


def _launches(t: Tensor, n: int) -> int:
    """How many launches cover the planes and images of `t`, whose last `n` dims are padded."""
    images = t.shape[0] if t.ndim == n + 2 else 1
    return -(-t.shape[-n - 1] // GRID_LIMIT) * -(-images // GRID_LIMIT)


def _planes(name: str, source: Tensor, out: Tensor, over: Tensor, n: int) -> list[Launch]:
    if out.numel == 0 or source.numel == 0:
        return []
    launches = _launches(over, n)
    why = f"{launches} launches of at most {GRID_LIMIT} planes" if launches > 1 else ""
    return [kernel(name, [source], [out], because=why) for _ in range(launches)]
