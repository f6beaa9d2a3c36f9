"""When torch.compile compiles a function again: for which call, why in plain words, what varies.

Private API touched: `torch._dynamo.convert_frame`, `torch._guards`, the shape environment.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

import torch

from kpredict.model import Span

_ENTRY = re.compile(r"^(\d+)/\d+: ")
_NAME = re.compile(r"L\['(\w+)'\]")
_SIZE = re.compile(r"^(.+)\.size\(\)\[(\d+)\]$")
_GUARDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), say)
    for pattern, say in (
        (
            r"^tensor '(.+)' (size|stride) mismatch at index (\d+)\. expected (\S+), actual (\S+)",
            lambda m: f"{m[2]} {m[3]} of {m[1]} is {m[5]} and was {m[4]}",
        ),
        (
            r"^tensor '(.+)' rank mismatch\. expected (\d+), actual (\d+)",
            lambda m: f"{m[1]} has {m[3]} dimensions and had {m[2]}",
        ),
        (
            r"^tensor '(.+)' dtype mismatch\. expected (\w+), actual (\w+)",
            lambda m: f"{m[1]} is {m[3].lower()} and was {m[2].lower()}",
        ),
        (
            r"^tensor '(.+)' requires_grad mismatch\. expected requires_grad=([01])",
            lambda m: f"{m[1]} {'no longer needs' if m[2] == '1' else 'needs'} gradients",
        ),
        (
            r"^GLOBAL_STATE changed: grad_mode",
            lambda _: "gradients were switched on or off",
        ),
        (r"^GLOBAL_STATE changed: (.+)", lambda m: f"{m[1].strip()} changed"),
        (r"^len\((.+)\) == (\d+)$", lambda m: f"{m[1]} no longer has {m[2]} items"),
        (r"^(.+?) == (.+)$", lambda m: f"{m[1]} is no longer {m[2]}"),
    )
)


def frame_number(reasons: Iterable[str]) -> str:
    """Dynamo's number of the frame that failed its guards: `0` of `0/1: ...`."""
    found = next((m for r in reasons if (m := _ENTRY.match(str(r)))), None)
    return found[1] if found is not None else ""


def plain_guard(reason: str) -> str:
    """`0/0: tensor 'x' size mismatch …` as "size 0 of x is 16 and was 4"."""
    text = _ENTRY.sub("", reason.strip()).partition("User stack trace")[0]
    text = _NAME.sub(r"\1", text.partition("  # ")[0]).strip()
    for pattern, say in _GUARDS:
        if match := pattern.match(text):
            return say(match)
    return " ".join(text.split())


def called_from(code: CodeType, is_users: Callable[[str], bool]) -> Span | None:
    """The user's line that called `code`, which dynamo is about to compile."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is not code and is_users(frame.f_code.co_filename):
            return Span(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def compiling_now() -> str:
    """The number of the compilation under way, such as `0/1`."""
    return str(torch._guards.CompileContext.current_compile_id() or "")


def variable_sizes(graph: Any) -> tuple[str, ...]:
    """What a graph of Inductor takes as variable: `size 0 of x`, `n`."""
    sizevars = graph.sizevars
    sources = getattr(sizevars.shape_env, "var_to_sources", {})
    found: dict[str, None] = {}
    for symbol in sources:
        if sizevars.shape_env.replacements.get(symbol, symbol) == symbol and sources[symbol]:
            found[_in_words(sources[symbol][0])] = None
    return tuple(found)


def _in_words(source: Any) -> str:
    name = source.name
    text = _NAME.sub(r"\1", str(name() if callable(name) else name))
    size = _SIZE.match(text)
    return f"size {size[2]} of {size[1]}" if size else text
