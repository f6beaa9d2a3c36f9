"""Why two launches of a compiled plan are not one: Inductor's reason in plain words.

In: launches with the region and node that made them, and the round trips between them. Out: one
Barrier for each pair in which a launch reads what another wrote. Torch-free, so that
`kpredict explain fusion/...` is instant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kpredict.compiled.region import Node, Region
from kpredict.model import Barrier, GraphBreak, Kind, Launch, RoundTrip


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
            "compiled-apart",
            "They belong to two compiled functions, or to two calls of one.",
            "Compile the function that calls both.",
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
    ("mismatch (non-reduce)", "sizes"),
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
    made: Sequence[Made], trips: Iterable[RoundTrip], breaks: Sequence[GraphBreak] = ()
) -> tuple[Barrier, ...]:
    """A Barrier for each (writer, reader) of a round trip, in plan order."""
    pairs = sorted({(t.writer, r) for t in trips for r in t.readers if r != t.writer})
    readers: dict[int, list[int]] = {}
    for w, r in pairs:
        readers.setdefault(w, []).append(r)
    after: dict[int, int] = {}  # by launch, a bit for each that needs it, directly or not
    for w in sorted(readers, reverse=True):
        for r in readers[w]:
            after[w] = after.get(w, 0) | 1 << r | after.get(r, 0)

    def between(w: int, r: int) -> list[str]:
        return [made[k].launch.name for k in readers[w] if after.get(k, 0) >> r & 1]

    return tuple(Barrier(w, r, *_why(made[w], made[r], breaks, between(w, r))) for w, r in pairs)


def _why(
    writer: Made, reader: Made, breaks: Sequence[GraphBreak], between: Sequence[str]
) -> tuple[str, str]:
    """(key, detail) for one pair; `between` are launches that need one and lead to the other."""
    if writer.region is not reader.region or writer.region is None or reader.region is None:
        return _in_two_regions(writer, reader, breaks)
    if writer.node is not None and writer.node is reader.node and writer.node.kind == "extern":
        return "fallback-op", f"both are parts of {_op(writer.node)}, which is called whole"
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
    return _of_nodes(writer.region, writer.node, reader.node, between)


def _in_two_regions(writer: Made, reader: Made, breaks: Sequence[GraphBreak]) -> tuple[str, str]:
    if writer.region is None or reader.region is None:
        outside = writer if writer.region is None else reader
        return "not-compiled", f"{_what(outside)} runs eagerly"
    if not breaks:
        return "compiled-apart", ""
    found = [b for b in breaks if _lies_between(b, writer.launch, reader.launch)]
    if len(found) == 1 or len(breaks) == 1:
        told = (found or breaks)[0]
        where = f"line {told.line.line}: " if told.line is not None else ""
        return "graph-break", where + told.reason
    return "graph-break", f"one of {len(breaks)} graph breaks"


def _lies_between(told: GraphBreak, writer: Launch, reader: Launch) -> bool:
    """Whether the break's line is not before the writer's lines and not after the reader's."""
    if told.line is None:
        return False
    before = [s.line for s in writer.lines if s.file == told.line.file]
    after = [s.line for s in reader.lines if s.file == told.line.file]
    return bool(before and after) and max(before) <= told.line.line <= min(after)


def _of_nodes(
    region: Region, writer: Node, reader: Node, between: Sequence[str]
) -> tuple[str, str]:
    """Inductor's last word on two nodes of one schedule, or what their loops tell without it.

    It says "no shared data" also of nodes that share an array and touch it in different loops.
    """
    said = region.why_not
    names = (writer.name, reader.name)
    text = said.get(names) or said.get((names[1], names[0])) or ""
    reduce_both = writer.is_reduction and reader.is_reduction
    if reduce_both and region.partials & writer.writes.keys() & reader.reads.keys():
        return "split-reduction", f"{_size(writer)} partial results, then {_size(reader)}"
    if set(reader.mutates) & set(writer.reads) and (not text or "shared data" in text):
        return "mutation", ""
    key = next((key for words, key in _WORDS if words in text), "")
    if between and key in ("", "in-between"):
        return "in-between", f"{between[0]} needs the one and leads to the other"
    if key in ("sizes", "reduction-shape") and (found := _PAIRS.search(text)):
        first, second = (f"{found[n]} x {found[n + 2]}".removesuffix(" x 1") for n in (1, 2))
        return key, f"{first} against {second} elements"
    return _by_sizes(writer, reader) if not key or key == "sizes" else (key, text)


_PAIRS = re.compile(r"\((\d+), (\d+)\), \((\d+), (\d+)\)")  # two outer sizes, two reduced ones


def _within(node: Node) -> tuple[str, str]:
    """Two kernels of one node: Inductor fused them in its schedule and generated both."""
    if node.is_reduction:
        return "split-reduction", "one node in two kernels"
    return ("foreach", "one list in several kernels") if node.kind == "foreach" else ("sizes", "")


def _by_sizes(writer: Node, reader: Node) -> tuple[str, str]:
    """What the two loops tell: other sizes, or the same elements in another order."""
    first, second = _numbers(writer), _numbers(reader)
    reduces = writer.is_reduction or reader.is_reduction
    if first is not None and second is not None and not writer.is_reduction:
        n = first[0] * first[1]
        if n == second[0] * second[1]:
            return "index-order", f"both touch {n} elements, in a different order"
    if writer.sizes != reader.sizes and writer.sizes and reader.sizes:
        key = "reduction-shape" if reduces else "sizes"
        return key, f"{_size(writer)} against {_size(reader)} elements"
    if first is not None and first == second and reduces:
        return "reduction-shape", f"both loop over {_size(writer)}, from different ends"
    return "not-tried", ""


def _numbers(node: Node) -> tuple[int, int] | None:
    """(outer, reduced) sizes; None where they are variables."""
    if not node.sizes or not all(s.isdigit() for s in node.sizes):
        return None
    outer, *reduced = map(int, node.sizes)
    return outer, math.prod(reduced)


def _size(node: Node) -> str:
    outer, *reduced = node.sizes or ("?",)
    if reduced and reduced[0] != "1":
        return f"{outer} x {reduced[0]}"
    return outer


def _op(node: Node) -> str:
    return node.ops[-1] if node.ops else "one op"


def _what(side: Made) -> str:
    return side.launch.ops[0] if side.launch.ops else side.launch.name


@cache
def remedy(key: str) -> str:
    """What a person can do about a barrier, by its key."""
    return REASONS[key].remedy
