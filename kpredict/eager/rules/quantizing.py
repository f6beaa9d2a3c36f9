"""Numbers as integers with a scale: fake quantization, its observers, and quantized tensors.

Read: aten/src/ATen/native/quantized/{FakeQuant*,AffineQuantizer}.cpp, quantized/cuda/*.cu and
quantized/Quantizer.cpp of release 2.6.0. A number that the host reads on the way is taken to let
it go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kpredict.eager.calling import Host
from kpredict.eager.copying import compact, copy, fill, like, read_by_host, to
from kpredict.eager.elementwise import elementwise
from kpredict.eager.launches import kernel, workspace
from kpredict.eager.operands import view
from kpredict.eager.registry import rule
from kpredict.eager.shaping import flat, formatted, permute, suggested_format, wrap
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_PER_TENSOR = "native/quantized/FakeQuantPerTensorAffine.cpp; 2.6.0"
_PER_CHANNEL = "native/quantized/FakeQuantPerChannelAffine.cpp; 2.6.0"
_QUANTIZER = "quantized/Quantizer.cpp, native/quantized/cuda/AffineQuantizer.cu; 2.6.0"
_WITH_MASK = "the value and whether it was in range"


@rule("aten.fake_quantize_per_tensor_affine_cachemask", source=_PER_TENSOR)
def fake_quantize(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel with two outputs; scale and zero point are numbers of the host."""
    return elementwise(op.outputs, [op["self"]], because=_WITH_MASK)


@rule("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams", source=_PER_TENSOR)
def fake_quantize_by_device_numbers(op: Op, target: Target) -> Iterable[Launch]:
    """The same kernel, which reads scale, zero point and the switch from the GPU's memory."""
    return _switched(
        op.outputs, op["self"], [op["scale"], op["zero_point"], op["fake_quant_enabled"]]
    )


def _switched(outputs: tuple[Tensor, ...], x: Tensor, numbers: list[Tensor]) -> list[Launch]:
    return elementwise(outputs, [x], reads=[x, *numbers], because=_WITH_MASK)


@rule("aten.fake_quantize_per_channel_affine_cachemask", source=_PER_CHANNEL)
def fake_quantize_channels(op: Op, target: Target) -> Iterable[Launch]:
    """An integer zero point has its least and its largest value read by the host first; then a
    kernel for the mask and one for the values."""
    host = Host(target)
    _by_channel(host, op.outputs, op["self"], op["scale"], op["zero_point"], op["axis"])
    return host.launches


def _by_channel(
    host: Host, outputs: tuple[Tensor, ...], x: Tensor, scale: Tensor, zero: Tensor, axis: int
) -> None:
    if not zero.is_floating_point:
        _check_range(host, zero)
    scales, zeros = _along(scale, x.ndim, axis), _along(zero, x.ndim, axis)
    compute = [x.dtype, "float32", zero.dtype if zero.is_floating_point else "int64"]
    value, mask = outputs
    for out, what in ((mask, "whether each value is in range"), (value, "rounds to the grid")):
        host.add(elementwise([out], [x, scales, zeros], compute=compute, because=what))


def _check_range(host: Host, zero: Tensor) -> None:
    for extreme in ("min", "max"):
        found = host.call(f"aten.{extreme}.default", workspace(1, zero.dtype), self=zero)
        host.add(read_by_host(found))


def _along(t: Tensor, ndim: int, axis: int) -> Tensor:
    """A vector as an array with one long dim."""
    shape, stride = [1] * ndim, [t.numel] * ndim
    shape[axis], stride[axis] = t.numel, 1
    return view(t, shape, stride)


@rule("aten._fake_quantize_learnable_per_tensor_affine", source=_PER_TENSOR)
def learnable(op: Op, target: Target) -> Iterator[Launch]:
    """The host reads scale and zero point, then as with numbers of its own."""
    x: Tensor = op["self"]
    yield from read_by_host(op["scale"])
    yield from read_by_host(op["zero_point"])
    yield from elementwise([op.out, like(x, "bool")], [x], because=_WITH_MASK)


@rule("aten._fake_quantize_learnable_per_tensor_affine_backward", source=_PER_TENSOR)
def learnable_backward(op: Op, target: Target) -> Iterable[Launch]:
    """The host reads scale and zero point; one kernel for three gradients per element, two of
    which are summed."""
    host, x = Host(target), op["self"]
    host.add(read_by_host(op["scale"]))
    host.add(read_by_host(op["zero_point"]))
    _gradients(host, op, [x, op["grad"]], None)
    return host.launches


@rule("aten._fake_quantize_learnable_per_channel_affine", source=_PER_CHANNEL)
def learnable_channels(op: Op, target: Target) -> Iterable[Launch]:
    """The zero point is rounded and clamped in its own type and cast, then as without learning."""
    host, x = Host(target), op["self"]
    zero, casts = to(_rounded(host, op["zero_point"]), "int32")
    host.add(casts)
    _by_channel(host, (op.out, like(x, "bool")), x, op["scale"], zero, op["axis"])
    return host.launches


@rule("aten._fake_quantize_learnable_per_channel_affine_backward", source=_PER_CHANNEL)
def learnable_channels_backward(op: Op, target: Target) -> Iterable[Launch]:
    """The rounded zero point is checked by the host; one kernel for three gradients per element,
    two of which are summed per channel."""
    host, x, axis = Host(target), op["self"], op["axis"]
    zero = _rounded(host, op["zero_point"])
    _check_range(host, zero)
    inputs = [x, op["grad"], *(_along(t, x.ndim, axis) for t in (op["scale"], zero))]
    _gradients(host, op, inputs, tuple(d for d in range(x.ndim) if d != axis))
    return host.launches


def _rounded(host: Host, zero: Tensor) -> Tensor:
    rounded = host.call("aten.round.default", like(zero), self=zero)
    return host.call("aten.clamp.default", rounded, self=rounded, min=0, max=0)


def _gradients(host: Host, op: Op, inputs: list[Tensor], dims: tuple[int, ...] | None) -> None:
    dx, *sums = op.outputs
    each = [like(inputs[0]) for _ in sums]
    host.add(elementwise([dx, *each], inputs, because="gradients of value, scale, zero point"))
    for out, parts in zip(sums, each, strict=True):
        host.call("aten.sum.dim_IntList", out, self=parts, dim=dims, keepdim=False)


@rule("aten._fused_moving_avg_obs_fq_helper",
      source="native/quantized/cuda/FusedObsFakeQuant.cu; 2.6.0")  # fmt: skip
def observe_and_fake_quantize(op: Op, target: Target) -> Iterable[Launch]:
    """Extremes of the input, one kernel that averages them over time, one that chooses scale and
    zero point, then fake quantization: per row after the host read the switch (taken as on)."""
    host, x, rows = Host(target), op["self"], op["per_row_fake_quant"]
    copied, copies = compact(x)
    host.add(copies)
    low, high = op["running_min"], op["running_max"]
    scale, zero = op["scale"], op["zero_point"]
    channels = x.shape[op["ch_axis"]] if rows else 1
    observed = _rows(host, x, op["ch_axis"]) if rows else copied
    if rows and low.numel == 0:
        low, high, scale = (workspace(channels, "float32") for _ in range(3))
        zero = workspace(channels, "int32")
        host.add(fill(low))
        host.add(fill(high))
    pair = [workspace(channels, x.dtype) for _ in range(2)]
    least = host.call("aten.aminmax.default", *pair, self=observed, dim=1 if rows else None)
    threads = min(channels, 512)
    grid, block = (-(-channels // max(threads, 1)), 1, 1), (threads, 1, 1)
    host.add(_small("MovingAverageMinMax", [op["observer_on"], least, pair[1], low, high],
                    [low, high], grid, block))  # fmt: skip
    host.add(_small("ChooseQuantizationParamsKernelImpl", [op["fake_quant_on"], low, high],
                    [scale, zero], grid, block))  # fmt: skip
    outputs = (op.outputs[0], op.outputs[1])
    if rows:
        host.add(read_by_host(op["fake_quant_on"]))
        _by_channel(host, outputs, x, scale, zero, 0)
    else:
        host.add(_switched(outputs, x, [scale, zero, op["fake_quant_on"]]))
    return host.launches


def _rows(host: Host, x: Tensor, axis: int) -> Tensor:
    """`x` with `axis` in front and all other dims as one."""
    if x.ndim == 2:
        return x
    order = list(range(x.ndim))
    order[axis], order[0] = 0, axis
    copied, copies = compact(permute(x, order))
    host.add(copies)
    return view(flat(copied), (x.shape[axis], x.numel // x.shape[axis]),
                (x.numel // x.shape[axis], 1))  # fmt: skip


def _small(
    name: str, reads: list[Tensor], writes: list[Tensor], grid: Dim3, block: Dim3
) -> list[Launch]:
    return [kernel(name, reads, writes, grid=grid, block=block, because="a thread per channel")]


@rule("aten.quantize_per_tensor", "aten.quantize_per_tensor_dynamic", source=_QUANTIZER)
def quantize(op: Op, target: Target) -> Iterable[Launch]:
    """A scale or zero point in a tensor is read by the host, without one the extremes are; then
    one kernel, which also loads what the result holds before."""
    host, x, out = Host(target), op["self"], op.out
    if op.packet.endswith("dynamic"):
        x, copies = compact(x)
        host.add(copies)
        for extreme in ("max", "min"):
            found = host.call(f"aten.{extreme}.default", workspace(1, x.dtype), self=x)
            host.add(read_by_host(found))
    for number in (op["scale"], op["zero_point"]) if "scale" in op.args else ():
        if isinstance(number, Tensor):
            host.add(read_by_host(number))
    _into_integers(host, out, x, [], [])
    return host.launches


def _into_integers(
    host: Host, out: Tensor, x: Tensor, numbers: list[Tensor], compute: list[str]
) -> None:
    x, copies = formatted(x, suggested_format(x))
    host.add(copies)
    takes = ["float32", out.dtype, *compute]
    host.add(elementwise([out], [x, out, *numbers], compute=takes, because="rounds to integers"))


@rule("aten.quantize_per_channel", source=_QUANTIZER)
def quantize_channels(op: Op, target: Target) -> Iterable[Launch]:
    """Scales and zero points become double and int64 (both float when the zero points are); the
    host asks whether a zero point is too large or too small; then one kernel."""
    host, x, zeros = Host(target), op["self"], op["zero_points"]
    compute = ["float32", "float32"] if zeros.is_floating_point else ["float64", "int64"]
    numbers = []
    for t, dtype in zip((op["scales"], zeros), compute, strict=True):
        t, casts = to(t, dtype)
        host.add(casts)
        numbers.append(t)
    for compare in ("gt", "lt"):
        found = host.call(
            f"aten.{compare}.Scalar", workspace(zeros.numel, "bool"), self=numbers[1], other=0
        )
        some = host.call("aten.any.default", workspace(1, "bool"), self=found)
        host.add(read_by_host(replace(some, shape=(), stride=())))
    axis = wrap(op["axis"], x.ndim)
    _into_integers(host, op.out, x, [_along(t, x.ndim, axis) for t in numbers], compute)
    return host.launches


@rule("aten.dequantize.self", source=_QUANTIZER)
def dequantize(op: Op, target: Target) -> Iterator[Launch]:
    """One kernel, as with one scale for all channels; a float tensor is only cast."""
    x: Tensor = op["self"]
    if x.is_floating_point:
        yield from copy(op.out, x)
        return
    x, copies = formatted(x, suggested_format(x))
    yield from copies
    yield from elementwise([op.out], [x], result="float32", because="scales back")


@rule("aten.int_repr", source="native/quantized/cuda/IntReprQuant.cu; 2.6.0")
def int_repr(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that drops scale and zero point."""
    return elementwise([op.out], [op["self"]], result=op.out.dtype)


@rule("aten._weight_int8pack_mm", source="native/cuda/int8mm.cu; after 2.6.0")
def weight_int8_mm(op: Op, target: Target) -> Iterator[Launch]:
    """Input and scales as floats, the weight contiguous; then one thread per result."""
    x, casts = to(op["self"], "float32")
    yield from casts
    weight, copies = compact(op["mat2"])
    yield from copies
    scales, casts = to(op["scales"], "float32")
    yield from casts
    rows, columns = op.out.shape
    grid = (-(-columns // 16), -(-rows // 16), 1)
    yield kernel("weight_int8pack_mm_kernel", [x, weight, scales], [op.out], grid=grid,
                 block=(16, 16, 1))  # fmt: skip


@rule("aten._weight_int4pack_mm", source="native/cuda/int4mm.cu; 2.6.0")
def weight_int4_mm(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel on tensor cores: eight warps per tile of 16 rows and 8 columns."""
    rows, columns = op.out.shape
    grid = (1, -(-columns // 8), -(-rows // 16))
    reads = [op["self"], op["mat2"], op["qScaleAndZeros"]]
    return [kernel("tinygemm_m16n8k16_chunk_kernel", reads, [op.out], grid=grid, block=(32, 8, 1))]


@rule("aten._convert_weight_to_int4pack", source="native/cuda/int4mm.cu; 2.6.0")
def pack_int4(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that reorders the weight for the tensor cores."""
    tiles, super_tiles, *_ = op.out.shape
    return [kernel("matrix_to_m16n8k16_Bint4_layout", [op["self"]], [op.out],
                   grid=(super_tiles, tiles, 1), block=(32, 1, 1))]  # fmt: skip
