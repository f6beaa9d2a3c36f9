"""Products of 8-bit floats with scales, and of groups of matrices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpredict.eager.calling import Host, call
from kpredict.eager.copying import zero
from kpredict.eager.gemm import blas_call, flops_of, release
from kpredict.eager.launches import contiguous, kernel, memcpy, sync, workspace
from kpredict.eager.operands import narrow, view
from kpredict.eager.registry import rule
from kpredict.eager.rules.matmul import multiply, multiply_batch, result_of
from kpredict.model import Launch, Op, Target, Tensor, tensors_in

_SCALED = "aten/src/ATen/native/cuda/ScaledBlas.cpp and RowwiseScaledMM.cu, main of 2026"
_GROUPED = "aten/src/ATen/native/cuda/GroupedBlas.cpp and GroupMM.cu, main of 2026"


@rule("aten._scaled_mm", "aten._scaled_mm_v2", source=_SCALED)
def scaled_mm(op: Op, target: Target) -> Iterable[Launch]:
    """One cublasLt call with the scales and the bias in it. Scales per row go to a CUTLASS kernel
    of PyTorch's before sm_90, and from sm_100."""
    result, a, b = result_of(op), op["self"], op["mat2"]
    (m, k), n = a.shape, b.shape[1]
    if 0 in (m, k, n):
        return zero(result) if k == 0 else []
    scale, *more = _scales(op)
    reads = [a, b, scale, *more, *([op["bias"]] if op["bias"] is not None else [])]
    if scale.numel == m > 1 and not 90 <= target.sm < 100:
        name = "device_kernel" if target.sm >= 100 else "Kernel"
        step = kernel(name, reads, [result], because="CUTLASS scales rows and columns")
        return [replace(step, flops=flops_of(m, n, k, 1, a.dtype))]
    product = blas_call(
        "cublasLtMatmul", m, n, k, reads, [result], target, dtype=a.dtype,
        because="cublasLt scales the product",
    )  # fmt: skip
    return [product]


def _scales(op: Op) -> list[Tensor]:
    found: list[Tensor] = []
    for scale in (op["scale_a"], op["scale_b"]):
        found += [scale] if isinstance(scale, Tensor) else scale
    return found


@rule("aten._grouped_mm", "aten._scaled_grouped_mm", "aten._scaled_grouped_mm_v2", source=_GROUPED)
def grouped_mm(op: Op, target: Target) -> Iterable[Launch]:
    """bfloat16 and 8-bit floats on sm_90 and sm_100: a kernel that writes the problems, then
    one CUTLASS kernel for all. Else the host reads the offsets and multiplies group by group;
    here each group is supposed to have an equal share."""
    a, b, offsets, out = op["self"], op["mat2"], op["offs"], op.out
    if out.numel == 0:
        return []
    groups = offsets.numel if isinstance(offsets, Tensor) else a.shape[0]
    if target.sm // 10 in (9, 10) and _in_one_kernel(a, b, out):
        problems = workspace(1024, "uint8")
        reads = [a, b, *([offsets] if isinstance(offsets, Tensor) else [])]
        sizes = kernel(
            "prepare_grouped_gemm_data", reads[2:], [problems], grid=(1, 1, 1),
            block=(groups, 1, 1), because="pointers and sizes of every group",
        )  # fmt: skip
        shared = 1 if a.ndim == 3 or b.ndim == 3 else groups
        why = "CUTLASS multiplies all groups at once"
        product = kernel("device_kernel", [*reads, problems], [out], because=why)
        return [sizes, replace(product, flops=2 * out.numel * a.shape[-1] // shared)]
    return _group_by_group(a, b, offsets, groups, out, target)


def _in_one_kernel(a: Tensor, b: Tensor, out: Tensor) -> bool:
    eight_bits = a.dtype.startswith("float8") and b.dtype.startswith("float8")
    return out.dtype == "bfloat16" and (eight_bits or a.dtype == b.dtype == "bfloat16")


def _group_by_group(
    a: Tensor, b: Tensor, offsets: Tensor | None, groups: int, out: Tensor, target: Target
) -> list[Launch]:
    if offsets is None:
        return list(multiply_batch(out, a, b, target))
    found = [memcpy("DtoH", offsets, offsets), sync("the host reads where groups end")]
    for g in range(groups):
        left = _matrix(a, g) if a.ndim == 3 else _share(a, 0 if b.ndim == 3 else 1, groups)
        right = _matrix(b, g) if b.ndim == 3 else _share(b, 1 if a.ndim == 3 else 0, groups)
        into = _matrix(out, g) if out.ndim == 3 else _share(out, int(a.ndim == 3), groups)
        found += multiply(into, left, right, target)
    return found


def _matrix(t: Tensor, g: int) -> Tensor:
    return view(t, t.shape[1:], t.stride[1:], g * t.stride[0])


def _share(t: Tensor, dim: int, groups: int) -> Tensor:
    return narrow(t, dim, 0, max(1, t.shape[dim] // groups))


@rule("aten._foreach_mm", source="torch/_native/ops/foreach_mm, 2.13")
def foreach_mm(op: Op, target: Target) -> Iterable[Launch]:
    """One GEMM per pair. From sm_90 PyTorch's own Python joins pairs of the same width and depth,
    all below 2048, and multiplies them by one grouped product."""
    lefts, rights = tuple(op["self"]), tuple(op["mat2"])
    outputs = tuple(tensors_in(op.outputs))
    if not _joins(lefts, rights, target):
        return [
            launch
            for a, b, out in zip(lefts, rights, outputs, strict=True)
            for launch in call("aten.mm.default", target, out, self=a, mat2=b)
        ]
    host = Host(target)
    rows, (depth, width) = sum(a.shape[0] for a in lefts), rights[0].shape
    groups = len(lefts)
    joined = contiguous(lefts[0], shape=(rows, depth))
    host.call("aten.cat.default", joined, tensors=lefts, dim=0)
    stacked = contiguous(rights[0], shape=(groups, depth, width))
    host.call("aten.stack.default", stacked, tensors=rights, dim=0)
    sizes, ends = (contiguous(joined, shape=(groups,), dtype="int32") for _ in range(2))
    host.add([memcpy("HtoD", sizes, sizes), sync("the host waits for the copy")])
    host.call("aten.cumsum.default", ends, self=sizes, dim=0, dtype="int32")
    out = contiguous(joined, shape=(rows, width))
    host.call("aten._grouped_mm.default", out, self=joined, mat2=stacked, offs=ends)
    return host.launches


def _joins(lefts: tuple[Tensor, ...], rights: tuple[Tensor, ...], target: Target) -> bool:
    if target.sm < 90 or release(target) < (2, 13) or not 2 <= len(lefts) < 1024:
        return False
    every = (*lefts, *rights)
    dtype = lefts[0].dtype
    if dtype not in ("bfloat16", "float32") or any(t.dtype != dtype for t in every):
        return False
    if not all(t.ndim == 2 and t.is_dense and t.is_cuda for t in every):
        return False
    same_sizes = len({t.shape for t in rights}) == 1
    orders = {(a.stride[-1] == 1, b.stride[-1] == 1) for a, b in zip(lefts, rights, strict=True)}
    depth, width = rights[0].shape
    aligned = all(n and n * rights[0].itemsize % 16 == 0 for n in (depth, width))
    small = max(n for t in every for n in t.shape) < 2048
    return same_sizes and len(orders) == 1 and aligned and small
