"""What tests share: the fixtures folder, golden files and the option that rewrites them, a CLI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text must be that of tests/golden/<name>."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        if not path.exists():
            pytest.fail(f"{path} is missing: run pytest --update-golden and read what it wrote")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def kpredict(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the command in a process of its own, as a user does, from the repository's root."""
    own = {"KPREDICT_CACHE_DIR": str(tmp_path_factory.getbasetemp() / "cache")}

    def run(
        *args: str, cwd: Path = ROOT, env: dict[str, str] | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("KPREDICT", "FORCE_"))}
        return subprocess.run(
            [sys.executable, "-m", "kpredict", *args], cwd=cwd, env=clean | own | (env or {}),
            capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip

    return run
