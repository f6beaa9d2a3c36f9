"""Wheel and source distribution are built; the wheel is tried outside the repository, offline."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_source_distribution_is_complete(built: Path) -> None:
    """What the README names, the hooks, and all that the tests read; nothing that was only there
    when it was built."""
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        ".pre-commit-hooks.yaml", ".ci/run", "CHANGELOG.md", "LICENSE", "README.md", "Makefile",
        "constraints.txt", "pyproject.toml", "docs/check.md", "docs/rules.md",
        "tools/generate_surface.py", "benchmarks/accuracy.py", "tests/findings/test_rules.py",
        "fixtures/add_relu.py", "fixtures/schemas/junit-10.xsd", "tests/golden/add_relu.json",
    ):  # fmt: skip
        assert needed in names
    assert not [n for n in names if "__pycache__" in n or n.endswith((".pyc", ".tmp"))]


def test_it_holds_what_users_need_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "kpredict/py.typed", "kpredict/report/report.schema.json", "kpredict/cli.py",
        "kpredict/report/findings.schema.json", "kpredict/source/infer/surface.json",
        "kpredict/source/infer/prelude/functional/losses.py",
    ):  # fmt: skip
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
        f"{outside}; sys.modules['torch'] = None; import kpredict, kpredict.cli; "
        "print(kpredict.__file__); sys.exit(kpredict.cli.main(sys.argv[1:]))"
    )
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-P", "-c", code, *args], cwd=tmp_path, env=clean, capture_output=True,
            text=True,
        )  # fmt: skip

    targets = run("targets")
    assert targets.returncode == 0, targets.stderr
    assert targets.stdout.startswith(str(venv))
    assert "h100" in targets.stdout
    checked = run("check", "--static", "--no-cache", str(ROOT / "fixtures"))
    assert checked.returncode == 1, checked.stderr
    assert "softmax by hand: 5 kernels" in checked.stdout
    assert "not read" not in checked.stdout
