"""Parent side: one child process per file, its answer or what became of it. No torch.

In: a Request. Out: the Entries and Failures that the child managed to give. The child appends
pickled messages to a file, so what it had found before a crash or the timeout is kept.
"""

from __future__ import annotations

import pickle
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kpredict.model import Entry, Failure, Report, Target
from kpredict.request import Request
from kpredict.session.messages import Answer, Done, Message, Partial, Stage, Used
from kpredict.session.processes import Start, fresh, starting
from kpredict.session.remember import Memory
from kpredict.targets import target as find_target

LOG_TAIL = 4096
ANALYSER = "kpredict.session.child"


_KNOWN = (Stage, Used, Partial, Done, Entry, Failure, Target)

Answering = Callable[[Sequence[Request]], Report]


def analyse(
    requests: Sequence[Request], heard: Callable[[Answer], None] | None = None,
    begun: Callable[[Request], None] | None = None, memory: Memory | None = None,
) -> Report:  # fmt: skip
    """Every file in turn; a file that fails is an error in the report and the others go on.

    `begun` is told each request before it is answered, `heard` each answer as it comes.
    """
    with answering(len(requests), heard, begun, memory) as answered:
        return answered(requests)


@contextmanager
def answering(
    children: int, heard: Callable[[Answer], None] | None = None,
    begun: Callable[[Request], None] | None = None, memory: Memory | None = None,
) -> Iterator[Answering]:  # fmt: skip
    """A function that answers requests by one report; asked again, it shares what was loaded.

    `children` is how many requests there will be at least: of several only one imports torch.
    With a memory, an answer that still holds is not made again.
    """
    with starting(children, ANALYSER) as start:

        def answered(requests: Sequence[Request]) -> Report:
            answers: list[Answer] = []
            for request in requests:
                if begun is not None:
                    begun(request)
                answer = None if memory is None else memory.recall(request)
                if answer is None:
                    began = time.time()
                    answer = ask(request, start=start)
                    if memory is not None:
                        memory.keep(request, answer, began)
                answers.append(answer)
                if heard is not None:
                    heard(answer)
            return _report(requests, answers)

        yield answered


def _report(requests: Sequence[Request], answers: Sequence[Answer]) -> Report:
    target = next((a.target for a in answers if a.target is not None), None)
    if target is None:
        last = requests[-1] if requests else Request("")
        target = find_target(last.target, cuda=last.cuda, launch_us=last.launch_us)
    return Report(
        target,
        tuple(e for a in answers for e in a.entries),
        tuple(f for a in answers for f in a.errors),
        skipped=tuple(f for a in answers for f in a.skipped),
        seconds=sum(a.seconds for a in answers),
        peak_mb=max((a.peak_mb for a in answers), default=0.0),
    )


def ask(request: Request, child: str = ANALYSER, start: Start = fresh) -> Answer:
    """Analyse one file in a child process of its own: the module `child`, given the request."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="kpredict-", ignore_cleanup_errors=True) as folder:
        where = Path(folder)
        (where / "request").write_bytes(pickle.dumps(request))
        (where / "scratch").mkdir()
        code = start(child, where, request.timeout)
        messages = _read_messages(where / "answer")
        output = (where / "output").read_text(errors="replace")
    answer = _gather(request, messages, code, output)
    return replace(answer, seconds=time.perf_counter() - began, output=output)


def _read_messages(path: Path) -> list[Message]:
    messages: list[Message] = []
    if path.exists():
        with path.open("rb") as stream:
            while True:
                try:
                    messages.append(pickle.load(stream))
                except (EOFError, pickle.UnpicklingError):  # the end, or cut off by a crash
                    return messages
    return messages


def _gather(request: Request, messages: list[Message], code: int | None, output: str) -> Answer:
    entries = tuple(m for m in messages if isinstance(m, Entry))
    failures = [m for m in messages if isinstance(m, Failure)]
    errors = [f for f in failures if not f.skipped]
    others = tuple(m for m in messages if not isinstance(m, _KNOWN))
    target = next((m for m in messages if isinstance(m, Target)), None)
    used = next((m.files for m in messages if isinstance(m, Used)), None)
    done = next((m for m in messages if isinstance(m, Done)), None)
    if done is None:
        stage = _last_stage(messages)
        errors.append(_untimely_end(request, stage, code, output))
        begun = next(
            (m for m in reversed(messages) if isinstance(m, Stage | Partial | Entry)), None
        )
        if isinstance(begun, Partial):
            entries = (*entries, begun.entry)
    elif not entries and not errors and not others:
        skipped = [f for f in failures if f.skipped]
        hint = skipped[0].hint if skipped else "Name one as f.py::name and give --input x=f32[64]."
        errors.append(
            Failure(request.file, "No entry point whose inputs are known was found.", hint)
        )
    return Answer(
        entries, tuple(errors), tuple(f for f in failures if f.skipped), target,
        peak_mb=done.peak_mb if done else 0.0, used=used, others=others,
    )  # fmt: skip


def _last_stage(messages: Sequence[Message]) -> Stage:
    for m in reversed(messages):
        if isinstance(m, Stage):
            return m
        if isinstance(m, Partial):
            return Stage(f"compiling {m.entry.name}, whose eager plan stands", m.entry.name)
    return Stage("starting")


def _untimely_end(request: Request, stage: Stage, code: int | None, output: str) -> Failure:
    """Why there is no last word: time, a signal, an exit."""
    during = f"while {stage.doing}"
    last = next((line for line in reversed(output[-LOG_TAIL:].splitlines()) if line.strip()), "")
    hint = f"Its last words: {last.strip()[:200]}" if last else ""
    if code is None:
        message = f"Not done after {request.timeout:g} s, {during}."
        hint = "Give it more time with --timeout, or less to do."
    elif code == -9:
        message = f"Killed {during}: probably out of memory."
    elif code < 0:
        message = f"Crashed {during}: {signal.Signals(-code).name}."
    else:
        message = f"Ended by itself {during}, with exit code {code}."
    return Failure(request.file, message, hint, stage.name)
