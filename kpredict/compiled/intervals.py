"""Counts of launches that depend on a choice which Inductor makes by timing: intervals over both.

In: a launch as the plain candidate has it, and its region, which knows what was left open. Out: the
launch with the interval and the reason. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpredict.compiled.region import Node, Product, Region
from kpredict.model import Count, Kind, Launch, Op, Tensor

_TAKEN_IN = "part of the matrix multiply's kernel if a Triton template wins the timing on the GPU"


def maybe_taken_in(launch: Launch, region: Region | None, node: Node | None) -> Launch:
    """A generated kernel that a winning template would hold: 0 or 1."""
    if region is None or node is None or node.name not in region.optional:
        return launch
    return replace(launch, count=Count(0, launch.count.hi), expected=1, because=_TAKEN_IN)


def maybe_more(launch: Launch, op: Op, region: Region) -> Launch:
    """A matrix product for which Inductor would time candidates that need more kernels."""
    if launch.kind is not Kind.LIBRARY:
        return launch
    for choices, words in ((region.padding, _PADDED), (region.splitting, _SPLIT)):
        more = _more(op, choices) if choices else 0
        if more:
            because = f"up to {more} more if {words} wins the timing on the GPU"
            launch = replace(
                launch,
                count=launch.count + Count(0, more),
                expected=launch.count.lo if launch.expected is None else launch.expected,
                because=f"{launch.because}; {because}" if launch.because else because,
            )
    return launch


_PADDED = "padding to aligned sizes"
_SPLIT = "splitting its sums (decompose_k)"


def _more(op: Op, choices: Mapping[Product, int]) -> int:
    first, second = op.get("mat1", op.get("self")), op.get("mat2")
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return 0
    return max((n for product, n in choices.items() if _is(product, first, second)), default=0)


def _is(product: Product, first: Tensor, second: Tensor) -> bool:
    rows, columns, dtype = product
    return first.dtype == dtype and _fits(rows, first.shape) and _fits(columns, second.shape)


def _fits(pattern: Sequence[int | None], shape: Sequence[int]) -> bool:
    return len(pattern) == len(shape) and all(
        p in (None, s) for p, s in zip(pattern, shape, strict=True)
    )


def mark_optional(
    regions: Sequence[Region], templated: Sequence[Region], splitting: Mapping[Product, int]
) -> None:
    """Mark the nodes of `regions` that are part of a template in the run where templates win, and
    the products that it could split."""
    won = {(r.name, r.phase): r for r in templated}
    for region in regions:
        other = won.get((region.name, region.phase))
        inside = {
            part
            for node in (other.nodes if other is not None else ())
            if node.kind == "template"
            for part in node.parts
        }
        region.splitting = splitting
        region.optional = frozenset(
            node.name
            for node in region.nodes
            if node.kind == "generated" and inside.issuperset(node.parts)
        )
