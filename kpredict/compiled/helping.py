"""Kernels that Inductor generates for the sake of an op that it calls: why they are there.

In: launches with their regions and nodes. Out: the same, with a reason where a generated kernel
does nothing but prepare what a library or fallback op takes, or finish what it gives. Its node has
no op of its own, only that of the call. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpredict.compiled.reasons import Made
from kpredict.compiled.region import Node, Region


def told_why(made: Sequence[Made]) -> list[Made]:
    found: dict[int, Mapping[str, str]] = {}
    told: list[Made] = []
    for m in made:
        if m.region is not None and m.node is not None and not m.launch.because:
            whys = found.get(id(m.region))
            if whys is None:
                whys = found[id(m.region)] = _whys(m.region)
            if m.node.name in whys:
                m = replace(m, launch=replace(m.launch, because=whys[m.node.name]))
        told.append(m)
    return told


def _whys(region: Region) -> Mapping[str, str]:
    """Reasons by the name of a node."""
    readers: dict[str, list[Node]] = {}
    writers: dict[str, Node] = {}
    for node in region.nodes:
        if node.kind == "extern" and node.device == "cuda":
            for buffer in node.reads:
                readers.setdefault(buffer, []).append(node)
            writers |= dict.fromkeys(node.writes, node)
    whys: dict[str, str] = {}
    for node in region.nodes:
        if node.kind == "extern" and any("inductor_seed" in op for op in node.ops):
            whys[node.name] = "draws the seeds of random numbers on the GPU"
        if node.kind != "generated" or node.device != "cuda" or not node.ops or node.is_reduction:
            continue
        for call in (c for b in node.writes for c in readers.get(b, ())):
            if set(node.ops) <= set(call.ops):
                whys[node.name] = f"puts an input of {_op(call)} into the layout that it takes"
        for call in (writers[b] for b in node.reads if b in writers):
            if set(node.ops) <= set(call.ops):
                whys.setdefault(node.name, f"the bias or the layout of the result of {_op(call)}")
    return whys


def _op(call: Node) -> str:
    return call.ops[-1].removeprefix("aten.").partition(".")[0] if call.ops else "a call"
