"""The prelude: what PyTorch's composites and modules do, in Python, parsed only where it is used.

A part of the prelude is a folder of files that share one scope. Their definitions start in the
first column, so a name's text is found without parsing the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from kpredict.source.infer.values import Scope, Symbol, Value

_START = re.compile(r"^(?:def|class) (\w+)|^(\w+) = ", re.M)
_OWN = ("known", "unknown", "missing", "sync", "parameter", "buffer", "grad_enabled", "several_of",
        "attention_backend", "one_call", "packed_buffer", "taped", "release")  # fmt: skip
"""The reader's own functions, as the prelude sees them."""


class Shelf(dict[str, Value]):
    """The names of one part. A definition is read when it is asked for."""

    def __init__(self, texts: dict[str, str], read: Callable[[str, Shelf], None]) -> None:
        super().__init__({n: Symbol(f"reader.{n}") for n in _OWN})
        self["aten"] = Symbol("aten")
        self["torch"] = Symbol("torch")
        self["math"] = Symbol("math")
        self["copy"] = Symbol("copy")
        self["F"] = Symbol("torch.nn.functional")
        self.texts = texts
        self._read = read

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.texts

    def __missing__(self, name: str) -> Value:
        text = self.texts.pop(name)
        self._read(text, self)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401

    def __iter__(self) -> Iterator[str]:
        yield from list(super().keys())
        yield from list(self.texts)


def definitions(text: str) -> dict[str, str]:
    """The source of every definition of a file, by name."""
    starts = list(_START.finditer(text))
    if not starts:
        return {}
    ends = [m.start() for m in starts[1:]] + [len(text)]
    return {m[1] or m[2]: text[m.start() : end] for m, end in zip(starts, ends, strict=True)}


def part(name: str, read: Callable[[str, Scope], None]) -> Scope:
    """The scope of the prelude's part `name`; `read` executes a text in it."""
    texts: dict[str, str] = {}
    folder = files("kpredict.source.infer.prelude").joinpath(name)
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".py"):
            found = definitions(file.read_text("utf-8"))
            twice = found.keys() & texts.keys()
            if twice:
                raise ValueError(f"{sorted(twice)} of the prelude are defined twice")
            texts.update(found)
    scope = Scope(f"<{name}>", library=True)
    scope.names = Shelf(texts, lambda text, _: read(text, scope))
    return scope


@cache
def prelude(name: str) -> Scope:
    """The names of one part of the prelude: composites, functional, nn."""
    from kpredict.source.infer.machine import Machine
    from kpredict.source.infer.parsing import parse
    from kpredict.source.infer.state import Frame

    reader = Machine()

    def read(text: str, scope: Scope) -> None:
        reader.fuel = 1_000_000
        reader.execute(parse(text).body, Frame(scope, "<module>", scope.names))

    return part(name, read)
