"""How many kernels torch.compile would leave, from a trace alone: a small model of Inductor.

Pointwise values are inlined into what reads them until something needs them in memory: a library
call, a sort, a reduction's result, the caller. What is in memory then merges: a reduction with the
pointwise work over its input or its output, pointwise work over the same number of elements.
Matrix products, convolutions, attention, sorts and RNNs are barriers. It is an estimate; the
compiled plan of the main job asks Inductor itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kpredict.source.infer.trace import Fork, Item, Missing, Repeat, Step, Sync
from kpredict.source.infer.values import Array

LIBRARY = frozenset(
    "mm addmm bmm baddbmm mv addmv dot _int_mm convolution cudnn_convolution "
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention _cudnn_rnn _fft_r2c _fft_c2r _fft_c2c linalg_cholesky_ex "
    "_linalg_eigh cholesky_solve _native_multi_head_attention "
    "_transformer_encoder_layer_fwd".split()
)
FALLBACK = frozenset(
    "sort topk nonzero _unique2 unique_dim unique_consecutive median kthvalue mode multinomial "
    "index masked_select histc bincount _ctc_loss randperm _embedding_bag "
    "_embedding_bag_forward_only "
    "_cdist_forward _thnn_fused_gru_cell _thnn_fused_lstm_cell normal_ "
    "grid_sampler_2d grid_sampler_3d segment_reduce _upsample_bilinear2d_aa cummax "
    "cummin searchsorted repeat_interleave".split()
)
REDUCTION = frozenset(
    "sum mean amax amin max min prod std var var_mean std_mean any all argmax argmin norm "
    "linalg_vector_norm logsumexp _softmax _log_softmax native_layer_norm _fused_rms_norm "
    "native_group_norm nll_loss_forward mse_loss smooth_l1_loss huber_loss aminmax "
    "binary_cross_entropy binary_cross_entropy_with_logits cumsum cumprod count_nonzero "
    "_safe_softmax trace".split()
)
SPREAD = frozenset("_softmax _log_softmax native_layer_norm _fused_rms_norm native_group_norm "
                   "_safe_softmax cumsum cumprod".split())  # fmt: skip
"""Reductions whose result has the size of their input."""
SCATTER = frozenset("scatter_add scatter index_put index_add scatter_reduce index_copy".split())
RANDOM = frozenset(
    "native_dropout rand randn rand_like randn_like randint bernoulli exponential uniform".split()
)
NOTHING = frozenset("empty empty_like new_empty lift_fresh _assert_async".split())
MANY_SMS = 264  # a reduction with fewer rows than two per multiprocessor is split …
LONG_ROW = 8192  # … when its rows are longer than this
MANY_READS = 4  # a value that reads more buffers than this is written out once


@dataclass(eq=False, slots=True)
class Buffer:
    """A value: pointwise and perhaps inlined, or in memory."""

    kind: str  # "pointwise", "reduction", "barrier", "input"
    numel: int | None
    row: int | None = None  # elements per row, for a reduction
    reads: set[Buffer] = field(default_factory=set)
    users: int = 0
    cost: int = 0  # kernels, for a barrier
    passes: int = 1  # of a reduction that is split
    real: bool = False


@dataclass(eq=False, slots=True)
class Group:
    """Buffers that one kernel computes."""

    members: list[Buffer]
    at: int

    @property
    def reads(self) -> set[Buffer]:
        return {r for m in self.members for r in m.reads} - set(self.members)

    @property
    def kernels(self) -> int:
        if self.members[0].kind == "barrier":
            return self.members[0].cost
        return max(m.passes for m in self.members)


def estimate(
    items: Sequence[Item], returned: Iterable[Array], kernels: Callable[[Step], int]
) -> int | None:
    """Kernels after fusion; None when the trace has an open end. `kernels` counts one eager step.

    A data-dependent read ends a region: what is on both sides of it stays apart. Of a fork the
    longest way is taken, of a loop one round.
    """
    regions: list[list[Step]] = [[]]
    if not _collect(items, regions):
        return None
    kept = {a.storage for a in returned}
    later: set[int] = set()
    total = 0
    for region in reversed(regions):
        total += _region(region, kept | later, kernels)
        later |= {a.storage for s in region for a in s.arrays}
    return total


def _collect(items: Sequence[Item], regions: list[list[Step]]) -> bool:
    whole = True
    for item in items:
        match item:
            case Step():
                if item.short != "_local_scalar_dense":
                    regions[-1].append(item)
            case Fork(branches):
                longest = max(branches, key=len)
                whole = _collect(longest, regions) and whole
            case Repeat(body):
                whole = _collect(body, regions) and whole
            case Missing():
                whole = False
            case Sync(what):
                if what in (
                    "item",
                    "bool",
                    "tolist",
                    "numpy",
                    "print",
                    "__float__",
                    "__int__",
                    "cpu",
                ):
                    regions.append([])
    return whole


def _region(region: Sequence[Step], kept: set[int], kernels: Callable[[Step], int]) -> int:
    made: dict[int, Buffer] = {}
    order: list[Buffer] = []
    inputs: dict[int, Buffer] = {}
    seeds = False
    region = _attention(region)
    channels_last = _prefers_channels_last(region)

    def value_of(a: Array) -> Buffer:
        if a.storage in made:
            return made[a.storage]
        if a.storage not in inputs:
            inputs[a.storage] = Buffer("input", a.numel, real=True)
        return inputs[a.storage]

    for step in region:
        if "view" in step.tags or step.short in NOTHING:
            continue
        if not any(a.device == "cuda" for a in (*step.arrays, *step.results)):
            continue
        parts = _buffers(step, kernels)
        seeds = seeds or step.short in RANDOM
        if step.short == "convolution" and channels_last:
            x, w = step.args["input"], step.args["weight"]
            copied = x.storage in inputs or x.storage not in made
            parts[0].cost += int(copied and x.is_contiguous is True) + int(_is_spatial(w))
        sources = [value_of(a) for a in step.arrays if a.device == "cuda"]
        for buffer in parts:
            for source in sources:
                if buffer.kind == "barrier" or source.real:
                    source.real = True
                    buffer.reads.add(source)
                else:
                    buffer.reads |= source.reads
            if buffer.kind == "pointwise" and len(buffer.reads) > 2 * MANY_READS:
                buffer.real = True
            order.append(buffer)
            sources = [*sources, buffer]
        for out in step.results:
            if out.storage in inputs and step.packet.endswith("_"):
                parts[-1].real = True  # written into the caller's memory
            made[out.storage] = parts[-1]
    for storage, buffer in made.items():
        buffer.real = buffer.real or storage in kept
    return _merged(order) + (1 if seeds else 0)


def _is_spatial(weight: Array) -> bool:
    """A weight that a change to channels-last really moves."""
    return weight.sizes is None or math.prod(weight.sizes[2:]) > 1


def _prefers_channels_last(region: Sequence[Step]) -> bool:
    """Inductor lays convolutions out channels-last unless they are grouped or all small
    (torch/_inductor/graph.py decide_layout_opt)."""
    weights = [s.args["weight"] for s in region if s.short == "convolution"]
    groups = [s.args["groups"] for s in region if s.short == "convolution"]
    sizes = [w.sizes for w in weights if isinstance(w, Array) and w.sizes and len(w.sizes) == 4]
    if not sizes or len(sizes) < len(weights):
        return False
    grouped = any(g > 1 and w[1] > 1 for g, w in zip(groups, sizes, strict=True))
    return not grouped and not all(max(w[0], w[1]) <= 64 for w in sizes)


def _attention(region: Sequence[Step]) -> list[Step]:
    """Hand-written attention in half precision becomes one attention call: product, scale,
    softmax, product (torch/_inductor/fx_passes/fuse_attention.py)."""
    out = list(region)
    region = [s for s in region if "view" not in s.tags]
    for k, step in enumerate(region):
        if step.short != "_softmax" or not step.results:
            continue
        if step.results[0].dtype not in ("float16", "bfloat16"):
            continue
        first = next(
            (i for i in range(k - 1, max(k - 6, -1), -1) if region[i].short == "bmm"), None
        )
        last = next(
            (i for i in range(k + 1, min(k + 6, len(region))) if region[i].short == "bmm"), None
        )
        if first is None or last is None:
            continue
        between = [s for s in region[first + 1 : last] if "view" not in s.tags and s is not step]
        if all(s.short in ("mul", "div", "clone") for s in between):
            gone = {id(s) for s in region[first:last] if s.short != "clone"}
            gone |= {
                id(region[i]) for i in range(max(first - 6, 0), last) if region[i].short == "clone"
            }
            out = [s for s in out if id(s) not in gone]
    return out


def _buffers(step: Step, kernels: Callable[[Step], int]) -> list[Buffer]:
    """What one step is for Inductor: mostly one value, for some a barrier and work around it."""
    name = step.short
    out = next(iter(step.results), None)
    numel = out.numel if out is not None else None
    big = max((a.numel or 0 for a in step.arrays), default=0) or None
    if name == "index" and not _data_dependent(step):
        return [Buffer("pointwise", numel)]
    if name == "convolution" and step.args.get("bias") is not None:
        return [Buffer("barrier", numel, cost=1, real=True), Buffer("pointwise", numel)]
    if name in LIBRARY or name in FALLBACK:
        return [Buffer("barrier", numel, cost=max(kernels(step), 1), real=True)]
    if name in SCATTER and step.name.rpartition(".")[2] != "value":
        return [Buffer("barrier", numel, cost=1 if step.packet.endswith("_") else 2, real=True)]
    if name == "_to_copy" and (step.args.get("device") == "cpu" or any(
        a.device == "cpu" for a in step.arrays)):  # fmt: skip
        return [Buffer("barrier", numel, cost=0, real=True)]
    if name in REDUCTION and not (name in ("max", "min") and len(step.arrays) > 1):
        if name.endswith("loss") and step.args.get("reduction") == 0:
            return [Buffer("pointwise", numel)]
        n = None if numel is None or big is None else (_rows(step) if name in SPREAD else numel)
        reduction = _reduction(n, big)
        if name in SPREAD:
            if reduction.passes > 1 and name in ("_softmax", "_log_softmax"):
                reduction.passes = 6  # the maximum and the sum of long rows, each in two steps
            return [reduction, Buffer("pointwise", numel)]
        return [reduction]
    if name in ("native_batch_norm", "cudnn_batch_norm") and step.args.get("training") is True:
        x = step.args["input"]
        channels = x.shape[1] if x.shape is not None and len(x.shape) > 1 else None
        return [_reduction(channels, x.numel), Buffer("pointwise", numel)]
    return [Buffer("pointwise", numel)]


def _reduction(n: int | None, numel: int | None) -> Buffer:
    """`numel` elements to `n`; few long rows are reduced in two steps."""
    row = None if n is None or numel is None else numel // max(n, 1)
    split = n is not None and row is not None and n < MANY_SMS and row > LONG_ROW
    return Buffer("reduction", n, row, passes=2 if split else 1, real=True)


def _data_dependent(step: Step) -> bool:
    return any(isinstance(i, Array) and i.dtype in ("bool", "uint8")
               for i in step.args.get("indices") or ())  # fmt: skip


def _rows(step: Step) -> int | None:
    """How many rows a softmax or a norm has."""
    x = next(iter(step.arrays), None)
    if x is None or x.sizes is None:
        return None
    if step.short in ("native_layer_norm", "_fused_rms_norm"):
        n = len(step.args["normalized_shape"])
        return math.prod(x.sizes[: len(x.sizes) - n])
    if step.short == "native_group_norm":
        return x.sizes[0] * int(step.args["group"])
    dim = step.args.get("dim", -1)
    return (x.numel or 0) // max(x.sizes[dim], 1) if isinstance(dim, int) and x.sizes else x.numel


def _merged(order: Sequence[Buffer]) -> int:
    """Greedy fusion of what is in memory, in order; barriers keep apart what they touch."""
    groups: list[Group] = []
    home: dict[Buffer, Group] = {}
    for at, b in enumerate(order):
        if not b.real:
            continue
        chosen = None if b.kind == "barrier" else _group_for(b, groups, home)
        if chosen is None:
            chosen = Group([], at)
            groups.append(chosen)
        chosen.members.append(b)
        home[b] = chosen
    return sum(g.kernels for g in groups)


def _group_for(b: Buffer, groups: Sequence[Group], home: dict[Buffer, Group]) -> Group | None:
    """The latest kernel that may also compute `b`: it shares data, loops alike and is not before
    anything else that `b` reads."""
    sources = [home[r] for r in b.reads if r in home]
    for group in reversed(groups):
        if group.members[0].kind == "barrier":
            continue
        if group not in sources and not group.reads & b.reads:
            continue
        if any(s.at > group.at for s in sources if s is not group):
            continue
        if _compatible(group, b):
            return group
    return None


def _compatible(group: Group, b: Buffer) -> bool:
    """Whether one kernel can loop over both: equal element counts, or a reduction and its rows."""
    for m in group.members:
        if m.numel is None or b.numel is None:
            continue
        if m.row is not None and b.row is not None:
            if (m.numel, m.row) != (b.numel, b.row):
                return False
            continue
        whole_m = m.numel if m.row is None or m.passes > 1 else m.numel * m.row
        if b.numel not in (m.numel, whole_m) and m.numel != b.numel * (b.row or 1):
            return False
    return True
