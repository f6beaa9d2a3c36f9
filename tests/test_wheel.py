"""The wheel is built and tried outside the repository, offline."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (built,) = out.glob("*.whl")
    return built


def test_it_holds_what_users_need_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("kpredict/py.typed", "kpredict/report/report.schema.json", "kpredict/cli.py"):
        assert needed in names
    assert not [n for n in names if n.startswith(("tests/", "fixtures/", "benchmarks/"))]
    (metadata,) = [n for n in names if n.endswith(".dist-info/METADATA")]
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    assert "Name: torch-kpredict" in text
    assert "License-Expression: MIT" in text
    required = [x.partition(": ")[2] for x in text.splitlines() if x.startswith("Requires-Dist")]
    always = {r.partition(">")[0] for r in required if "extra ==" not in r}
    assert always == {"click", "libcst", "networkx"}  # torch is the user's own, or an extra


def test_it_runs_from_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(venv)], check=True)
    python = venv / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)], check=True
    )
    # the dependencies of this environment, but not its kpredict
    outside = f"import site, sys; sys.path += {[p for p in sys.path if 'site-packages' in p]!r}"
    code = (
        f"{outside}; import kpredict, kpredict.cli; print(kpredict.__file__); "
        "sys.exit(kpredict.cli.main(['targets']))"
    )
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-P", "-c", code], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(venv))
    assert "h100" in done.stdout
