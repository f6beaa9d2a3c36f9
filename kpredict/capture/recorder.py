"""Listens to the pretended GPU and keeps what one run dispatched, with lines and phases."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch._ops import OpOverload

from kpredict.capture.convert import Converter
from kpredict.capture.values import Values
from kpredict.model import Op, Phase, Span

_TORCH = torch.__path__[0]
_KPREDICT = __file__.rsplit("/", 2)[0]
_SKIPPED = {"aten.detach.default", "prim.device.default", "aten.lift_fresh.default"}


class Recorder:
    """The ops of one run in stream order. `phase` is set by whoever drives the run."""

    def __init__(self, values: Values, converter: Converter) -> None:
        self.ops: list[Op] = []
        self.active = True
        self.phase = Phase.FORWARD
        self.values = values
        self.converter = converter
        self._forward: dict[int, tuple[Span | None, tuple[Span, ...]]] = {}
        self._seen_files: dict[str, bool] = {}

    def answer(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[bool, Any]:
        return self.values.answer(func, args, kwargs, self.where)

    def heard(
        self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        name = str(func)
        if not self.active or name in _SKIPPED:
            return
        node = torch._C._current_autograd_node()
        if node is None:
            span, stack = self.where()
            if torch.is_grad_enabled():
                # the op's autograd node, made just before it was dispatched
                self._forward.setdefault(torch.autograd._get_sequence_nr() - 1, (span, stack))
            phase = self.phase
        else:
            span, stack = self._forward.get(node._sequence_nr(), (None, ()))
            phase = Phase.BACKWARD
        self.ops.append(
            self.converter.op(
                func, args, kwargs, result, span=span, stack=stack, module="", phase=phase,
                index=len(self.ops),
            )
        )  # fmt: skip

    def sync(self, what: str) -> None:
        """An explicit wait of the host, kept in order as an op of its own."""
        if self.active:
            span, stack = self.where()
            op = Op("kpredict.synchronize.default", {"what": what}, (), span, "", self.phase)
            self.ops.append(op)

    def where(self) -> tuple[Span | None, tuple[Span, ...]]:
        """The innermost line outside torch and kpredict, and the lines that led to it."""
        spans: list[Span] = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if self._is_users(code.co_filename):
                spans.append(Span(code.co_filename, frame.f_lineno, code.co_name))
            frame = frame.f_back
        return (spans[0] if spans else None), tuple(spans)

    def _is_users(self, filename: str) -> bool:
        known = self._seen_files.get(filename)
        if known is None:
            known = self._seen_files[filename] = not (
                filename.startswith((_TORCH, _KPREDICT, "<frozen", sys.prefix + "/bin"))
                or "/lib/python3" in filename
                and "/site-packages/" not in filename
            )
        return known
