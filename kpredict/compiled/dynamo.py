"""The one place that touches dynamo's private API: graph breaks, skipped frames, recompilations.

Private API touched: `torch._dynamo` symbolic_convert, convert_frame, trace_rules, exc and
variables.optimizer.
"""

from __future__ import annotations

import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from types import FrameType
from typing import Any

import torch

import kpredict
from kpredict.capture.world import World
from kpredict.compiled.patching import Patches
from kpredict.compiled.recompiles import called_from, compiling_now, frame_number, plain_guard
from kpredict.model import GraphBreak, Phase, Recompile, Span

_SKIPPED = "Skipping the function and falling back to eager"
_EXPLANATION = re.compile(r"Explanation: (.+?)(?=\n\s*\n|\n\s*Hint:|\Z)", re.DOTALL)
_STDLIB = sysconfig.get_path("stdlib") + "/"
_HINT = re.compile(r"Hint: (.+)")
_LEAD_IN = re.compile(r"^(Encountered graph break when|Failed to handle graph break)[^\n]*\n+")


class Kind(StrEnum):
    BREAK = "graph break"
    SKIP = "skipped frame"


@dataclass(frozen=True, slots=True)
class Said:
    """One thing dynamo said while it traced, in the phase that ran."""

    kind: Kind
    phase: Phase
    what: GraphBreak


@dataclass(slots=True)
class Heard:
    """What dynamo said, in order; `calls` tells how often a frame's compiled code ran so far. Of
    functions that are compiled again, those that were so in the `warming` runs and still are in the
    run that counts are `unsettled`."""

    said: list[Said] = field(default_factory=list)
    recompiles: list[tuple[Phase, Recompile]] = field(default_factory=list)
    warming: set[str] = field(default_factory=set)
    unsettled: dict[str, None] = field(default_factory=dict)
    calls: Callable[[str], int] = lambda _: 0

    def of(self, kind: Kind, phase: Phase | None = None) -> tuple[GraphBreak, ...]:
        return tuple(s.what for s in self.said if s.kind is kind and phase in (None, s.phase))


@contextmanager
def dynamo(world: World, heard: Heard) -> Iterator[None]:
    """Keep what dynamo says while this is entered; its compiled code is forgotten before and after.

    An optimizer's state is made by dynamo while it traces, with all modes off: in our world again.
    """
    torch._dynamo.reset()
    torch._dynamo.trace_rules.add(kpredict.__name__)  # never trace our own frames
    with ExitStack() as stack:
        stack.enter_context(_unchecked_distributions())
        patches = Patches(stack)
        patches.wrap(
            "torch._dynamo.symbolic_convert", "InstructionTranslatorBase.log_graph_break",
            lambda original: _breaks(original, world, heard),
        )  # fmt: skip
        patches.wrap(
            "torch._dynamo.convert_frame", "get_and_maybe_log_recompilation_reasons",
            lambda original: _recompiles(original, world, heard),
        )  # fmt: skip
        patches.wrap(
            "torch._dynamo.convert_frame", "exceeds_recompile_limit",
            lambda original: _limited(original, world, heard),
        )  # fmt: skip
        optimizer = "torch._dynamo.variables.optimizer"
        patches.wrap(
            optimizer, "OptimizerVariable.move_step_if_cpu",
            lambda original: _in_world(original, world),
        )  # fmt: skip
        patches.wrap(
            optimizer, "OptimizerVariable.call_method",
            lambda original: _state_in_world(original, world),
        )  # fmt: skip
        try:
            yield
        finally:
            torch._dynamo.reset()


@contextmanager
def _unchecked_distributions() -> Iterator[None]:
    """The first torch.compile of a process turns the checks of `torch.distributions` off for good
    (TorchPatcher.patch in eval_frame.py); here it does so for compiled runs, and eager ones that
    come after them in this process check again."""
    kind = torch.distributions.Distribution
    before = kind._validate_args
    kind.set_default_validate_args(False)
    try:
        yield
    finally:
        kind.set_default_validate_args(before)


def _in_world(original: Callable[..., Any], world: World) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with world.mode:
            return original(*args, **kwargs)

    return run


def _state_in_world(original: Callable[..., Any], world: World) -> Callable[..., Any]:
    def call_method(variable: Any, tx: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        optimizer = variable.value
        if name != "_init_group" or not hasattr(optimizer, name):
            return original(variable, tx, name, *args, **kwargs)
        optimizer.__dict__[name] = _in_world(optimizer._init_group, world)
        try:
            return original(variable, tx, name, *args, **kwargs)
        finally:
            del optimizer.__dict__[name]

    return call_method


def _breaks(original: Callable[..., Any], world: World, heard: Heard) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def log_graph_break(*args: Any, **kwargs: Any) -> Any:
        said = signature.bind(*args, **kwargs).arguments
        error = said.get("exc")
        if not getattr(error, "logged", False):
            reason = str(said["reason"])
            kind = Kind.SKIP if _SKIPPED in reason else Kind.BREAK
            words = (
                _OPTIMIZER if _USER_INSERTED in reason and _in_optim(error) else plain_words(reason)
            )
            found = GraphBreak(words, _line_of(error))
            heard.said.append(Said(kind, _phase(world), found))
        return original(*args, **kwargs)

    return log_graph_break


def _recompiles(original: Callable[..., Any], world: World, heard: Heard) -> Callable[..., Any]:
    def get_reasons(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        reasons = [found] if isinstance(found, str) else list(found)
        frame = args[1] if len(args) > 1 else kwargs.get("frame")
        if reasons and frame is not None:
            again = Recompile(
                frame.f_code.co_name,
                heard.calls(frame_number(reasons)) + 1,
                plain_guard(str(reasons[0])),
                called_from(frame.f_code, _is_users),
                region=compiling_now(),
            )
            listener: Any = world.mode.listener
            if listener.active and again.function in heard.warming:
                heard.unsettled[again.function] = None
            elif not listener.active:
                heard.warming.add(again.function)
            heard.recompiles.append((_phase(world), again))
        return found

    return get_reasons


def _limited(original: Callable[..., Any], world: World, heard: Heard) -> Callable[..., Any]:
    """Compiled too often, a function runs eagerly wherever no earlier code fits."""

    def exceeds_limit(*args: Any, **kwargs: Any) -> Any:
        found = exceeded, limit = original(*args, **kwargs)
        if exceeded and heard.recompiles:
            phase, last = heard.recompiles.pop()
            words = f"{last.reason}, and it was compiled as often as {limit} allows"
            line = Span(last.line.file, last.line.line, last.function) if last.line else None
            heard.said.append(Said(Kind.SKIP, phase, GraphBreak(words, line)))
        return found

    return exceeds_limit


def _phase(world: World) -> Phase:
    listener: Any = world.mode.listener
    phase: Phase = listener.phase
    return phase


_USER_INSERTED = "User-inserted graph break"
_OPTIMIZER = "torch.optim breaks the graph itself, around its update"


def _in_optim(error: Any) -> bool:
    """Whether the innermost traced line is the optimizer's own."""
    stack = list(_traced(error))
    return bool(stack) and stack[-1].filename.startswith(f"{torch.__path__[0]}/optim/")


def _traced(error: Any) -> Iterable[Any]:
    return getattr(error, "real_stack", None) or torch._guards.TracingContext.extract_stack() or ()


def _line_of(error: Any) -> Span | None:
    """The user's line that dynamo was tracing, else the one that called into torch."""
    for traced in reversed(list(_traced(error))):
        if _is_users(traced.filename):
            return Span(traced.filename, traced.lineno or 0, traced.name)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return Span(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def _is_users(file: str) -> bool:
    return not file.startswith((torch.__path__[0], kpredict.__path__[0], "<", _STDLIB))


def plain_words(reason: str) -> str:
    """Dynamo's message as "What happened: why (hint)", on one line."""
    text = _LEAD_IN.sub("", reason.strip())
    title = _one_line(text.split("\n", 1)[0])
    explanation = _EXPLANATION.search(text)
    hint = _HINT.search(text)
    words = title
    if explanation is not None:
        words += f": {_one_line(explanation[1])}"
    if hint is not None:
        words += f" Hint: {_one_line(hint[1])}"
    return words


def _one_line(text: str) -> str:
    return " ".join(text.split())


def why_compile_failed(error: BaseException) -> tuple[str, Span | None] | None:
    """What torch.compile says when it fails itself, and the user's line that it was at; None for an
    error of the user's own code."""
    from torch._dynamo.exc import TorchDynamoException

    if not isinstance(error, TorchDynamoException):
        return None
    line = _line_of(error) if getattr(error, "real_stack", None) else None
    inner = getattr(error, "inner_exception", None)
    if inner is not None:
        words = _one_line(str(inner).partition("Set TORCHDYNAMO")[0])
        return f"{type(inner).__name__}: {words}"[:300], line
    return plain_words(str(error).partition("from user code")[0]), line


def is_ours(error: BaseException) -> bool:
    """Whether it was raised in kpredict's own code, which a GPU machine does not run."""
    inner = getattr(error, "inner_exception", None) or error
    frames = traceback.extract_tb(inner.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(kpredict.__path__[0])
