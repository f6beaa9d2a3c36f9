"""What PyTorch dispatched: an op, and where in the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kpredict.model.tensors import Tensor
from kpredict.model.words import KpredictError, Phase


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
