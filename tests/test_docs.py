"""The pages under docs/ show what the commands print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
PAGE = Path(__file__).resolve().parents[1] / "docs" / "bounds.md"


def test_targets_side_by_side(kpredict: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = "sums.py --targets h100,a100,t4"
    shown = re.search(rf"\n\$ kpredict {command}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert shown is not None
    (tmp_path / "sums.py").write_text(
        "# kpredict: x=f32[100,32768]\ndef total(x):\n    return x.sum(dim=-1)\n"
    )
    assert kpredict(*command.split(), cwd=tmp_path).stdout == shown[1]
