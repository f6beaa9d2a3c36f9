"""A process that has torch and the predictors loaded and forks a child for each file.

Reads folders from its input, one a line; for each it forks, says the child's id, waits, and says
the exit code. Started by `processes.Nursery` with the name of the module whose `main` a child runs.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path

from kpredict.session.processes import environment

_OURS = ("kpredict.compiled.run", "kpredict.session.answer", "kpredict.session.script")


def main(module: str) -> None:
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    child = importlib.import_module(module)
    _load()
    for line in sys.stdin:
        where = Path(line.rstrip("\n"))
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            _be_child(child.main, where)
        os.write(answers, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _load() -> None:
    """What every child needs; without threads, so that forking is safe: Inductor would start its
    compiling processes when it is imported."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    for name in ("torch", "torch._inductor.compile_fx", *_OURS):
        importlib.import_module(name)
    importlib.import_module("kpredict.eager.registry").rules()


def _be_child(run: object, where: Path) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(where / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(environment(where))
    try:
        assert callable(run)
        run(str(where))
    except BaseException:
        traceback.print_exc()
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
