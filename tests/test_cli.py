"""The command line, by real processes: what goes where, and the exit code."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]

needs_torch = pytest.mark.usefixtures("torch_here")


@pytest.fixture
def torch_here() -> None:
    pytest.importorskip("torch")


def test_help_is_quick_and_lists_the_commands(kpredict: Run) -> None:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        done = kpredict("--help")
        times.append(time.perf_counter() - start)
    assert done.returncode == 0
    for command in ("show", "targets", "ops", "explain"):
        assert f"\n  {command} " in done.stdout
    assert "on a pretended GPU, in a child process" in " ".join(done.stdout.split())
    assert min(times) < 1.0  # 0.1 s on an idle machine


def test_no_command_imports_torch_for_its_help(kpredict: Run) -> None:
    for command in ("show", "ops", "explain", "targets"):
        done = kpredict(command, "--help", env={"PYTHONPROFILEIMPORTTIME": "1"})
        assert done.returncode == 0
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert not imported & {"torch", "libcst", "networkx"}


def test_version_names_everything_a_bug_report_needs(kpredict: Run) -> None:
    done = kpredict("--version")
    assert done.stdout.startswith("kpredict ")
    for word in ("torch", "default target h100"):
        assert word in done.stdout


def test_targets(kpredict: Run) -> None:
    done = kpredict("targets")
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert {"t4", "a10g", "a100", "h100", "h200", "b200", "rtx3090", "rtx4090", "l4"} == set(names)
    rows = json.loads(kpredict("targets", "-f", "json").stdout)
    assert [r["name"] for r in rows if r["default"]] == ["h100"]


def test_ops_and_explain_do_without_torch(kpredict: Run, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('torch is not wanted here')\n")
    env = {"PYTHONPATH": str(tmp_path)}
    listed = kpredict("ops", "add", env=env)
    assert "aten.add" in listed.stdout
    assert listed.returncode == 0
    explained = kpredict("explain", "aten.addmm", env=env)
    assert explained.stdout.startswith("aten.addmm")
    assert "source:" in explained.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["explain", "aten.adddmm"], "Did you mean"),
        (["no_such.py"], "no_such.py: It cannot be read: No such file"),
        (["shwo"], "`kpredict --help` lists the commands."),
        (["fixtures/add_relu.py", "--input", "x=f31[3]"], "no dtype is called 'f31'"),
        (["fixtures/add_relu.py", "--target", "h10"], "Did you mean h100?"),
        (["fixtures/add_relu.py", "--targets", "h100,t"], "No target is called 't'"),
        (["fixtures/add_relu.py", "--targets", "t4", "--target", "t4"], "exclude each other"),
        (["fixtures/add_relu.py", "--targets", "t4", "--sweep", "n=1..9"], "vary one thing each"),
        (
            ["fixtures/add_relu.py", "--sweep", "n=1..9"],
            "No dimension and no tensor input is called n.",
        ),
        (["no_such.py", "--targets", "t4,h100"], "error: no_such.py: It cannot be read"),
        (["fixtures/add_relu.py", "--launch-us", "-1"], "is not in the range"),
        (["fixtures/add_relu.py", "--dim", "b"], "is not NAME=NUMBER"),
        (["fixtures/add_relu.py", "--assume", "b"], "is not LINE=VALUE"),
        (["fixtures/add_relu.py", "--phases", "all"], "is not one of"),
        ([], "Usage:"),
    ],
)
def test_usage_errors_are_exit_code_2(kpredict: Run, args: list[str], message: str) -> None:
    done = kpredict(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@needs_torch
def test_the_main_job(kpredict: Run) -> None:
    done = kpredict("fixtures/add_relu.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("add_relu: eager 2 kernels, compiled 1 kernel;")
    assert "\x1b[" not in done.stdout


@needs_torch
def test_json_goes_to_a_file_and_user_output_nowhere(kpredict: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "f.py", tmp_path / "out.json"
    file.write_text(
        "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n"
        "# kpredict: x=f32[8]\ndef f(x):\n    print(x)\n    return x + 1\n"
    )
    done = kpredict(str(file), "-o", str(out), "--mode", "eager", "--target", "a100")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    report = json.loads(out.read_text())
    assert report["target"]["name"] == "a100"
    assert list(report["entries"][0]["plans"]) == ["eager"]
    loud = kpredict(str(file), "-q", "-v", "--mode", "eager")
    assert loud.stdout.count("\n") == 1
    assert "to stdout" in loud.stderr
    assert "to stderr" in loud.stderr


@needs_torch
def test_flags_reach_the_analysis(kpredict: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(
        "def scale(x, n, mode='add'):\n"
        "    if x.max().item() > 10:\n        x = x.sin()\n"
        "    return x + n if mode == 'add' else x\n"
    )
    flags = ["--input", "x=f32[64]", "--input", "n==3", "-f", "json", "--mode", "eager"]

    def kernels(*more: str) -> int:
        report = json.loads(kpredict(f"{file}::scale", *flags, *more).stdout)
        plan = report["entries"][0]["plans"]["eager"]["forward"]
        return int(plan["kernels"]["lo"])

    assert kernels("--assume", "2=20") == 3
    assert kernels("--assume", "*=0", "--input", "mode=none") == 1


@needs_torch
def test_a_saved_report_is_shown_again(kpredict: Run, tmp_path: Path) -> None:
    saved = str(tmp_path / "r.json")
    args = ("fixtures/add_relu.py", "--mode", "eager")
    assert kpredict(*args, "-o", saved).returncode == 0
    assert kpredict(saved).stdout == kpredict(*args).stdout
    assert kpredict(saved, "-f", "json").stdout == Path(saved).read_text()


@needs_torch
def test_an_unchanged_file_is_not_analysed_again(kpredict: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("print('hello')\n# kpredict: x=f32[8]\ndef f(x):\n    return x + 1\n")
    args = (str(file), "-v", "--mode", "eager")
    first, second = kpredict(*args), kpredict(*args)
    assert second.stdout == first.stdout
    assert first.stderr == "hello\n"
    assert second.stderr == "hello\nkpredict: nothing has changed: the answer of an earlier run\n"
    assert kpredict(*args, "--no-cache").stderr == "hello\n"
    (tmp_path / "pyproject.toml").write_text("[tool.kpredict]\ncache = false\n")
    assert kpredict(*args).stderr == "hello\n"


@needs_torch
def test_targets_side_by_side(kpredict: Run, tmp_path: Path) -> None:
    saved = str(tmp_path / "c.json")
    args = ("fixtures/add_relu.py", "--mode", "eager", "--targets", "h100,t4", "--launch-us", "9")
    done = kpredict(*args)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:4]] == ["target", "h100", "t4"]
    assert "18 us, launches" in done.stdout  # two launches on the H100
    assert done.stdout.splitlines()[-1].startswith("add_relu: eager 2 kernels on each [torch ")
    assert kpredict(*args, "-o", saved).returncode == 0
    assert kpredict(saved).stdout == done.stdout
    data = json.loads(Path(saved).read_text())
    assert [p["at"] for p in data["points"]] == ["h100", "t4"]


@needs_torch
def test_one_bad_file_does_not_stop_the_others(kpredict: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import sys\nsys.exit('no')\n")
    done = kpredict(str(bad), "fixtures/add_relu.py", "-q", "--mode", "eager")
    assert done.returncode == 2
    assert done.stdout.startswith("add_relu: eager 2 kernels [")
    assert done.stderr == f"kpredict: error: {bad}:2: The file called sys.exit('no').\n"


@needs_torch
def test_colour_when_asked_and_unicode_only_where_it_can_be(kpredict: Run) -> None:
    args = ("fixtures/add_relu.py", "--mode", "eager")
    assert "\x1b[" in kpredict(*args, "--color", "always").stdout
    plain = kpredict(*args, env={"PYTHONIOENCODING": "ascii", "NO_COLOR": "1"})
    assert plain.returncode == 0
    assert plain.stdout.isascii()


def test_without_torch_it_says_what_is_missing(kpredict: Run, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch')\n")
    done = kpredict("fixtures/add_relu.py", "--mode", "eager", env={"PYTHONPATH": str(tmp_path)})
    assert "torch" in done.stderr
    assert "Traceback" not in done.stderr
