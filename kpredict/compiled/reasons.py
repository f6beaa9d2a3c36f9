"""Why two launches of a compiled plan are not one: Inductor's reason in plain words.

In: launches with the region and node that made them, and the round trips between them. Out: one
Barrier for each pair in which a launch reads what another wrote. Torch-free, so that
`kpredict explain fusion/...` is instant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kpredict.compiled.region import Node, Region
from kpredict.model import Barrier, Kind, Launch, RoundTrip


@dataclass(frozen=True, slots=True)
class Reason:
    """A row of `kpredict explain fusion/KEY`: what it means and what a person can do."""

    key: str
    means: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Made:
    """A launch and the node of the region that made it, if a region did."""

    launch: Launch
    region: Region | None
    node: Node | None


REASONS: Mapping[str, Reason] = {
    r.key: r
    for r in (
        Reason(
            "library-call",
            "One side is a call into a closed library (cuBLAS, cuDNN, attention). Inductor cannot "
            "put other work inside it, so what goes in and comes out passes through memory.",
            "torch.compile(mode='max-autotune') may use a Triton matrix multiply with a fused "
            "epilogue; the scaled_dot_product_attention and linear built-ins fuse inside.",
        ),
        Reason(
            "fallback-op",
            "One side is an op for which Inductor has no lowering of its own: it calls the op's "
            "eager kernels, and nothing fuses with them.",
            "Replace the op by one with a lowering, or move it out of the hot path.",
        ),
        Reason(
            "graph-break",
            "Dynamo cut the function between the two, so they are compiled apart.",
            "Remove the graph break; `fullgraph=True` shows where it is.",
        ),
        Reason(
            "not-compiled",
            "One side runs eagerly: outside the compiled function, in a frame that dynamo skipped, "
            "or in autograd's own engine.",
            "Compile the function that holds it; the optimizer with torch.compile(opt.step).",
        ),
        Reason(
            "split-reduction",
            "A reduction too long for the blocks it would have runs in two kernels: partial "
            "results first, then their reduction.",
            "Nothing to mend: one kernel would leave most of the GPU idle.",
        ),
        Reason(
            "reduction-shape",
            "The two loop over different numbers of rows or reduce over different lengths, so no "
            "common loop holds both.",
            "Reduce over the same dimensions, or fold one reduction into the other.",
        ),
        Reason(
            "sizes",
            "The two compute different numbers of elements, so no common loop holds both.",
            "Pad, slice or expand before or after both instead of in between.",
        ),
        Reason(
            "index-order",
            "The reader does not read just the element that the writer wrote in the same step of "
            "the loop: it reads neighbours, another order, or a value that all steps add to.",
            "Keep one layout through the chain; move transposes, shifts and gathers to its ends.",
        ),
        Reason(
            "in-between",
            "Another launch lies between them: it needs the first and the second needs it.",
            "Look at the reasons of that launch.",
        ),
        Reason(
            "tiling",
            "The two need their dimensions cut into tiles differently (one of them reads or writes "
            "transposed), and Inductor tiles a kernel in one way.",
            "Keep the same layout through the chain.",
        ),
        Reason(
            "fusion-limit",
            "The fused kernel would exceed one of Inductor's limits on its size.",
            "torch._inductor.config.max_fusion_size and realize_* hold the limits.",
        ),
        Reason(
            "peak-memory",
            "Fusing would keep large arrays alive much longer than it would save in traffic.",
            "Split the function so that large arrays die early.",
        ),
        Reason(
            "mutation",
            "One side changes an array in place that the other still reads: their order must stay.",
            "Use the out-of-place op: Inductor reuses memory by itself.",
        ),
        Reason(
            "scan",
            "A long scan (cumsum and its kin) is split into blocks that hand on their totals; "
            "reductions do not fuse with it.",
            "Scan along a shorter dimension.",
        ),
        Reason(
            "foreach",
            "A foreach kernel works on lists of arrays; only lists of the same length without "
            "reductions fuse with it.",
            "Write the update for each array outside of foreach, and let Inductor combine it.",
        ),
        Reason(
            "device",
            "One side runs on the CPU.",
            "Keep the chain on the GPU.",
        ),
        Reason(
            "user-kernel",
            "One side is a Triton kernel of the user's own.",
            "Write the neighbouring work into that kernel.",
        ),
        Reason(
            "not-tried",
            "Inductor did not try this pair: other fusions came first, or it was outside of the "
            "window that is searched.",
            "Nothing certain; a different order of the code may change it.",
        ),
    )
}

_WORDS: tuple[tuple[str, str], ...] = (
    ("numel/rnumel mismatch", "reduction-shape"),
    ("numel/rnumel incompatib", "reduction-shape"),
    ("numel incompatib", "sizes"),
    ("memory deps did not match", "index-order"),
    ("must go before", "index-order"),
    ("intermediate nodes", "in-between"),
    ("tiling", "tiling"),
    ("buf layouts", "tiling"),
    ("exceeds max fusion", "fusion-limit"),
    ("register spilling", "fusion-limit"),
    ("peak memory", "peak-memory"),
    ("scan", "scan"),
    ("foreach", "foreach"),
    ("device mismatch", "device"),
    ("extern", "library-call"),
    ("template", "library-call"),
    ("prologue", "library-call"),
    ("epilogue", "library-call"),
)


def explain_fusion(topic: str) -> str | None:
    """The text of `kpredict explain fusion/KEY`; of `fusion`, the list of keys."""
    if topic in ("fusion", "fusion/"):
        width = max(map(len, REASONS))
        return "\n".join(f"fusion/{r.key:<{width}}  {_first(r.means)}" for r in REASONS.values())
    reason = REASONS.get(topic.removeprefix("fusion/"))
    if reason is None or not topic.startswith("fusion/"):
        return None
    return f"fusion/{reason.key}\n\n{reason.means}\n\nWhat can be done: {reason.remedy}"


def _first(text: str) -> str:
    return re.split(r"(?<=[.:]) ", text, maxsplit=1)[0]


def find_barriers(
    made: Sequence[Made], trips: Iterable[RoundTrip], breaks: Sequence[str] = ()
) -> tuple[Barrier, ...]:
    """A Barrier for each (writer, reader) of a round trip, in plan order."""
    pairs = sorted({(t.writer, r) for t in trips for r in t.readers if r != t.writer})
    return tuple(Barrier(w, r, *_why(made[w], made[r], breaks)) for w, r in pairs)


def _why(writer: Made, reader: Made, breaks: Sequence[str]) -> tuple[str, str]:
    """(key, detail) for one pair."""
    if writer.region is not reader.region or writer.region is None or reader.region is None:
        if writer.region is not None and reader.region is not None:
            return "graph-break", breaks[0] if breaks else "two graphs compiled apart"
        outside = writer if writer.region is None else reader
        return "not-compiled", f"{_what(outside)} runs eagerly"
    for side in (writer, reader):
        if side.launch.kind is Kind.LIBRARY:
            return "library-call", f"{_what(side)} is a library call"
    for side in (writer, reader):
        if side.node is not None and any("triton_kernel_wrapper" in op for op in side.node.ops):
            return "user-kernel", f"{side.launch.name} is a Triton kernel of the user's own"
    for side in (writer, reader):
        if side.node is None or side.node.kind == "extern":
            if side.launch.name.startswith("triton_"):
                continue
            return "fallback-op", f"{_what(side)} runs as in eager mode"
    if writer.node is None or reader.node is None:
        return "not-tried", ""
    if writer.node is reader.node:
        return _within(writer.node)
    said = writer.region.why_not
    names = (writer.node.name, reader.node.name)
    text = said.get(names) or said.get((names[1], names[0])) or ""
    if _is_split(writer.node, reader.node):
        return "split-reduction", f"{_size(writer.node)} partial results, then {_size(reader.node)}"
    if not text:
        if set(reader.node.mutates) & set(writer.node.reads):
            return "mutation", ""
        return _by_sizes(writer.node, reader.node)
    key = next((key for words, key in _WORDS if words in text), "not-tried")
    if key == "not-tried" and "shared data" in text:
        return _by_sizes(writer.node, reader.node)
    return key, text


def _within(node: Node) -> tuple[str, str]:
    """Two kernels of one node: Inductor fused them in its schedule and generated both."""
    if node.is_reduction:
        return "split-reduction", "one node in two kernels"
    return ("foreach", "one list in several kernels") if node.kind == "foreach" else ("sizes", "")


def _is_split(writer: Node, reader: Node) -> bool:
    """Both reduce for the same ops, the second over the first's partial results."""
    return (
        writer.is_reduction and reader.is_reduction
        and bool(set(writer.ops) & set(reader.ops)) and set(reader.reads) <= {*writer.writes}
    )  # fmt: skip


def _by_sizes(writer: Node, reader: Node) -> tuple[str, str]:
    if writer.sizes != reader.sizes and writer.sizes and reader.sizes:
        key = "reduction-shape" if writer.is_reduction or reader.is_reduction else "sizes"
        return key, f"{_size(writer)} against {_size(reader)} elements"
    return "not-tried", ""


def _size(node: Node) -> str:
    outer, *reduced = node.sizes or ("?",)
    if reduced and reduced[0] != "1":
        return f"{outer} x {reduced[0]}"
    return outer


def _what(side: Made) -> str:
    return side.launch.ops[0] if side.launch.ops else side.launch.name


@cache
def remedy(key: str) -> str:
    """What a person can do about a barrier, by its key."""
    return REASONS[key].remedy
