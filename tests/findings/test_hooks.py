"""The two hooks under real pre-commit, on a git repository made for it.

Skipped where pre-commit is not installed. `kpredict-static` is installed by pre-commit in an
environment of its own, without torch, which needs a package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRE_COMMIT = shutil.which("pre-commit")
BAD = """\
import torch


def gate(x: torch.Tensor, y: torch.Tensor):
    return torch.sigmoid(x) * y + 1.0
"""

pytestmark = [
    pytest.mark.skipif(PRE_COMMIT is None, reason="pre-commit is not installed"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git repository"),
]


def try_hook(folder: Path, hook: str) -> subprocess.CompletedProcess[str]:
    (folder / "bad.py").write_text(BAD)
    (folder / "good.py").write_text("import torch\n")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    assert PRE_COMMIT is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [PRE_COMMIT, "try-repo", str(ROOT), hook, "--files", "bad.py", "good.py"],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("hook", ["kpredict-static", "kpredict"])
def test_hook_reports_and_fails(tmp_path: Path, hook: str) -> None:
    done = try_hook(tmp_path, hook)
    if "No matching distribution" in done.stdout + done.stderr:
        pytest.skip("no package index")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bad.py:5:12: KP101 pointwise-chain" in done.stdout
    assert "- exit code: 1" in done.stdout
