"""What a file's own `torch.compile(...)` calls ask for, by the function or class they compile.

The compiled plan of an entry that its file compiles takes the same options. Private API: none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch

_KEPT = ("mode", "options", "dynamic", "fullgraph")  # what changes the plan


@dataclass(slots=True)
class Noted:
    """Options by what was compiled; the first call for a function or class stands."""

    options: dict[Any, Mapping[str, Any]] = field(default_factory=dict)

    def of(self, fn: Callable[..., Any]) -> Mapping[str, Any]:
        """The options the file compiles `fn` with: nothing where it does not, or with defaults."""
        return self.options.get(_key(fn), {})


@contextmanager
def noting_compile_calls() -> Iterator[Noted]:
    """Keep the options of every `torch.compile` call while this is entered; it works as before."""
    noted = Noted()
    original = torch.compile

    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        if model is not None:
            given = {k: v for k, v in kwargs.items() if k in _KEPT and v not in (None, False)}
            if kwargs.get("dynamic") is False:
                given["dynamic"] = False
            noted.options.setdefault(_key(model), given)
        return original(model, *args, **kwargs)

    with mock.patch.object(torch, "compile", compile):
        yield noted


def _key(fn: Any) -> Any:
    """A function's code, a module's class: what stays the same for another object of the kind."""
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, torch.nn.Module) and fn.__name__ in ("_call_impl", "forward", "__call__"):
        fn = owner
    if isinstance(fn, torch.nn.Module):
        inner = fn._modules.get("_orig_mod")
        return type(fn if inner is None else inner)
    if isinstance(fn, type):
        return fn
    inner = getattr(fn, "_torchdynamo_orig_callable", fn)
    return getattr(getattr(inner, "__func__", inner), "__code__", id(inner))


def merge(own: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The file's options under those asked for; a mode asked for replaces its `options` too."""
    kept = {k: v for k, v in own.items() if not (k == "options" and "mode" in asked)}
    return kept | dict(asked)


def in_words(options: Mapping[str, Any]) -> str:
    """`torch.compile(mode='max-autotune', fullgraph=True)`."""
    return f"torch.compile({', '.join(f'{k}={v!r}' for k, v in options.items())})"
