"""What reading a function leaves behind: steps in order, with branches and loops kept as such.

A Step is an ATen op as capture would see it, its arrays perhaps of unknown shape. `straight` gives
the `[Op]` of a trace without open choices; `count` folds any trace into an interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kpredict.model import ZERO, Count, Op, Span, Tensor
from kpredict.source.infer.values import Array


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's source: 1-based line, 1-based column, qualified function name."""

    file: str
    line: int
    column: int
    function: str

    @property
    def span(self) -> Span:
        return Span(self.file, self.line, self.function)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One ATen op. `args` maps schema names to values (Array, number, tuple, …), defaults in."""

    name: str
    args: Mapping[str, Any]
    outputs: tuple[Any, ...]
    place: Place
    stack: tuple[Place, ...] = ()
    tags: frozenset[str] = frozenset()
    grad: bool = False
    direct: bool = True  # the user's own call, not one inside a composite of PyTorch

    @property
    def packet(self) -> str:
        return self.name.rsplit(".", 1)[0]

    @property
    def short(self) -> str:
        """`add` of `aten.add_.Tensor`: the operation, in place or not."""
        name = self.packet.removeprefix("aten.")
        return name[:-1] if name.endswith("_") and not name.endswith("__") else name

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(_arrays(self.args.values()))

    @property
    def results(self) -> tuple[Array, ...]:
        return tuple(o for o in self.outputs if isinstance(o, Array))

    @property
    def known(self) -> bool:
        return all(a.known for a in (*self.arrays, *self.results))

    def op(self, index: int = 0) -> Op:
        """The model's Op. Call it only when `known`."""
        return Op(
            self.name,
            {k: _plain(v) for k, v in self.args.items()},
            tuple(_plain(v) for v in self.outputs),
            self.place.span,
            index=index,
            stack=tuple(p.span for p in self.stack),
            tags=self.tags,
            grad_enabled=self.grad,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """One of several ways is taken; which one, the source does not tell."""

    branches: tuple[tuple[Item, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """A loop whose number of rounds is not known."""

    body: tuple[Item, ...]
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """A call that may launch and that we cannot look into."""

    what: str
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Sync:
    """The host waits: `.item()`, `synchronize()`, a copy to the CPU, an `if` on a tensor."""

    what: str
    place: Place
    array: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """A call worth a finding that is no op: `empty_cache`, `zero_grad`, an optimizer's making."""

    what: str
    place: Place
    kwargs: Mapping[str, Any]


Item = Step | Fork | Repeat | Missing | Sync | Called


def walk(items: Iterable[Item]) -> Iterator[Item]:
    """Every item, those inside forks and loops too, each once."""
    for item in items:
        yield item
        if isinstance(item, Fork):
            for branch in item.branches:
                yield from walk(branch)
        elif isinstance(item, Repeat):
            yield from walk(item.body)


def steps(items: Iterable[Item]) -> Iterator[Step]:
    return (item for item in walk(items) if isinstance(item, Step))


@dataclass(frozen=True, slots=True)
class Interval:
    """A count that may be open: `hi` None means that nobody knows how many."""

    lo: int
    hi: int | None

    @classmethod
    def of(cls, count: Count) -> Interval:
        return cls(count.lo, count.hi)

    @property
    def width(self) -> int | None:
        return None if self.hi is None else self.hi - self.lo

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            self.lo + other.lo, None if self.hi is None or other.hi is None else self.hi + other.hi
        )

    def __contains__(self, n: int) -> bool:
        return self.lo <= n and (self.hi is None or n <= self.hi)

    def __str__(self) -> str:
        if self.hi is None:
            return f"{self.lo} or more"
        return str(self.lo) if self.lo == self.hi else f"{self.lo}..{self.hi}"


NOTHING = Interval.of(ZERO)


def count(items: Iterable[Item], of: Callable[[Step], Interval]) -> Interval:
    """The interval of a whole trace, given that of one step."""
    total = NOTHING
    for item in items:
        match item:
            case Step():
                total += of(item)
            case Fork(branches):
                ways = [count(b, of) for b in branches]
                highs = [w.hi for w in ways]
                total += Interval(
                    min(w.lo for w in ways),
                    None if None in highs else max(h for h in highs if h is not None),
                )
            case Repeat(body):
                inside = count(body, of)
                total += Interval(0, 0 if inside.hi == 0 else None)
            case Missing():
                total += Interval(0, None)
    return total


def straight(items: Iterable[Item]) -> list[Op] | None:
    """The trace as capture would give it, or None when a choice or a shape is open."""
    out: list[Op] = []
    for item in items:
        if isinstance(item, (Fork, Repeat, Missing)) or (isinstance(item, Step) and not item.known):
            return None
        if isinstance(item, Step):
            out.append(item.op(len(out)))
    return out


def _arrays(values: Iterable[Any]) -> Iterator[Array]:
    for v in values:
        if isinstance(v, Array):
            yield v
        elif isinstance(v, (tuple, list)):
            yield from _arrays(v)


def _plain(value: Any) -> Any:
    if isinstance(value, Array):
        assert value.sizes is not None
        assert value.stride is not None
        assert value.dtype is not None
        return Tensor(
            value.sizes, value.stride, value.dtype, value.device, value.storage, value.offset
        )
    if isinstance(value, (tuple, list)):
        return tuple(_plain(v) for v in value)
    return value
