"""A process that has torch and the predictors loaded and forks a child for each file.

Reads folders from its input, one a line; for each it forks, says the child's id, waits, and says
the exit code. Started by `processes.Nursery` with the name of the module whose `main` a child runs.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from pathlib import Path

from kpredict.session.processes import environment
from kpredict.session.warm import collect_seldom


def main(module: str) -> None:
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    collect_seldom()
    child = importlib.import_module(module)
    for line in sys.stdin:
        where = Path(line.rstrip("\n"))
        with contextlib.suppress(Exception):  # the child will say what is wrong
            child.prepare(str(where))
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            _be_child(child.main, where)
        os.write(answers, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())


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
