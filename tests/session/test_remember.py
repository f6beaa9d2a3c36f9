"""An answer is given again exactly while all that it rests on is as it was."""

from __future__ import annotations

import os
import pickle
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kpredict.cache import Cache
from kpredict.model import Failure, Mode
from kpredict.request import Request
from kpredict.session.ask import answering
from kpredict.session.messages import Answer
from kpredict.session.remember import Memory

pytest.importorskip("torch")

MAIN = """\
import json, os
import helper
print("loading")
width = json.load(open("sizes.json"))["width"] * int(os.environ.get("KP_TEST_SCALE", "1"))
factor = 3.0 if os.path.exists("extra.txt") else 2.0
open("log.txt", "w").write("made here")
open("log.txt").read()

# kpredict: x=f32[64], y=f32[8]@grad
def f(x, y):
    return helper.scale(x, factor).sum(), y + 1
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "main.py").write_text(MAIN)
    (folder / "helper.py").write_text("def scale(x, by):\n    return x * by\n")
    (folder / "sizes.json").write_text('{"width": 64}')
    return folder


@pytest.fixture(scope="module")
def asked(project: Path) -> tuple[Request, Answer, Memory]:
    """The request, the answer to it, and the memory that keeps it."""
    before = Path.cwd()
    os.chdir(project)
    try:
        memory = Memory(Cache(project / "cache"))
        heard: list[Answer] = []
        request = Request("main.py", modes=(Mode.EAGER, Mode.COMPILED))
        with answering(1, heard.append, memory=memory) as answered:
            answered([request])
    finally:
        os.chdir(before)
    return request, heard[0], memory


@pytest.fixture(autouse=True)
def in_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


Asked = tuple[Request, Answer, Memory]


def test_it_is_the_same_in_every_field(asked: Asked) -> None:
    request, answer, memory = asked
    again = memory.recall(request)
    assert again is not None
    assert again.recalled
    assert again.entries == answer.entries
    assert (again.target, again.skipped) == (answer.target, answer.skipped)
    assert again.output == answer.output == "loading\n"
    assert memory.recall(replace(request, timeout=5.0)) is not None


def test_it_rests_on_what_was_imported_and_opened(asked: Asked, project: Path) -> None:
    assert asked[1].used is not None
    used = {p for p in asked[1].used if p.startswith(str(project))}
    names = ("__init__.py", "extra.txt", "helper.py", "main.py", "sizes.json")
    assert used == {str(project / name) for name in names}


@pytest.mark.parametrize("name", ["main.py", "helper.py", "sizes.json", "extra.txt"])
def test_a_change_of_a_file_is_noticed(asked: Asked, name: str) -> None:
    request, _, memory = asked
    path = Path(name)
    before = path.read_bytes() if path.exists() else None
    path.write_bytes((before or b"") + b"\n")
    assert memory.recall(request) is None
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)
    assert memory.recall(request) is not None  # contents count, not times


@pytest.mark.parametrize("name", ["KP_TEST_SCALE", "TORCHINDUCTOR_MAX_AUTOTUNE", "PYTHONHASHSEED"])
def test_so_is_the_environment(asked: Asked, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request, _, memory = asked
    monkeypatch.setenv("KP_TEST_OTHER", "1")
    assert memory.recall(request) is not None
    monkeypatch.setenv(name, "2")
    assert memory.recall(request) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda r: replace(r, target="t4"),
        lambda r: replace(r, dims={"n": 1}),
        lambda r: replace(r, inputs=("x=f32[65]",)),
        lambda r: replace(r, modes=(Mode.EAGER,)),
        lambda r: replace(r, launch_us=1.0),
        lambda r: replace(r, file="./main.py"),
    ],
)
def test_another_request_has_another_answer(
    asked: Asked, change: Callable[[Request], Request]
) -> None:
    assert asked[2].recall(change(asked[0])) is None


def test_so_has_another_folder_or_another_installation(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, _, memory = asked
    (tmp_path / "site-packages").mkdir()
    with monkeypatch.context() as inner:
        inner.syspath_prepend(str(tmp_path / "site-packages"))
        assert memory.recall(request) is None
    monkeypatch.chdir(tmp_path)
    assert memory.recall(request) is None


def test_what_failed_or_changed_meanwhile_is_not_kept(asked: Asked, tmp_path: Path) -> None:
    request, answer, _ = asked
    memory = Memory(Cache(tmp_path))
    now = time.time() + 1
    memory.keep(request, replace(answer, errors=(Failure("main.py", "It broke."),)), now)
    memory.keep(request, replace(answer, used=None), now)
    memory.keep(request, answer, began=Path("helper.py").stat().st_mtime)
    assert memory.recall(request) is None
    memory.keep(request, answer, now)
    assert memory.recall(request) is not None


class Attack:
    def __reduce__(self) -> object:
        return os.mkdir, ("attacked",)


@pytest.mark.parametrize("data", [b"", b"nonsense", zlib.compress(pickle.dumps(Attack()))])
def test_a_damaged_file_is_ignored_and_runs_nothing(
    asked: Asked, tmp_path: Path, data: bytes
) -> None:
    request, answer, _ = asked
    memory = Memory(Cache(tmp_path))
    memory.keep(request, answer, time.time() + 1)
    (path,) = tmp_path.glob("*.answer")
    path.write_bytes(data)
    assert memory.recall(request) is None
    assert not Path("attacked").exists()
