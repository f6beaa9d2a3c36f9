"""Ops and kernels of the user's own, in the eager and the compiled plan."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpredict.commands._options import requests
from kpredict.model import Entry, Kind, Mode
from kpredict.session.ask import analyse

OP = """
import torch

@torch.library.custom_op("kpredict_test::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by

@scale.register_fake
def _(x, by):
    return torch.empty_like(x)

# kpredict: x=f32[64,64]
def f(x):
    y = x.relu() + 1
    z = scale(y, 2.0)
    return z.sin() * 2
"""

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)

# kpredict: x=f32[4096], y=f32[4096]
def f(x, y):
    x = x.relu()
    out = torch.empty_like(x)
    add_kernel[(4,)](x, y, out, out.numel(), BLOCK=1024)
    return out * 2
"""


def entry_of(folder: Path, text: str, config: str = "") -> Entry:
    (folder / "f.py").write_text(text)
    (folder / "pyproject.toml").write_text(textwrap.dedent(config))
    report = analyse(requests([f"{folder / 'f.py'}::f"]))
    assert not report.errors
    return report.entries[0]


def launches(entry: Entry) -> Iterator[list[str]]:
    for mode in (Mode.EAGER, Mode.COMPILED):
        plan = entry.plans[mode].forward
        assert plan is not None
        yield [x.name if x.kind is Kind.KERNEL else x.kind for x in plan.launches]


def test_an_op_without_a_rule_is_unknown_in_both_plans(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, OP)
    for mode in (Mode.EAGER, Mode.COMPILED):
        plan = entry.plans[mode].forward
        assert plan is not None
        (unknown,) = plan.unknowns
        assert unknown.op == "kpredict_test.scale.default"
        assert [s.line for s in unknown.lines][:1] == [15]
        assert "no rule" in unknown.reason


def test_a_row_makes_it_known_in_both_plans(tmp_path: Path) -> None:
    row = """
        [[tool.kpredict.rule]]
        op = "kpredict_test::scale"
        launches = ["scale_kernel"]
    """
    entry = entry_of(tmp_path, OP, row)
    assert not entry.unknowns
    eager, compiled = launches(entry)
    assert eager.count("scale_kernel") == 1
    assert compiled == [
        "triton_poi_fused_add_relu_scale_0", "scale_kernel", "triton_poi_fused_mul_sin_1",
    ]  # fmt: skip
    plan = entry.plans[Mode.COMPILED].forward
    assert plan is not None
    assert [[s.line for s in x.lines] for x in plan.launches] == [[14], [15], [16]]
    assert [b.reason for b in plan.barriers] == ["fallback-op", "fallback-op"]


def test_a_triton_kernel_of_the_users_is_one_launch_in_both_plans(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    eager, compiled = launches(entry_of(tmp_path, KERNEL))
    assert eager[1] == "add_kernel"
    assert compiled == ["triton_poi_fused_relu_0", "add_kernel", "triton_poi_fused_mul_1"]
