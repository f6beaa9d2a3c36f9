"""What Inductor decided for one graph, and the marks its generated code leaves in the stream.

A compiled graph is a *region*: the ordered nodes of Inductor's schedule after fusion. When the
region runs (on fake tensors), it marks its place in the recorded stream: entered, which node is
reached, which generated kernel is launched on which arrays, left. Ops heard after a mark belong to
its node (extern and fallback calls, allocations, seeds).

Torch-free: values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpredict.model import Phase, Span, Tensor


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the final schedule.

    `kind` is "generated", "extern" (library or fallback call), "nop", "foreach" or "template".
    `ops` are the ATen ops it computes and `lines` where the user wrote them. `reads` and `writes`
    map buffer names to the bytes touched. `parts` are the names of the nodes fused into it, `sizes`
    its iteration space (outer, reduced), `mutates` the buffers it changes in place.
    """

    name: str
    kind: str
    ops: tuple[str, ...] = ()
    lines: tuple[Span, ...] = ()
    reads: Mapping[str, int] = field(default_factory=dict)
    writes: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    is_reduction: bool = False
    device: str = "cuda"
    mutates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a generated kernel: for each argument in order (buffer, bytes read, written,
    bytes of the whole buffer). Where sizes are variables the numbers are for the sizes seen first.
    """

    kernel: str
    arrays: tuple[tuple[str, int, int, int], ...]


Product = tuple[tuple[int | None, ...], tuple[int | None, ...], str]
"""A matrix product by its operands: their sizes (None: variable) and dtype."""


@dataclass(slots=True)
class Region:
    """One compiled graph, filled in while Inductor generates its code; then only read.

    `name` is dynamo's number of the frame and its compilation, such as `0/0`. `why_not` maps
    pairs of node names to Inductor's words for not fusing them. `notes` say what it would decide
    by timing: `padding` and `splitting` map matrix products to the kernels that either may add,
    `optional` are nodes that a template may take in. `dynamic` are the sizes that may vary; `runs`
    counts how often it ran, warm-up included; `partials` are buffers with a split reduction's
    partial results.
    """

    name: str
    phase: Phase
    nodes: list[Node] = field(default_factory=list)
    calls: list[KernelCall] = field(default_factory=list)
    why_not: dict[tuple[str, str], str] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()
    code: str = ""
    notes: tuple[str, ...] = ()
    padding: Mapping[Product, int] = field(default_factory=dict)
    splitting: Mapping[Product, int] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    dynamic: tuple[str, ...] = ()
    runs: int = 0
    partials: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Entered:
    region: Region
    phase: Phase


@dataclass(frozen=True, slots=True)
class Reached:
    """The region's code is at `node`; what follows is its doing."""

    node: Node
    phase: Phase


@dataclass(frozen=True, slots=True)
class Launched:
    """A generated kernel was launched: for each array (metadata, buffer, bytes read, written)."""

    kernel: str
    arrays: tuple[tuple[Tensor, str, int, int], ...]
    phase: Phase


@dataclass(frozen=True, slots=True)
class Left:
    region: Region
    phase: Phase


@dataclass(frozen=True, slots=True)
class Copied:
    """What follows, until `Replayed`, copies inputs to the addresses of CUDA graph `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Ungraphed:
    """A region that would be a CUDA graph runs without, for the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What follows, until `Ended`, is replayed by one launch of CUDA graph `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Ended:
    number: int


Mark = Entered | Reached | Launched | Left | Copied | Ungraphed | Replayed | Ended
