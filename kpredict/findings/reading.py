"""What a rule is given: one file as read, its loops, its compiled functions, and its limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kpredict.findings.compilations import Compilations, FunctionNode
from kpredict.findings.finding import Confidence, Finding
from kpredict.model import Target
from kpredict.source.dotted import dotted
from kpredict.source.infer.counting import default_target, kernels
from kpredict.source.infer.entries import FileReading, Read
from kpredict.source.infer.trace import (
    Called,
    Fork,
    Interval,
    Item,
    Place,
    Repeat,
    Step,
    Sync,
    walk,
)
from kpredict.source.infer.values import Array

LoopNode = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds a user may set in `[tool.kpredict]`."""

    chain: int = 3  # pointwise kernels in a row that are worth a finding
    round_trip_mb: float = 64.0  # an intermediate larger than this
    tiny: int = 4  # kernels on one-element arrays


@dataclass(frozen=True, slots=True)
class Loop:
    node: LoopNode
    first: int
    last: int

    def holds(self, line: int) -> bool:
        return self.first <= line <= self.last


@dataclass(frozen=True, eq=False)
class File:
    """One file. `functions` were each read on their own, with what is known of their inputs."""

    reading: FileReading
    limits: Limits = Limits()
    target: Target = field(default_factory=default_target)

    @property
    def path(self) -> str:
        return self.reading.file

    @property
    def functions(self) -> tuple[Read, ...]:
        return self.reading.functions

    @cached_property
    def nodes(self) -> list[tuple[str, FunctionNode]]:
        """Every def with its qualified name, in order."""
        out: list[tuple[str, FunctionNode]] = []

        def visit(body: list[ast.stmt], prefix: str) -> None:
            for node in body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    out.append((prefix + node.name, node))
                    visit(node.body, f"{prefix}{node.name}.")
                elif isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
                else:
                    for name in ("body", "orelse", "finalbody"):
                        visit(getattr(node, name, None) or [], prefix)

        visit(self.reading.tree.body, "")
        return out

    @cached_property
    def all_nodes(self) -> list[ast.AST]:
        """Every node of the tree, in the order of `ast.walk`; walked once for all rules."""
        return list(ast.walk(self.reading.tree))

    @cached_property
    def loops(self) -> list[Loop]:
        """Every `for` and `while`, with the lines of its body."""
        return [
            Loop(n, n.body[0].lineno, max(s.end_lineno or s.lineno for s in n.body))
            for n in self.all_nodes
            if isinstance(n, (ast.For, ast.AsyncFor, ast.While))
        ]

    def loop_at(self, line: int) -> Loop | None:
        """The innermost loop whose body holds the line, inside the same function."""
        around = [loop for loop in self.loops if loop.holds(line)]
        if not around:
            return None
        inner = max(around, key=lambda loop: loop.first)
        start = self.def_line(line)
        return inner if inner.node.lineno >= start else None

    def def_line(self, line: int) -> int:
        """The line of the innermost def around a line; 0 at top level."""
        return max(
            (n.lineno for _, n in self.nodes if n.lineno <= line <= (n.end_lineno or 0)), default=0
        )

    def function_at(self, line: int) -> str:
        """The qualified name of the innermost def around a line."""
        inside = [(n.lineno, q) for q, n in self.nodes if n.lineno <= line <= (n.end_lineno or 0)]
        return max(inside)[1] if inside else "<module>"

    def source(self, line: int) -> str:
        lines = self.source_lines
        return lines[line - 1] if 0 < line <= len(lines) else ""

    @cached_property
    def source_lines(self) -> list[str]:
        return self.reading.text.splitlines()

    @cached_property
    def compilations(self) -> Compilations:
        """What this file gives to torch.compile."""
        return Compilations(self.nodes, self.all_nodes)

    def is_compiled(self, function: str) -> bool:
        compiled = self.compilations.functions
        return any(function == c or function.startswith(c + ".") for c in compiled)

    # -- what ran --------------------------------------------------------------------------

    def own(self, read: Read) -> Iterator[Item]:
        """The items of a function's own lines, those of its callees left out."""
        for item in walk(read.items):
            place = getattr(item, "place", None)
            if place is not None and self.is_own(read, place):
                yield item

    def is_own(self, read: Read, place: Place) -> bool:
        return place.file == self.path and (
            place.function == read.name or place.function.startswith(read.name + ".")
        )

    def own_steps(self, read: Read) -> list[Step]:
        return [i for i in self.own(read) if isinstance(i, Step)]

    def syncs(self) -> Iterator[tuple[Read, Sync]]:
        for read in self.functions:
            for item in self.own(read):
                if isinstance(item, Sync):
                    yield read, item

    def calls(self) -> Iterator[tuple[Read, Called]]:
        for read in self.functions:
            for item in self.own(read):
                if isinstance(item, Called):
                    yield read, item

    def kernels(self, step: Step) -> Interval:
        return kernels(step, self.target)

    def is_hot(self, function: str, line: int) -> bool:
        """Runs again and again: a module's forward, a step function, or a loop."""
        last = function.rpartition(".")[2]
        return last in _HOT or self.loop_at(line) is not None

    def is_preparation(self, function: str) -> bool:
        """Whether a method prepares data, mostly on the CPU, as its class's name says; what it
        makes of a model's output is on the GPU."""
        owner, _, method = function.partition(".")
        return bool(_PREPARES.search(owner)) and not method.startswith(("post_process", "_post"))

    # -- making findings -------------------------------------------------------------------

    def finding(
        self,
        module: str,
        place: Place | ast.AST,
        message: str,
        *,
        function: str = "",
        confidence: Confidence = Confidence.CERTAIN,
        before: int | None = None,
        after: int | None = None,
        bytes: int | None = None,
        end_line: int | None = None,
    ) -> Finding:
        """A finding of the rule in `module` (its `__name__`)."""
        stem = module.rsplit(".", 1)[-1]
        number, _, name = stem.partition("_")
        if isinstance(place, Place):
            line, column = place.line, place.column
        else:
            line = getattr(place, "lineno", 1)
            column = getattr(place, "col_offset", 0) + 1
        return Finding(
            self.path,
            line,
            column,
            number.upper(),
            name.replace("_", "-"),
            message,
            function or self.function_at(line),
            confidence,
            before,
            after,
            bytes,
            end_line,
        )


_HOT = frozenset(
    "forward __call__ step training_step validation_step compute_loss generate".split()
)


_PREPARES = re.compile("(Image|Video|Audio)Processor|FeatureExtractor|Collator|Tokenizer|Dataset")


def root(node: ast.AST) -> str:
    """The name a chain of attributes, calls and subscripts starts with."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def megabytes(n: int) -> str:
    return f"{n / 1e6:.1f} MB" if n < 1e9 else f"{n / 1e9:.1f} GB"


def size_of(a: Array) -> int | None:
    """Bytes of an array, when shape and dtype are known."""
    from kpredict.model import ITEMSIZE

    if a.numel is None or a.dtype is None or a.dtype not in ITEMSIZE:
        return None
    return a.numel * ITEMSIZE[a.dtype]


def users(steps: list[Step]) -> Mapping[int, list[Step]]:
    """Steps by the storage they read."""
    out: dict[int, list[Step]] = {}
    for s in steps:
        for storage in {a.storage for a in s.arrays}:
            out.setdefault(storage, []).append(s)
    return out


def makers(steps: list[Step]) -> Mapping[int, Step]:
    """The step that made a storage, views not counted."""
    out: dict[int, Step] = {}
    for s in steps:
        if "view" not in s.tags:
            for a in s.results:
                out.setdefault(a.storage, s)
    return out


__all__ = ["File", "Fork", "Limits", "Loop", "Repeat", "dotted", "makers", "megabytes", "root",
           "size_of", "users"]  # fmt: skip
