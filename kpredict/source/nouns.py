"""What a file says of itself: the nouns of the source stage. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kpredict.source.inputs import InputSpec


class EntryKind(StrEnum):
    FUNCTION = "function"
    METHOD = "method"
    MODULE = "module"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, without `self`. `kind` is "positional", "keyword", "args" or "kwargs";
    `annotated` is what a jaxtyping annotation says of it."""

    name: str
    kind: str = "positional"
    has_default: bool = False
    annotated: InputSpec | None = None

    @property
    def required(self) -> bool:
        return not self.has_default and self.kind in ("positional", "keyword")


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """Something that can be called. For a module the parameters are `forward`'s and `init`
    those of `__init__`; `directive` holds what comments on it say of its inputs."""

    name: str
    kind: EntryKind
    line: int
    end_line: int
    parameters: tuple[Parameter, ...] = ()
    init: tuple[Parameter, ...] = ()
    directive: Mapping[str, InputSpec] = field(default_factory=dict)
    has_directive: bool = False

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


@dataclass(frozen=True, slots=True)
class Suppression:
    """`# kpredict: ignore[KP201] reason` or `# noqa: KP201`; no codes means every one."""

    line: int
    codes: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """What a file says of itself. `entry`, `training` and `stated` come from its `ENTRY`, `MODE`
    and `D2H_VALUE`; `defines` are the names its top level binds by def and class."""

    path: str
    text: str
    entries: tuple[EntryPoint, ...] = ()
    defines: frozenset[str] = frozenset()
    entry: str = ""
    training: bool = False
    stated: float | None = None
    has_main_block: bool = False
    suppressions: tuple[Suppression, ...] = ()

    def find(self, name: str) -> EntryPoint | None:
        return next((e for e in self.entries if e.name == name), None)

    @property
    def conventional(self) -> str:
        """What `get_inputs()` is for: the name in ENTRY, else the class `Model`, else nothing.

        ENTRY may name anything callable that the file binds, also what no `def` makes.
        """
        if "get_inputs" not in self.defines:
            return ""
        return self.entry or ("Model" if "Model" in self.defines else "")
