"""Under which name a file is imported, and how paths are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpredict.session.load import module_name
from kpredict.session.paths import shown_path


def test_a_file_gets_the_name_an_import_would_use(tmp_path: Path) -> None:
    package = tmp_path / "pack" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    assert module_name(package / "m.py") == ("pack.inner.m", tmp_path)
    assert module_name(tmp_path / "my_model.py") == ("my_model", tmp_path)


@pytest.mark.parametrize(
    ("stem", "name"),
    [("001-add", "file_001_add"), ("queue", "file_queue"), ("pytest", "file_pytest")],
)
def test_a_name_that_would_hide_another_gets_a_prefix(tmp_path: Path, stem: str, name: str) -> None:
    assert module_name(tmp_path / f"{stem}.py")[0] == name


def test_paths_are_never_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path)
    assert shown_path(f"{here}/a/f.py", f"{here}/a/f.py", "../a/f.py") == "../a/f.py"
    assert shown_path(f"{here}/a/g.py", f"{here}/a/f.py", "a/f.py") == "a/g.py"
    installed = "/v/lib/python3.11/site-packages/transformers/m.py"
    assert shown_path(installed, f"{here}/f.py", "f.py") == "transformers/m.py"
    assert shown_path("/elsewhere/m.py", f"{here}/f.py", "f.py") == "m.py"
