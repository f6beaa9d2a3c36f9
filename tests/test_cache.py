"""A folder of answers: whole or absent, bounded, nobody's work depends on it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kpredict.cache import Cache, code_stamp, replace_whole, user_folder


def test_what_is_put_is_got_and_anything_else_is_not_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new" / "folder")
    assert cache.get("a") is None
    cache.put("a", b"one")
    cache.put("b", b"two")
    cache.put("a", b"three")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (b"three", b"two", None)
    assert cache.folder.stat().st_mode & 0o077 == 0
    assert (cache.folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172")


def test_those_not_asked_for_the_longest_are_dropped(tmp_path: Path) -> None:
    cache = Cache(tmp_path, most=100)
    for i, key in enumerate("abc"):
        cache.put(key, bytes(30))
        (path,) = [p for p in tmp_path.glob("*.answer") if p.stat().st_mtime > 1000]
        os.utime(path, (i, i))
    assert cache.get("a") is not None  # now the youngest
    cache.put("d", bytes(30))
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]
    cache.put("e", bytes(101))
    assert cache.get("e") is None


def test_writers_at_the_same_time_leave_one_of_their_answers(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    values = [bytes([i]) * 100_000 for i in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda value: cache.put("key", value), values))
    assert cache.get("key") in values
    assert not list(tmp_path.glob("*.tmp"))


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file")
    cache.put("a", b"one")
    assert cache.get("a") is None
    assert not replace_whole(tmp_path / "file" / "deeper", "x", b"")


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("KPREDICT_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert user_folder() == Path("/home/me/.cache/kpredict")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert user_folder() == Path("/cache/kpredict")
    monkeypatch.setenv("KPREDICT_CACHE_DIR", "/here")
    assert user_folder() == Path("/here")


def test_the_stamp_names_the_version() -> None:
    from kpredict import __version__

    assert code_stamp().startswith(f"{__version__} ")
