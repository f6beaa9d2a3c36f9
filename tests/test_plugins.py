"""`plugins = […]`: the user's own rules, from beside pyproject.toml or from a package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpredict import plugins
from kpredict.findings import registry
from kpredict.findings.registry import finding_rule, rules, selected
from kpredict.model import KpredictError

FINDING = '''
import kpredict

@kpredict.finding_rule
def my101_no_sin(file):
    """Sines are slow here."""
    for read in file.functions:
        for step in file.own_steps(read):
            if step.short == "sin":
                yield file.finding("my101_no_sin", step.place, "a sine", function=read.name)
'''
OP = '''
import kpredict
from kpredict.eager.launches import kernel

@kpredict.rule("mylib::twice")
def twice(op, target):
    """Two passes."""
    yield kernel("first_half", [op["x"]], [op.out])
    yield kernel("second_half", [op["x"]], [op.out])
'''
CODE = """\
import torch

# kpredict: x=f32[64]
def f(x: torch.Tensor):
    return x.sin()
"""
CUSTOM = """\
import torch

@torch.library.custom_op("mylib::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

# kpredict: x=f32[64]
def f(x: torch.Tensor):
    return twice(x)
"""
CONFIG = '[tool.kpredict]\nplugins = ["my_rules"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    (tmp_path / "my_rules.py").write_text(FINDING)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/m.py").write_text(CODE)
    return tmp_path


def run(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("KPREDICT")}
    return subprocess.run(
        [sys.executable, "-m", "kpredict", *args], cwd=folder, env={**clean, **env},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def install(folder: Path) -> Path:
    """The same plugin as a package would install it, with its entry point."""
    site = folder / "site"
    about = site / "acme_rules-1.dist-info"
    about.mkdir(parents=True)
    (folder / "my_rules.py").rename(site / "acme_rules.py")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[kpredict.plugins]\nmy_rules = acme_rules\n")
    return site


def test_a_finding_of_the_users_own(folder: Path) -> None:
    found = run(folder, "check", "sub/m.py", "--select", "MY1")
    assert found.stdout.startswith("sub/m.py:5:12: MY101 no-sin: a sine\n"), found
    assert found.returncode == 1
    assert run(folder, "check", "sub/m.py", "--ignore", "MY101").returncode == 0
    assert "Sines are slow here." in run(folder, "explain", "MY101").stdout
    (folder / "sub/m.py").write_text(CODE.replace("x.sin()", "x.sin()  # noqa: MY101"))
    assert run(folder, "check", "sub/m.py").stdout.startswith("nothing found in 1 file (1 suppr")


def test_in_every_format(folder: Path) -> None:
    sarif = json.loads(run(folder, "check", "sub/m.py", "-f", "sarif").stdout)
    assert [r["id"] for r in sarif["runs"][0]["tool"]["driver"]["rules"]] == ["MY101"]
    assert json.loads(run(folder, "check", "sub/m.py", "-f", "json").stdout)["findings"]


def test_an_op_of_the_users_own(folder: Path) -> None:
    (folder / "my_rules.py").write_text(OP)
    (folder / "sub/m.py").write_text(CUSTOM)
    done = run(folder, "sub/m.py::f", "--mode", "eager", "-f", "json")
    (entry,) = json.loads(done.stdout)["entries"]
    plan = entry["plans"]["eager"]["forward"]
    assert [x["name"] for x in plan["launches"]] == ["first_half", "second_half"]
    over = run(folder, "check", "sub/m.py::f", "--max-eager", "1")
    assert "KP401 over-budget: f: 2 eager kernels, the budget is 1" in over.stdout


def test_static_runs_no_code_of_the_project(folder: Path) -> None:
    refused = run(folder, "check", "--static", "sub/m.py")
    assert refused.returncode == 2
    assert "is code of this project, and --static runs none" in refused.stderr
    assert "kpredict.plugins" in refused.stderr
    assert run(folder, "check", "--static", "--no-plugins", "sub/m.py").returncode == 0
    assert run(folder, "check", "--static", "--isolated", "sub/m.py").returncode == 0


def test_static_takes_what_was_installed(folder: Path) -> None:
    site = install(folder)
    found = run(folder, "check", "--static", "sub/m.py", PYTHONPATH=str(site))
    assert found.stdout.startswith("sub/m.py:5:12: MY101 no-sin: a sine\n"), found


def test_static_is_not_fooled_by_the_current_folder(folder: Path) -> None:
    """`python -m` puts it first on the path: neither its modules nor its metadata count."""
    site = install(folder)
    for path in [*site.iterdir()]:
        path.rename(folder / path.name)
    assert run(folder, "check", "--static", "sub/m.py").returncode == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "There is no plugin 'my_rules', neither beside pyproject.toml nor installed."),
        ("import nothing_such", "ModuleNotFoundError: No module named 'nothing_such' (my_rules.py"),
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero (my_rules.py, line 2)"),
        (FINDING.replace("my101", "kp101"), "KP is taken"),
        (FINDING + FINDING, "Two rules are called MY101."),
        (FINDING.replace("my101_no_sin", "my1", 1), "my1 is no name for a finding's rule."),
    ],
)
def test_faults_have_a_sentence(folder: Path, text: str | None, said: str) -> None:
    if text is None:
        (folder / "my_rules.py").unlink()
    else:
        (folder / "my_rules.py").write_text(text)
    done = run(folder, "check", "sub/m.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rule_that_fails_names_itself(folder: Path) -> None:
    (folder / "my_rules.py").write_text(FINDING.replace("step.short", "step.shrt"))
    done = run(folder, "check", "sub/m.py")
    assert done.returncode == 2
    assert "sub/m.py: not read: rule MY101: AttributeError" in done.stdout
    (folder / "my_rules.py").write_text(FINDING.replace('finding("my101', 'finding("my102'))
    done = run(folder, "check", "sub/m.py")
    assert "rule MY101: ValueError: it reports MY102" in done.stdout


def test_a_changed_plugin_is_not_answered_from_the_cache(folder: Path) -> None:
    assert "a sine" in run(folder, "check", "sub/m.py").stdout
    (folder / "my_rules.py").write_text(FINDING.replace("a sine", "another sine"))
    assert "another sine" in run(folder, "check", "sub/m.py").stdout


def test_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_of_plugins", {})

    @finding_rule
    def my102_thing(file: object) -> list[object]:  # type: ignore[type-var]
        """One line."""
        return []

    assert [r.code for r in selected(("MY",), ())] == ["MY102"]
    assert rules()["MY102"].name == "thing"
    assert rules()["MY102"].part("Example") == ""
    with pytest.raises(KpredictError, match="no docstring"):

        @finding_rule
        def my103_undocumented(file: object) -> list[object]:  # type: ignore[type-var]
            return []


def test_nothing_to_load_costs_nothing() -> None:
    assert plugins.load(plugins.NONE) == ""
