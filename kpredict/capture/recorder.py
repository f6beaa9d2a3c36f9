"""Listens to the pretended GPU and keeps what one run dispatched, with lines and phases."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Protocol

import torch
from torch._ops import OpOverload

from kpredict.capture.composites import on_gpu
from kpredict.capture.convert import Converter
from kpredict.capture.values import ANSWERS, Values
from kpredict.model import Op, Phase, Span

_NEVER_USERS = (
    torch.__path__[0], str(Path(__file__).parents[1]), "<frozen", "<string>", "<eval_with_key>",
    "<region",
)  # fmt: skip
_STDLIB = sysconfig.get_path("stdlib")
_CALL_MODULE = torch.nn.Module._call_impl.__code__
_SILENT = {"aten::detach", "aten::lift_fresh", "aten::alias"}


class _Place(NamedTuple):
    span: Span | None
    stack: tuple[Span, ...]
    module: str


class Marker(Protocol):
    """Something that is not an op but has its place in the stream, such as a compiled region."""

    @property
    def phase(self) -> Phase: ...


Item = Op | Marker


class Recorder:
    """The ops of one run in stream order, by phase. `phase` is set by whoever drives the run."""

    def __init__(
        self, values: Values, converter: Converter, root: torch.nn.Module | None = None
    ) -> None:
        self.items: dict[Phase, list[Item]] = {phase: [] for phase in Phase}
        self.active = True
        self.phase = Phase.FORWARD
        self.values = values
        self.converter = converter
        self._modules = (
            {id(m): name for name, m in root.named_modules()} if root is not None else {}
        )
        self._forward: dict[int, _Place] = {}
        self._user_files: dict[str, bool] = {}
        self._count = 0

    @property
    def recorded(self) -> int:
        """How many ops were heard so far."""
        return self._count

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What runs under it is not the user's code: nothing is kept."""
        before, self.active = self.active, False
        try:
            yield
        finally:
            self.active = before

    def mark(self, item: Marker) -> None:
        """Keep `item` at this place of the stream."""
        if self.active:
            self.items[self.phase].append(item)

    def knows(self, func: OpOverload) -> bool:
        self.values.taken = None
        return func in ANSWERS

    def answer(self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self.values.answer(func, args, kwargs, self.where)

    def settle(self, func: OpOverload, args: Sequence[Any], result: Any) -> Any:
        return self.values.settle(func, args, result, self.where)

    def heard(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        if not self.active or func.namespace == "profiler" or func.name() in _SILENT:
            return
        node = torch._C._current_autograd_node()
        if node is None:
            place = self._here()
            if torch.is_grad_enabled():
                # the op's autograd node was made just before the op was dispatched
                self._forward.setdefault(torch.autograd._get_sequence_nr() - 1, place)
            phase = self.phase
        else:
            place = self._forward.get(node._sequence_nr()) or self._here()
            phase = Phase.BACKWARD
            in_place = on_gpu(node.name(), func, args)
            if in_place is not None:
                func, args = in_place
                self.converter.join(result, args[0])
        op = self.converter.op(
            func, args, kwargs, result, span=place.span, stack=place.stack, module=place.module,
            phase=phase, index=self._count, assumed=self.values.taken,
        )  # fmt: skip
        self._count += 1
        self.items[self.phase].append(op)

    def sync(self, what: str) -> None:
        """An explicit wait of the host, kept in order as an op of its own."""
        if self.active:
            place = self._here()
            op = Op(
                "kpredict.synchronize.default", {"what": what}, (), place.span, place.module,
                self.phase, self._count, place.stack,
            )  # fmt: skip
            self._count += 1
            self.items[self.phase].append(op)

    def kernel(
        self, name: str, reads: Sequence[torch.Tensor], writes: Sequence[torch.Tensor]
    ) -> None:
        """A launch of a kernel of the user's own, kept in order as an op of its own."""
        if self.active:
            place = self._here()
            args = {
                "name": name, "reads": tuple(map(self.converter.tensor, reads)),
                "writes": tuple(map(self.converter.tensor, writes)),
            }  # fmt: skip
            op = Op(
                "kpredict.triton_kernel.default", args, (), place.span, place.module, self.phase,
                self._count, place.stack,
            )  # fmt: skip
            self._count += 1
            self.items[self.phase].append(op)

    def where(self) -> Span | None:
        """The user's line that is running."""
        return self._here().span

    def _here(self) -> _Place:
        """The lines outside torch and kpredict that led here, innermost first, and the module."""
        spans: list[Span] = []
        module = ""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if self._is_users(code.co_filename):
                spans.append(Span(code.co_filename, frame.f_lineno, code.co_name))
            elif not module and code is _CALL_MODULE:
                module = self._modules.get(id(frame.f_locals.get("self")), "")
            frame = frame.f_back
        return _Place(spans[0] if spans else None, tuple(spans), module)

    def _is_users(self, filename: str) -> bool:
        known = self._user_files.get(filename)
        if known is None:
            known = self._user_files[filename] = not filename.startswith(_NEVER_USERS) and (
                not filename.startswith(_STDLIB) or "-packages" in filename
            )
        return known
