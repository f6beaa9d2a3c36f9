"""The two hooks under real pre-commit, on a git repository made for it.

`kpredict-static` is installed by pre-commit in an environment of its own, without torch; that needs
a package index, and where there is none its test is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BAD = """\
import torch


def gate(x: torch.Tensor, y: torch.Tensor):
    return torch.sigmoid(x) * y + 1.0
"""
OFFLINE = ("No matching distribution", "Temporary failure in name resolution", "NewConnectionError")

pytest.importorskip("pre_commit", reason="pre-commit is not installed")
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git repository")


def try_hook(folder: Path, hook: str, *files: str) -> subprocess.CompletedProcess[str]:
    """`pre-commit try-repo` of this very repository, as it lies here, on files of another."""
    repo = folder / "repo"
    if not repo.exists():
        repo.mkdir()
        (repo / "bad.py").write_text(BAD)
        (repo / "good.py").write_text("import torch\n")
        (repo / "notes.txt").write_text(BAD)
        (repo / "pyproject.toml").write_text('[tool.kpredict]\nselect = ["KP1"]\n')
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=repo, check=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "KPREDICT"))}
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "try-repo", str(ROOT), hook, "--files", *files],
        cwd=repo,
        env=environment
        | {
            # the user's own environment is the one that runs this test
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(folder / "cache"),
            "PIP_RETRIES": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout + done.stderr
    if done.returncode == 3 and any(text in said for text in OFFLINE):
        pytest.skip("no package index to install the hook's environment from")
    return done


@pytest.mark.parametrize("hook", ["kpredict-static", "kpredict"])
def test_hook(tmp_path: Path, hook: str) -> None:
    bad = try_hook(tmp_path, hook, "bad.py", "good.py", "notes.txt")
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "bad.py:5:12: KP101 pointwise-chain" in bad.stdout
    assert "1 finding in 2 files" in bad.stdout  # what is not Python is not passed
    assert "- exit code: 1" in bad.stdout
    good = try_hook(tmp_path, hook, "good.py")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "Passed" in good.stdout
    if hook == "kpredict-static":
        assert not list((tmp_path / "cache").glob("**/site-packages/torch"))
