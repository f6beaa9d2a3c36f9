"""What the device is told to do, and what is to be said of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kpredict.model.ops import Span
from kpredict.model.tensors import Tensor
from kpredict.model.words import ONE, Basis, Count, Kind, Phase


@dataclass(frozen=True, slots=True)
class Access:
    """One array read from or written to GPU memory by one launch; `bytes` really touched."""

    tensor: Tensor
    bytes: int

    @classmethod
    def of(cls, tensor: Tensor) -> Access:
        return cls(tensor, tensor.nbytes)


Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """One line of a plan: what is launched, how often, by what, and why we believe so.

    `count` is how many kernels it is (a library call is an interval; memcpy, memset and sync are
    one each). `expected` is the most likely count of an interval. `ops` are the ATen ops and
    `lines` the source lines it covers. `region` names the compiled region, if any. `replay` is
    the number of the CUDA graph launch that replays it, counted from 1 within its plan; 0: none.
    `flops` are those of its matrix products, `precision` how they are made of float32: "ieee",
    "tf32", "3xtf32" (three TF32 products for one), "" as the dtype says.
    """

    kind: Kind
    name: str
    count: Count = ONE
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    basis: Basis = Basis.HOST_CODE
    because: str = ""
    expected: int | None = None
    grid: Dim3 | None = None
    block: Dim3 | None = None
    ops: tuple[str, ...] = ()
    lines: tuple[Span, ...] = ()
    module: str = ""
    phase: Phase = Phase.FORWARD
    region: str = ""
    flops: int = 0
    replay: int = 0
    precision: str = ""

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return sum(a.bytes for a in (*self.reads, *self.writes))

    @property
    def threads(self) -> int | None:
        if self.grid is None or self.block is None:
            return None
        return math.prod(self.grid) * math.prod(self.block)


@dataclass(frozen=True, slots=True)
class Unknown:
    """An op whose launches we cannot tell, and why. Never counted as 0 without this beside it."""

    op: str
    reason: str
    lines: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value the device would have computed, which we had to suppose."""

    what: str
    value: str
    line: Span | None = None


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Where torch.compile cut a function in two, and its reason in plain words."""

    reason: str
    line: Span | None = None


@dataclass(frozen=True, slots=True)
class Recompile:
    """A call for which torch.compile compiled a function again.

    `call` counts the calls of `function` from 1, `line` is where this one is made; `reason` says in
    plain words what differs from before, `dynamic` what is variable from then on (`size 0 of x`).
    `region` names what was compiled.
    """

    function: str
    call: int
    reason: str
    line: Span | None = None
    dynamic: tuple[str, ...] = ()
    region: str = ""

    @property
    def becomes(self) -> str:
        return f"; {', '.join(self.dynamic)} may vary from then on" if self.dynamic else ""

    def __str__(self) -> str:
        return f"call {self.call} of {self.function} compiles it again: {self.reason}{self.becomes}"


@dataclass(frozen=True, slots=True)
class Repeat:
    """One of several calls that a file makes of an entry, all under one torch.compile.

    `call` is its number in the file's run, from 1, and `kernels` what it launches compiled;
    `recompile` says why it is compiled again, if it is.
    """

    call: int
    inputs: tuple[str, ...]
    kernels: Count
    line: int | None = None
    recompile: Recompile | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """Why two launches, one reading what the other wrote, are not one.

    `producer` and `consumer` are indexes into the plan's launches; `reason` is a key that
    `kpredict explain fusion/<reason>` knows; `detail` says it for this pair.
    """

    producer: int
    consumer: int
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """An intermediate: written by one launch, read by later ones (indexes into the plan)."""

    tensor: Tensor
    writer: int
    readers: tuple[int, ...]
    bytes: int
