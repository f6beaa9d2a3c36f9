"""A file that misbehaves is one clear line, and the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpredict.model import Entry, Failure, Mode, Report
from kpredict.request import Request
from kpredict.session.ask import _gather, analyse
from kpredict.session.messages import Message, Partial, Stage

HALF = (
    "import torch\ndef f(x): return x * 2\nf(torch.ones(3, device='cuda'))\nopen('/no/such/file')\n"
)
GOOD = "# kpredict: x=f32[8]\ndef f(x): return x + 1\n"

BAD = {
    "exit": ("import sys\nsys.exit(3)\n", "The file called sys.exit(3).", 2),
    "crash": ("import ctypes\nctypes.string_at(0)\n", "Crashed while importing", 0),
    "gone": ("import os\nos._exit(7)\n", "Ended by itself while importing", 0),
    "missing": ("import nothing_of_that_name\n", "No module named 'nothing_of_that_name'.", 1),
    "syntax": ("def f(:\n", "Syntax error on line 1: invalid syntax.", 0),
    "raises": (
        "# kpredict: x=f32[8]\ndef f(x):\n    raise ValueError('first\\nsecond')\n",
        "ValueError: first", 3,
    ),
    "memory": ("# kpredict: x=f32[8]\ndef f(x):\n    raise MemoryError\n", "Out of memory.", 3),
    "binary": ("\x00", "Syntax error", 0),
    "nothing": ("x = 1\n", "No entry point whose inputs are known was found.", 0),
    "unknown": ("def f(x, y=1): return x\n", "No entry point whose inputs are known was found.", 0),
}  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """All bad files and a good one after them, in one run."""
    folder = tmp_path_factory.mktemp("bad")
    files = {name: text for name, (text, _, _) in BAD.items()} | {"half": HALF, "good": GOOD}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    requests = [Request(str(folder / f"{name}.py"), modes=(Mode.EAGER,)) for name in files]
    return analyse(requests)


def failures(report: Report, name: str) -> list[Failure]:
    return [f for f in report.errors if Path(f.file).stem == name]


@pytest.mark.parametrize("name", BAD)
def test_one_clear_line(report: Report, name: str) -> None:
    (found,) = failures(report, name)
    assert found.message.startswith(BAD[name][1])
    assert "\n" not in found.message
    assert found.line == BAD[name][2]


def test_the_others_go_on(report: Report) -> None:
    entry = report.entries[-1]
    assert (Path(entry.file).stem, entry.name) == ("good", "f")
    assert entry.plans[Mode.EAGER].kernels.hi == 1


def test_what_a_script_called_before_it_failed_is_analysed(report: Report) -> None:
    (entry,) = [e for e in report.entries if Path(e.file).stem == "half"]
    assert entry.inputs == ("x=f32[3]",)
    (error,) = failures(report, "half")
    assert (error.name, error.line) == ("<script>", 4)
    assert error.message.startswith("FileNotFoundError")


def test_what_is_skipped_names_parameters_and_a_line_to_paste(report: Report) -> None:
    (skipped,) = report.skipped
    assert (skipped.name, skipped.line) == ("f", 1)
    assert skipped.message == "No inputs are known for x of f."
    assert skipped.hint.endswith("# kpredict: x=f32[64,128]")


def test_a_hang_ends_at_the_timeout_and_keeps_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(f"import time\n{GOOD}# kpredict: x=f32[8]\ndef g(x):\n    time.sleep(600)\n")
    first = tmp_path / "first.py"
    first.write_text(GOOD)
    eager = (Mode.EAGER,)
    report = analyse([Request(str(first), modes=eager), Request(str(file), modes=eager, timeout=9)])
    assert [e.name for e in report.entries] == ["f", "f"]
    (error,) = report.errors
    assert error.message == "Not done after 9 s, while analysing g."
    assert "--timeout" in error.hint


def test_the_eager_plan_stands_when_compiling_takes_too_long() -> None:
    entry = Entry("f.py", "f", 1)
    sent: list[Message] = [Stage("analysing f", "f"), Partial(entry)]
    answer = _gather(Request("f.py", timeout=3), sent, None, "")
    assert answer.entries == (entry,)
    (error,) = answer.errors
    assert error.message == "Not done after 3 s, while compiling f, whose eager plan stands."
    assert error.name == "f"
    whole = _gather(Request("f.py"), [*sent, entry, Stage("analysing g", "g")], -9, "")
    assert whole.entries == (entry,)
    assert [e.name for e in whole.errors] == ["g"]
