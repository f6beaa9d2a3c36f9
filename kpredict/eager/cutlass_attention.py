"""The memory-efficient attention kernels: which one is taken, and the workspace it needs.

Source: aten/src/ATen/native/transformers/cuda/mem_eff_attention (kernels/cutlassF.h, cutlassB.h,
kernel_backward.h) and attention_backward.cu, 2.6. The lists there are tried in order; what decides
is the head size, the alignment of the strides, whole blocks of queries and keys, dropout, and
shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpredict.model import Target, Tensor

_SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_ANY_HEAD = 65536


def _arch(target: Target) -> int:
    """The generation a kernel was compiled for."""
    return next(sm for sm in (80, 75, 70, 50) if target.sm >= sm)


def _alignment(target: Target, dtype: str, tensors: tuple[Tensor, ...]) -> str:
    """From sm_80 all kernels are "aligned"; before, half types whose head strides are no multiple
    of 16 bytes take the others. Tensors are (batch, length, heads, size)."""
    if target.sm >= 80 or dtype == "float32":
        return "aligned"
    return "notaligned" if any(t.stride[2] % 8 for t in tensors) else "aligned"


def forward_name(q: Tensor, k: Tensor, v: Tensor, target: Target) -> str:
    """Up to head size 64, up to 128, and any: results of the last go through global memory."""
    arch, head = _arch(target), max(k.shape[3], v.shape[3])
    tile = "64x64_rf" if head <= 64 else "32x128_gmem"
    if 64 < head <= 128:
        tile = "64x128_rf" if arch >= 80 else "32x128_rf"
    alignment = _alignment(target, q.dtype, (q, k, v))
    return f"fmha_cutlassF_{_SHORT[q.dtype]}_{alignment}_{tile}_sm{arch}"


@dataclass(frozen=True, slots=True)
class Backward:
    """One backward kernel: blocks of `rows` queries and `columns` keys, heads up to `head`."""

    name: str
    rows: int
    columns: int
    head: int
    half: bool
    arch: int

    @property
    def keeps_gradients_in_registers(self) -> bool:
        return self.half and self.head <= self.rows

    @property
    def computes_delta(self) -> bool:
        """Whether it sums grad*out itself; else host code does before."""
        return self.half and (self.keeps_gradients_in_registers or self.arch != 70)


def _shared_bytes(rows: int, columns: int, half: bool) -> int:
    """Shared memory of the large-head kernels, as launches on sm_90 state it."""
    return {(128, 128): 152064, (128, 64): 101888 if not half else 99328}.get((rows, columns), 0)


def backward_kernel(q: Tensor, k: Tensor, v: Tensor, dropout: bool, target: Target) -> Backward:
    arch, half = _arch(target), q.itemsize == 2
    size = max(q.shape[3], v.shape[3])
    head = next(h for h in (32, 64, 128, _ANY_HEAD) if size <= h)
    rows, columns = 64, 64
    if target.sm in (86, 89) and half and not dropout and 64 < size <= 96:
        head, rows = 96, 128
    elif head > 64 and ((half and arch >= 70) or arch == 80):
        rows = 128
        if half and arch == 80 and head == 128:
            columns = 128
        if _shared_bytes(rows, columns, half) > target.shared_optin:
            rows, columns = 64, 64
    whole = q.shape[1] % rows == 0 and k.shape[1] % columns == 0
    suffix = ""
    if dropout:
        suffix = "_dropout"
    elif half and arch in (70, 80) and head in (32, 64, 128) and whole:
        suffix = "_seqaligned"
    alignment = _alignment(target, q.dtype, (q, k, v))
    name = f"fmha_cutlassB_{_SHORT[q.dtype]}_{alignment}_{rows}x{columns}_k{head}{suffix}_sm{arch}"
    return Backward(name, rows, columns, head, half, arch)


def key_splits(kernel: Backward, q: Tensor, k: Tensor, deterministic: bool) -> int:
    """Into how many parts the keys are split: one per block, fewer where the parts would need
    buffers of their own, one where there is parallelism enough or the caller wants determinism."""
    if deterministic or kernel.arch < 70:
        return 1
    batch, _, heads, _ = q.shape
    splits = -(-k.shape[1] // kernel.columns)
    if batch * heads >= 256 and k.shape[1] <= 2 * kernel.columns:
        splits = 1
    if kernel.half and not kernel.keeps_gradients_in_registers:
        splits = min(splits, 200 // (batch * heads))
    return max(splits, 1)


def workspace_bytes(kernel: Backward, q: Tensor, v: Tensor, splits: int) -> int:
    """Partial gradients of the queries, with a lock each; for large half heads of keys and values
    too."""
    batch, length, heads, size = q.shape
    if kernel.arch < 70 and not kernel.half:
        return 0
    blocks = -(-length // kernel.rows) * -(-size // kernel.columns)
    per_head = blocks * (kernel.rows * kernel.columns * 4 + 16)
    if kernel.half and not kernel.keeps_gradients_in_registers:
        wide = sum(-(-n // kernel.rows) * kernel.rows for n in (size, v.shape[3]))
        per_head += splits * kernel.columns * wide * 4
    return batch * heads * per_head
