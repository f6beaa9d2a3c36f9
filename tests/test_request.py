"""Flags → Requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpredict.commands._options import requests, use_color
from kpredict.model import KpredictError, Mode
from kpredict.request import TRAINING, parse_dims, parse_stated, split_path


def test_paths_may_name_an_entry() -> None:
    assert split_path("a/f.py::Net.loss") == ("a/f.py", "Net.loss")
    assert split_path("a/f.py") == ("a/f.py", "")


def test_dims_and_stated_values() -> None:
    assert parse_dims(["b=8,n=128", "d=4"]) == {"b": 8, "n": 128, "d": 4}
    assert parse_stated(["12=0", "*=1.5", "7=true"]) == {12: 0.0, "*": 1.5, 7: 1.0}


@pytest.mark.parametrize("text", ["b", "b=x", "3=4", "b=-1"])
def test_a_dim_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(KpredictError, match="NAME=NUMBER"):
        parse_dims([text])


@pytest.mark.parametrize("text", ["12", "x=1", "12=high"])
def test_an_assumption_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(KpredictError, match="LINE=VALUE"):
        parse_stated([text])


def test_entries_of_one_file_join_and_folders_are_walked(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("b.py", "a.py", "sub/c.py", ".hidden/d.py", "e.txt"):
        (tmp_path / name).touch()
    found = requests([str(tmp_path)], phases="training", modes=["eager"])
    assert [Path(r.file).name for r in found] == ["a.py", "b.py", "c.py"]
    assert found[0].phases == TRAINING
    assert found[0].modes == (Mode.EAGER,)
    one = str(tmp_path / "a.py")
    assert [r.names for r in requests([f"{one}::f", f"{one}::g"])] == [("f", "g")]


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KpredictError, match="There is no file sohw and no such command"):
        requests(["sohw"])
    assert [r.file for r in requests(["none.py", "some/none"])] == ["none.py", "some/none"]
    with pytest.raises(KpredictError, match="There is no Python file"):
        requests([str(tmp_path)])


@pytest.mark.parametrize(
    ("choice", "env", "output", "expected"),
    [
        ("always", {"NO_COLOR": "1"}, "f.txt", True),
        ("never", {"FORCE_COLOR": "1"}, None, False),
        ("auto", {"FORCE_COLOR": "1"}, None, True),
        ("auto", {"FORCE_COLOR": "1"}, "f.txt", False),
        ("auto", {"NO_COLOR": "1"}, None, False),
        ("auto", {"TERM": "dumb"}, None, False),
    ],
)
def test_colour(
    monkeypatch: pytest.MonkeyPatch, choice: str, env: dict[str, str], output: str | None,
    expected: bool,
) -> None:  # fmt: skip
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert use_color(choice, output) is expected


def test_configuration_gives_the_target_and_inputs_of_entries(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.kpredict]\ntarget = "a100"\n'
        '[[tool.kpredict.entry]]\npath = "sub/f.py::Net"\ninputs = ["x=f32[8]"]\n'
    )
    (tmp_path / "sub").mkdir()
    for name in ("f.py", "g.py"):
        (tmp_path / "sub" / name).touch()
    f, g = requests([str(tmp_path / "sub")])
    assert (f.target, f.entry_inputs, g.entry_inputs) == ("a100", {"Net": ("x=f32[8]",)}, {})
    assert requests([str(tmp_path / "sub")], target="t4")[0].target == "t4"
