"""The reader, whole: a file's names, its imports, and calls of what is in it."""

from __future__ import annotations

import ast
from pathlib import Path

from kpredict.eager import attending
from kpredict.model import Target, Tensor
from kpredict.source.infer.modules import Modules
from kpredict.source.infer.parsing import parsed, yielding
from kpredict.source.infer.project import root_of
from kpredict.source.infer.state import Exhausted, Frame
from kpredict.source.infer.values import UNKNOWN, Array, Class, Scope, Symbol, Value
from kpredict.targets import target as find_target

_OURS = (
    "torch",
    "numpy",
    "math",
    "builtins",
    "functools",
    "typing",
    "collections",
    "contextlib",
    "dataclasses",
    "copy",
    "einops",
    "itertools",
    "os",
    "sys",
    "abc",
    "enum",
    "logging",
)


MOST_FOLLOWED = 64
"""Files of one project that one reading opens."""
LARGEST = 400_000
"""Bytes of an imported file beyond which it is taken for data."""
LOADING = 800_000
"""What the top level of an imported file may cost."""


class Machine(Modules):
    """One reading. `files` maps module paths to Scopes already read, shared between readings."""

    def __init__(
        self,
        fuel: int = 400_000,
        assume: int | None = None,
        target: Target | None = None,
        files: dict[str, Scope] | None = None,
        follow: bool = True,
    ) -> None:
        super().__init__(fuel, assume)
        self.target = target
        self.files = {} if files is None else files
        self.follow = follow
        self.rests_on: dict[str, str] = {}  # the imported files that were read, and their hashes

    def again(self, fuel: int) -> Machine:
        """A fresh reading with the same target and the same files."""
        made = Machine(fuel, self.assume, self.target, self.files, self.follow)
        made.rests_on = self.rests_on
        made.hooked = self.hooked
        return made

    def load(self, tree: ast.Module, file: str) -> Scope:
        """The names of a file after its top level ran; what it computes there is not recorded."""
        scope = Scope(file, package=str(Path(file).parent), yields=yielding(tree))
        if self.follow:
            self.files[str(Path(file).resolve())] = scope
        frame = Frame(scope, "<module>", scope.names)
        with self.recording():
            for statement in tree.body:
                if is_main_guard(statement):
                    continue
                try:
                    self.execute([statement], frame)
                except (Exhausted, RecursionError):
                    break
                except Exception:  # an odd statement must not cost the file its other names
                    continue
        return scope

    # -- imports ---------------------------------------------------------------------------

    def import_module(self, name: str, level: int, frame: Frame) -> Value:
        top = name.split(".")[0]
        if level == 0 and top in _OURS:
            return Symbol(name)
        if not self.follow or frame.scope.library:
            return Symbol(name or "?")
        start = Path(frame.scope.package or ".")
        roots = [start]
        if level:
            for _ in range(level - 1):
                start = start.parent
            roots = [start]
        elif Path(root_of(str(start))) != start.resolve():
            roots.append(Path(root_of(str(start))))
        for root in roots:
            found = self._file(root.joinpath(*name.split(".")) if name else root)
            if found is not None:
                return found
        return Symbol(name or "?")

    def _file(self, base: Path) -> Scope | None:
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            key = str(path.resolve())
            if key in self.files:
                return self.files[key]
            try:
                if len(self.files) >= MOST_FOLLOWED or not path.is_file():
                    continue
                said = path.stat()
                if said.st_size > LARGEST:
                    continue
                tree, digest = parsed(key, said.st_mtime_ns)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            self.rests_on[key] = digest
            before, self.fuel = self.fuel, LOADING
            try:
                return self.load(tree, str(path))
            finally:
                self.fuel = before
        return None

    def import_submodule(self, scope: Scope, name: str) -> Value:
        if not scope.file.endswith("__init__.py") or scope.library:
            return UNKNOWN
        return self._file(Path(scope.file).parent / name) or UNKNOWN

    def import_all(self, module: Value, frame: Frame) -> None:
        if isinstance(module, Scope):
            frame.names.update({k: v for k, v in module.names.items() if not k.startswith("_")})

    # -- the target ------------------------------------------------------------------------

    def release(self) -> tuple[int, int]:
        major, minor = (self.target or find_target()).torch.split(".")[:2]
        return int(major), int(minor)

    def attention_backend(
        self,
        query: Value,
        key: Value,
        value: Value,
        mask: Value,
        dropout: Value,
        causal: Value,
        grouped: Value,
    ) -> Value:
        arrays = [a for a in (query, key, value, mask) if isinstance(a, Array)]
        if not all(a.known for a in arrays) or len(arrays) < 3 or mask is UNKNOWN:
            return UNKNOWN
        q, k, v = (_metadata(a) for a in arrays[:3])
        needs = self.grad and any(a.requires_grad for a in arrays[:3])
        call = attending.Attention(
            q,
            k,
            v,
            _metadata(arrays[3]) if len(arrays) > 3 else None,
            dropout if isinstance(dropout, float) else 0.0,
            causal is True,
            grouped is True,
            needs_grad=needs,
            mask_needs_grad=len(arrays) > 3 and arrays[3].requires_grad,
            deterministic=False,
        )
        target = self.target or find_target()
        everything = attending.default_order(target)
        return attending.choose(call, target, everything, frozenset(everything)) or UNKNOWN


def _metadata(a: Array) -> Tensor:
    assert a.sizes is not None
    assert a.stride is not None
    assert a.dtype is not None
    return Tensor(a.sizes, a.stride, a.dtype)


def is_main_guard(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If) and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name) and node.test.left.id == "__name__"
    )  # fmt: skip


__all__ = ["Class", "Machine"]
