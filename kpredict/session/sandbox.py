"""User code may write and delete files: it happens in a scratch folder, and reads see it there.

Python's file functions are redirected (an overlay); what slips by them is refused by an audit hook,
as is the network. Written for the child process, which ends soon: nothing is undone.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LOCAL = ("localhost", "127.", "::1", "0.0.0.0")
_CHANGING = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link")
_WATCHED = frozenset((*_CHANGING, "open", "socket.connect", "socket.getaddrinfo"))


class Overlay:
    """Maps a path to where it is read or written; `free` folders are left alone. `asked_for` are
    the paths that were looked at before anything was written there."""

    def __init__(self, scratch: Path, free: tuple[str, ...]) -> None:
        self._root = scratch / "files"
        self._free = tuple(os.path.join(os.path.realpath(f), "") for f in (*free, str(scratch)))
        self.asked_for: set[str] = set()
        self._gone: set[str] = set()
        self._written: set[str] = set()

    def is_free(self, path: str) -> bool:
        return path.startswith((*self._free, "/dev/", "/proc/"))

    def _copy_of(self, path: str) -> Path:
        return self._root / path.lstrip(os.sep).replace(":", "")

    def reading(self, name: Any) -> Any:
        """Where to read: the written copy if there is one. A deleted file is nowhere."""
        path = _absolute(name)
        if path is None:
            return name
        self.note(path)
        if self.is_free(path):
            return name
        copy = self._copy_of(path)
        return str(copy) if path in self._gone or os.path.lexists(copy) else name

    def writing(self, name: Any, keep: bool = False) -> Any:
        """Where to write; `keep` takes the present contents along."""
        path = _absolute(name)
        if path is None:
            return name
        if keep:
            self.note(path)
        self._written.add(path)
        if self.is_free(path):
            return name
        copy = self._copy_of(path)
        if not copy.exists():
            parent = os.path.dirname(path)
            if os.path.isdir(parent):
                copy.parent.mkdir(parents=True, exist_ok=True)
            if keep and path not in self._gone and os.path.isfile(path):
                shutil.copyfile(path, copy)
        self._gone.discard(path)
        return str(copy)

    def note(self, path: str) -> None:
        if path not in self._written:
            self.asked_for.add(path)

    def forget(self, name: Any) -> None:
        path = _absolute(name)
        if path is not None and not self.is_free(path):
            self._gone.add(path)


def _absolute(name: Any) -> str | None:
    """The absolute path; None for file descriptors and what is no path."""
    try:
        text = os.fsdecode(os.fspath(name))
    except TypeError:
        return None
    return os.path.normpath(os.path.join(os.getcwd(), text))


def confine(scratch: Path) -> Overlay:
    """From now on this process writes under `scratch` (and temporary folders) and stays offline."""
    overlay = Overlay(scratch, (tempfile.gettempdir(),))
    _redirect_torch(overlay)
    _redirect_opening(overlay)
    _redirect_changes(overlay)
    sys.addaudithook(_barrier(overlay))
    return overlay


def _redirect_torch(overlay: Overlay) -> None:
    """`torch.save` and `torch.load` open paths in C++."""
    import torch

    save, load = torch.save, torch.load

    def saving(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        return save(obj, overlay.writing(f), *args, **kwargs)

    def loading(f: Any, *args: Any, **kwargs: Any) -> Any:
        return load(overlay.reading(f), *args, **kwargs)

    torch.save, torch.load = saving, loading


def _redirect_opening(overlay: Overlay) -> None:
    plain_open, os_open = builtins.open, os.open

    def opening(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if any(c in mode for c in "wax+"):
            place = overlay.writing(file, keep="a" in mode or "r" in mode)
        else:
            place = overlay.reading(file)
        return plain_open(place, mode, *args, **kwargs)

    def opening_low(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if kwargs.get("dir_fd") is None:
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            place = overlay.writing(path, not flags & os.O_TRUNC) if writes else None
            path = overlay.reading(path) if place is None else place
        return os_open(path, flags, *args, **kwargs)

    builtins.open = io.open = opening
    os.open = opening_low


def _redirect_changes(overlay: Overlay) -> None:
    """Functions of `os` that change or look at names."""

    def one(function: Callable[..., Any], place: Callable[[Any], Any]) -> Callable[..., Any]:
        def redirected(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            return function(path if kwargs.get("dir_fd") else place(path), *args, **kwargs)

        return redirected

    remove, rmdir, mkdir = os.remove, os.rmdir, os.mkdir
    rename = os.rename
    stat, lstat = os.stat, os.lstat

    def removing(path: Any, **kwargs: Any) -> None:
        if kwargs.get("dir_fd") is not None:  # inside a tree that is being removed
            return remove(path, **kwargs)
        place = overlay.reading(path)
        stat(place)  # it must be there
        if place != path or overlay.is_free(_absolute(path) or ""):
            remove(place, **kwargs)
        overlay.forget(path)

    def removing_folder(path: Any, **kwargs: Any) -> None:
        if kwargs.get("dir_fd") is not None:
            return rmdir(path, **kwargs)
        place = overlay.reading(path)
        stat(place)
        if place != path or overlay.is_free(_absolute(path) or ""):
            rmdir(place, **kwargs)

    def making(path: Any, *args: Any, **kwargs: Any) -> None:
        if os.path.isdir(path):
            raise FileExistsError(17, "File exists", os.fspath(path))
        mkdir(overlay.writing(path), *args, **kwargs)

    def renaming(src: Any, dst: Any, **kwargs: Any) -> None:
        source, place = overlay.reading(src), overlay.writing(dst)
        if source != src or overlay.is_free(_absolute(src) or ""):
            rename(source, place, **kwargs)
        elif os.path.isdir(source):
            shutil.copytree(source, place, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, place)
        overlay.forget(src)

    def removing_tree(path: Any, *args: Any, **kwargs: Any) -> None:
        place = overlay.reading(path)
        if place != path or overlay.is_free(_absolute(path) or ""):
            remove_tree(place, *args, **kwargs)
        overlay.forget(path)

    remove_tree = shutil.rmtree
    changed: dict[str, Callable[..., Any]] = {
        "remove": removing, "unlink": removing, "rmdir": removing_folder, "mkdir": making,
        "rename": renaming, "replace": renaming, "stat": one(stat, overlay.reading),
        "lstat": one(lstat, overlay.reading), "access": one(os.access, overlay.reading),
        "listdir": one(os.listdir, overlay.reading), "scandir": one(os.scandir, overlay.reading),
    }  # fmt: skip
    for name, function in changed.items():
        setattr(os, name, function)
    shutil.rmtree = removing_tree  # type: ignore[assignment]


def _barrier(overlay: Overlay) -> Callable[[str, tuple[Any, ...]], None]:
    """Refuses what the redirections missed."""

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event not in _WATCHED:
            return
        if event == "open":
            path, mode, flags = args
            writes = any(c in mode for c in "wax+") if isinstance(mode, str) else False
            if isinstance(flags, int) and not isinstance(mode, str):
                writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
            if writes:
                _refuse(overlay, path, event)
            elif isinstance(path, str):
                overlay.note(os.path.abspath(path))
        elif event == "socket.connect":
            address = args[1]
            if isinstance(address, tuple) and not str(address[0]).startswith(_LOCAL):
                raise ConnectionRefusedError(f"kpredict keeps user code offline: {address[0]}")
        elif event == "socket.getaddrinfo":
            if args[0] and not str(args[0]).startswith(_LOCAL):
                raise OSError(f"kpredict keeps user code offline: {args[0]}")
        elif event in ("os.rename", "os.link"):
            _refuse(overlay, _at(args[3], args[1]), event)
        else:
            _refuse(overlay, _at(args[-1] if event != "os.truncate" else -1, args[0]), event)

    return hear


def _at(folder: Any, name: Any) -> Any:
    """A name relative to an open folder, as a path."""
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(os.fsdecode(name)):
        return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(name))
    return name


def _refuse(overlay: Overlay, name: Any, event: str) -> None:
    path = _absolute(name)
    if path is not None and not overlay.is_free(os.path.realpath(path)):
        raise PermissionError(13, f"kpredict does not let user code change files ({event})", path)
