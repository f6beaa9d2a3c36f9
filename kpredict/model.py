"""The nouns of kpredict: every stage takes and gives these, and nothing else.

In: nothing (standard library only). Out: frozen values. Read this file first.

    source ─▶ Entry ─capture─▶ Op… ─eager/compiled/profiler─▶ Plan ─graph─▶ round trips ─▶ Report
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class KpredictError(Exception):
    """Something the user can mend: one sentence what is wrong, one what to do. Exit code 2."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class Kind(StrEnum):
    """What the device is told to do by one launch."""

    KERNEL = "kernel"
    LIBRARY = "library"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    SYNC = "sync"


class Basis(StrEnum):
    """Why we believe a count."""

    HOST_CODE = "host-code"  # follows from PyTorch's own launch code
    MEASURED = "measured"  # seen by a profiler
    LIBRARY = "library"  # heuristics of a closed library
    ASSUMED = "assumed"  # only an op's tag says so
    UNKNOWN = "unknown"


class Mode(StrEnum):
    EAGER = "eager"
    COMPILED = "compiled"
    AS_WRITTEN = "as_written"


class Phase(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"


ITEMSIZE: Mapping[str, int] = {
    "bool": 1, "uint8": 1, "int8": 1, "quint8": 1, "qint8": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
    "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "qint32": 4, "complex32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes per element, by the name torch prints without its `torch.` prefix."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of launches: the closed interval lo..hi, exact when equal. Intervals add."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if not 0 <= self.lo <= self.hi:
            raise ValueError(f"not an interval of counts: {self.lo}..{self.hi}")

    @classmethod
    def exactly(cls, n: int) -> Count:
        return cls(n, n)

    @property
    def exact(self) -> bool:
        return self.lo == self.hi

    def __add__(self, other: Count) -> Count:
        return Count(self.lo + other.lo, self.hi + other.hi)

    def __contains__(self, n: int) -> bool:
        return self.lo <= n <= self.hi

    def __str__(self) -> str:
        return str(self.lo) if self.exact else f"{self.lo}..{self.hi}"


ZERO = Count(0, 0)
ONE = Count(1, 1)


@dataclass(frozen=True, slots=True)
class Tensor:
    """The metadata of one array: everything a launch decision can depend on, no data.

    `shape` and `stride` count elements; `offset` is the storage offset in elements; `storage` is
    an id that two tensors share exactly when they share memory. `device` is "cuda" or "cpu".
    `lazy` says "conj" or "neg" when the values are to be read conjugated or negated. A sparse
    tensor has no strides but `parts`, its indices and values; its `layout` is "sparse_coo",
    "sparse_coo_coalesced", "sparse_csr" …
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str = "cuda"
    storage: int = -1
    offset: int = 0
    lazy: str = ""
    layout: str = "strided"
    parts: tuple[Tensor, ...] = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def is_cuda(self) -> bool:
        return self.device == "cuda"

    @property
    def is_floating_point(self) -> bool:
        return self.dtype.startswith(("float", "bfloat"))

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")

    @property
    def nbytes(self) -> int:
        """Bytes of the distinct elements it touches: a dimension with stride 0 counts once."""
        if self.parts:
            return sum(t.nbytes for t in self.parts)
        n = math.prod(s for s, st in zip(self.shape, self.stride, strict=True) if st != 0 or s == 0)
        return n * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Row-major and dense, as `torch.Tensor.is_contiguous()` says (size-1 dims are free)."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size == 0:
                return True
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True

    def is_contiguous_in(self, order: tuple[int, ...]) -> bool:
        """Dense with the dims laid out as `order` says, outermost first."""
        expected = 1
        for d in reversed(order):
            if self.shape[d] != 1:
                if self.stride[d] != expected:
                    return False
                expected *= self.shape[d]
        return True

    @property
    def is_channels_last(self) -> bool:
        """NHWC (4-D) or NDHWC (5-D) dense layout."""
        if self.ndim not in (4, 5):
            return False
        return self.is_contiguous_in((0, *range(2, self.ndim), 1))

    @property
    def is_dense(self) -> bool:
        """Non-overlapping and dense: some permutation of the dims is contiguous."""
        expected = 1
        dims = [(st, s) for s, st in zip(self.shape, self.stride, strict=True) if s != 1]
        if any(s == 0 for _, s in dims):
            return True
        for stride, size in sorted(dims):
            if stride != expected:
                return False
            expected *= size
        return True

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the user's source: file as given by the user, 1-based line."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Op:
    """One ATen op as it was dispatched.

    `name` is what torch prints (`aten.addmm.default`). `args` maps every argument of the op's
    schema to its value, defaults filled in: Tensor, number, bool, str, None, or a tuple of those;
    dtypes, devices, layouts and memory formats are strings. `outputs` are the results in order
    (nested lists flattened). A backward op has the span of the forward op it differentiates.
    `tags` holds "view", "pointwise" and "reduction" as torch tags its ops. `assumed` is the number
    that a data-dependent op was told instead of reading the device. `precision` is that of float32
    products as the user's code had set it for this kind of op: "ieee", "tf32" or "" (not told).
    """

    name: str
    args: Mapping[str, Any]
    outputs: tuple[Any, ...] = ()
    span: Span | None = None
    module: str = ""
    phase: Phase = Phase.FORWARD
    index: int = 0
    stack: tuple[Span, ...] = ()
    tags: frozenset[str] = frozenset()
    grad_enabled: bool = False
    assumed: float | None = None
    precision: str = ""

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.args.get(name, default)

    @property
    def packet(self) -> str:
        """`aten.addmm` of `aten.addmm.default`."""
        return self.name.rsplit(".", 1)[0]

    @property
    def overload(self) -> str:
        return self.name.rsplit(".", 1)[1]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Every tensor among the arguments, in schema order."""
        return tuple(tensors_in(self.args.values()))

    @property
    def out(self) -> Tensor:
        """The first tensor it returns."""
        for t in self.outputs:
            if isinstance(t, Tensor):
                return t
        raise KpredictError(f"{self.name} returned no tensor.", "This is an error in a rule.")

    @property
    def is_inplace(self) -> bool:
        """In place: the packet's name ends in one underscore (`aten.add_`)."""
        name = self.packet.rsplit(".", 1)[-1]
        return name.endswith("_") and not name.endswith("__")


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Every Tensor inside nested tuples, lists and dict values, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for v in value.values():
            yield from tensors_in(v)
    elif not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        for v in value:
            yield from tensors_in(v)


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


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered launches of one entry point, mode and phase: predicted or measured alike.

    `skipped` are where torch.compile gave up on a whole function, which `notes` tell too.
    """

    launches: tuple[Launch, ...] = ()
    round_trips: tuple[RoundTrip, ...] = ()
    barriers: tuple[Barrier, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    graph_breaks: tuple[GraphBreak, ...] = ()
    notes: tuple[str, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    skipped: tuple[GraphBreak, ...] = ()

    def count(self, *kinds: Kind) -> Count:
        total = ZERO
        for launch in self.launches:
            if launch.kind in kinds:
                total += launch.count
        return total

    @property
    def kernels(self) -> Count:
        """Kernels, those inside library calls included."""
        return self.count(Kind.KERNEL, Kind.LIBRARY)

    @property
    def graph_launches(self) -> int:
        """How often a CUDA graph is launched."""
        return len({launch.replay for launch in self.launches if launch.replay})

    @property
    def host_launches(self) -> Count:
        """What the host tells the device to do: a CUDA graph is one launch, whatever it holds."""
        total = Count.exactly(self.graph_launches)
        for launch in self.launches:
            if not launch.replay and launch.kind is not Kind.SYNC:
                total += launch.count
        return total

    @property
    def library_calls(self) -> int:
        return sum(launch.kind is Kind.LIBRARY for launch in self.launches)

    @property
    def memcpy(self) -> Count:
        return self.count(Kind.MEMCPY)

    @property
    def memset(self) -> Count:
        return self.count(Kind.MEMSET)

    @property
    def syncs(self) -> Count:
        return self.count(Kind.SYNC)

    @property
    def transfers(self) -> tuple[int, int]:
        """(arrays, bytes) read from and written to GPU memory by all launches."""
        arrays = total = 0
        for launch in self.launches:
            arrays += len(launch.reads) + len(launch.writes)
            total += sum(a.bytes for a in launch.reads) + sum(a.bytes for a in launch.writes)
        return arrays, total

    @property
    def round_trip_bytes(self) -> int:
        return sum(r.bytes for r in self.round_trips)


@dataclass(frozen=True, slots=True)
class Phases:
    """The plans of one mode, by phase; None where the phase was not asked for."""

    forward: Plan | None = None
    backward: Plan | None = None
    step: Plan | None = None

    def __iter__(self) -> Iterator[tuple[Phase, Plan]]:
        for phase in Phase:
            plan = getattr(self, phase.value)
            if plan is not None:
                yield phase, plan

    @property
    def kernels(self) -> Count:
        return sum((plan.kernels for _, plan in self), ZERO)


@dataclass(frozen=True, slots=True)
class Target:
    """The GPU and torch a count is for. Figures are public ones; bandwidth in GB/s, peak in
    TFLOP/s (dense), cache and memory in MiB, clock in MHz, shared memory in bytes per block."""

    name: str
    gpu: str
    capability: tuple[int, int]
    sms: int
    bandwidth: float
    l2: int
    clock: int
    memory: int
    max_threads_per_sm: int
    shared_per_block: int
    shared_per_sm: int
    shared_optin: int
    fp32_tflops: float
    tf32_tflops: float
    fp16_tflops: float
    launch_us: float = 2.5
    torch: str = "2.13.0"
    cuda: int = 13

    @property
    def sm(self) -> int:
        """Compute capability as one number: 90 for 9.0."""
        return self.capability[0] * 10 + self.capability[1]

    @property
    def release(self) -> tuple[int, int]:
        """The torch release as numbers: (2, 13)."""
        major, minor = self.torch.split(".")[:2]
        return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class Totals:
    """What one mode launches and moves over all its phases; `expected` kernels of an interval."""

    kernels: Count
    expected: int
    round_trips: int
    bytes: int
    syncs: int = 0
    graph_breaks: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change of the source that keeps what it computes, and what it brings.

    `kind` is "by-hand", "compile", "graph-break", "cast", "copy", "optimizer", or "all" for
    everything together. `first` and `last` are the lines it is about; `diff` is the edit as a
    unified diff. `after` is predicted of the changed program as `before` is of the file. `failure`
    says why the changed program could not be analysed.
    """

    kind: str
    title: str
    first: int
    last: int
    before: Mapping[Mode, Totals] = field(default_factory=dict)
    after: Mapping[Mode, Totals] = field(default_factory=dict)
    note: str = ""
    diff: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry point's answer: its plans by mode and phase, and what they rest on.

    `calls` says how often a line of the file ran, `array_names` what to call a storage, by mode.
    `repeats` are the calls that the file makes of it with different inputs, when they are several.
    `outputs` are what it returned, in the words of `inputs`. `changes` are what could be changed,
    the most valuable first; None when nobody asked.
    """

    file: str
    name: str
    line: int
    inputs: tuple[str, ...] = ()
    plans: Mapping[Mode, Phases] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    source: str = ""
    array_names: Mapping[Mode, Mapping[int, str]] = field(default_factory=dict)
    calls: Mapping[int, int] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    changes: tuple[Outcome, ...] | None = None
    repeats: tuple[Repeat, ...] = ()

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        return tuple(u for ps in self.plans.values() for _, p in ps for u in p.unknowns)

    @property
    def graph_breaks(self) -> tuple[GraphBreak, ...]:
        return tuple(b for ps in self.plans.values() for _, p in ps for b in p.graph_breaks)

    @property
    def skipped(self) -> tuple[GraphBreak, ...]:
        return tuple(b for ps in self.plans.values() for _, p in ps for b in p.skipped)


@dataclass(frozen=True, slots=True)
class Failure:
    """An entry point or file that could not be analysed: a result too. `skipped` marks one that
    nobody asked for by name and that lacks inputs only."""

    file: str
    message: str
    hint: str = ""
    name: str = ""
    line: int = 0
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All that one run found out; saved as JSON it can be rendered later in any format."""

    target: Target
    entries: tuple[Entry, ...] = ()
    errors: tuple[Failure, ...] = ()
    skipped: tuple[Failure, ...] = ()
    seconds: float = 0.0
    peak_mb: float = 0.0

    @property
    def eager(self) -> Phases:
        """The first entry's eager plans: `report.eager.forward.kernels`."""
        return self._plans(Mode.EAGER)

    @property
    def compiled(self) -> Phases:
        """The first entry's compiled plans."""
        return self._plans(Mode.COMPILED)

    def _plans(self, mode: Mode) -> Phases:
        if not self.entries or mode not in self.entries[0].plans:
            raise KpredictError(f"The report has no {mode} plan.", "Ask for it with modes=.")
        return self.entries[0].plans[mode]


@dataclass(frozen=True, slots=True)
class Turn:
    """Where an entry's mode stops to be bound by launches: it is at the size `below`, and at
    `above` it is bound by `by`, "memory" or "compute". Both sizes were predicted."""

    file: str
    name: str
    mode: Mode
    below: int
    above: int
    by: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same entries side by side: a report for each value of what is varied, "target" or the
    name of a dimension; `turns` belong to sizes."""

    varied: str
    points: tuple[tuple[str, Report], ...]
    turns: tuple[Turn, ...] = ()

    def entry(self, label: str, file: str, name: str) -> Entry | None:
        """An entry at one point; None where it could not be analysed."""
        report = dict(self.points)[label]
        return next((e for e in report.entries if (e.file, e.name) == (file, name)), None)

    @property
    def entries(self) -> tuple[tuple[str, str], ...]:
        """(file, name) of everything that was analysed at any point, in order."""
        return tuple(dict.fromkeys((e.file, e.name) for _, r in self.points for e in r.entries))
