"""How a child is started: fresh, or forked from a process that has torch loaded already.

Importing torch and Inductor takes seconds; of many files only the first should pay for it. Parent
side: no torch. `Start` runs a module with a folder and gives its exit code, None when it ran out of
time; whatever processes the user's code started are ended with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Start = Callable[[str, Path, float], int | None]
NURSERY = "kpredict.session.nursery"
_LOADING = 120.0  # seconds for the nursery to import torch


def environment(where: Path) -> Mapping[str, str]:
    """What a child finds in its environment besides ours: caches in scratch, nothing online."""
    scratch = where / "scratch"
    return {
        "KPREDICT_SCRATCH": str(scratch), "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "TRITON_CACHE_DIR": str(scratch / "triton"), "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "Agg", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "TQDM_DISABLE": "1",
    }  # fmt: skip


def fresh(module: str, where: Path, timeout: float) -> int | None:
    """Start a new interpreter."""
    with open(where / "output", "wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(where)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            env=os.environ | environment(where), start_new_session=True,
        )  # fmt: skip
        try:
            return child.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end_group(child.pid)
            child.kill()
            child.wait()


def _end_group(pid: int) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


@contextmanager
def starting(files: int, module: str) -> Iterator[Start]:
    """The way to start children for so many files, each by running `module`."""
    if files < 2 or sys.platform != "linux":
        yield fresh
        return
    nursery = Nursery(module)
    try:
        yield nursery
    finally:
        nursery.close()


class Nursery:
    """A process with torch loaded that forks a child for each folder named on its input.

    It answers with the child's id and, later, its exit code. It is started when it is needed first;
    should it die, children are started fresh.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = b""

    def __call__(self, module: str, where: Path, timeout: float) -> int | None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", NURSERY, self._module],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        if module != self._module or not self._send(self._process, str(where)):
            return fresh(module, where, timeout)
        pid = self._answer(self._process, _LOADING)
        if pid is None:
            self.close()
            return fresh(module, where, timeout)
        code = self._answer(self._process, timeout)
        _end_group(pid)
        if code is None:
            self._answer(self._process, _LOADING)  # the code of the child that was just ended
        return code

    def close(self) -> None:
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.kill()
        self._process.wait()

    @staticmethod
    def _send(process: subprocess.Popen[bytes], line: str) -> bool:
        stream = process.stdin
        if stream is None or stream.closed or process.poll() is not None:
            return False
        try:
            stream.write(line.encode() + b"\n")
            stream.flush()
        except OSError:
            return False
        return True

    def _answer(self, process: subprocess.Popen[bytes], timeout: float) -> int | None:
        """The next number it says; None when it says nothing for so long, or has ended."""
        stream = process.stdout
        assert stream is not None
        while b"\n" not in self._heard:
            if not select.select([stream], [], [], timeout)[0]:
                return None
            part = os.read(stream.fileno(), 4096)
            if not part:
                return None
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return int(line)
