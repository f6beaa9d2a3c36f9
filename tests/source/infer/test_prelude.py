"""The prelude is whole: every name in it means something, every op exists, and most of PyTorch's
Python functions are either an op that is dispatched or opened here."""

from __future__ import annotations

import ast
from importlib.resources import files

import pytest

from kpredict.source.infer.expressions import BUILTINS
from kpredict.source.infer.shelf import prelude
from kpredict.source.infer.surface import dispatched, packet, python_names
from kpredict.source.infer.values import Function

ON_CUDA_ONLY = {"_fused_rms_norm", "index_copy"}  # have kernels of their own there
NAMES = ("composites", "functional", "nn")


def tree(name: str) -> ast.Module:
    folder = files("kpredict.source.infer.prelude").joinpath(name)
    texts = [f.read_text("utf-8") for f in folder.iterdir() if f.name.endswith(".py")]
    return ast.parse("\n".join(texts))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_bound(name: str) -> None:
    known = set(prelude(name).names) | BUILTINS
    for function in ast.walk(tree(name)):
        if not isinstance(function, ast.FunctionDef):
            continue
        local = {
            n.id
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        local |= {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        loaded = {
            n.id
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        }
        assert not loaded - local - known, function.name


@pytest.mark.parametrize("name", NAMES)
def test_every_op_exists_and_is_dispatched(name: str) -> None:
    used = {n.attr for n in ast.walk(tree(name)) if isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name) and n.value.id == "aten"}  # fmt: skip
    assert used
    unknown = sorted(op for op in used - ON_CUDA_ONLY if not dispatched(op))
    assert not unknown


def test_most_of_the_surface_is_known() -> None:
    opened, functional = prelude("composites").names, prelude("functional").names
    total = known = 0
    for name in python_names():
        space, _, short = name.partition(".")
        if short.startswith("_") or space not in (
            "torch",
            "Tensor",
            "F",
            "linalg",
            "fft",
            "special",
        ):
            continue
        full = short if space in ("torch", "Tensor", "F") else f"{space}_{short}"
        total += 1
        known += (
            isinstance(opened.get(full), Function)
            or dispatched(full) or dispatched(full.rstrip("_"))
            or (space == "F" and isinstance(functional.get(short), Function))
        )  # fmt: skip
    assert known / total > 0.65


def test_every_schema_can_be_read() -> None:
    from kpredict.source.infer.surface import _data

    for name in _data()["ops"]:
        for schema in packet(name):
            assert schema.returns >= 0
            assert all(p.name for p in schema.parameters), schema.name
