"""Child side: load one file in the pretended world, run its entry points, send what was found.

Started by `ask` with a folder that holds the pickled Request; appends pickled messages to the file
`answer` in it. What the user's code prints goes where the parent sent our streams.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from kpredict.model import Entry, Failure, KpredictError, Mode, Phases
from kpredict.request import Request
from kpredict.session.ask import Done, Message, Stage
from kpredict.source.entries import Source, read_source

SCRIPT = "<script>"


def main(folder: str) -> None:
    where = Path(folder)
    request: Request = pickle.loads((where / "request").read_bytes())
    with open(where / "answer", "wb", buffering=0) as answer:

        def send(message: Message) -> None:
            answer.write(pickle.dumps(message))

        try:
            for message in analyse(request, send):
                send(message)
        except BaseException as error:
            send(failure(request, error))
        send(Done(peak_mb()))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads and worker processes of user code must not hold us


def analyse(request: Request, send: Callable[[Message], None]) -> Iterator[Message]:
    """Read, import, choose and run: yields entries and failures as they are known."""
    try:
        text = read_text(request.file)
        source = read_source(request.file, text)
    except KpredictError as error:
        yield failure(request, error)
        return
    try:
        import torch
    except ImportError as error:
        yield Failure(
            request.file, f"torch cannot be imported: {error}.",
            "Install it (pip install 'torch-kpredict[torch]'), or use kpredict check --static.",
        )  # fmt: skip
        return
    from kpredict.capture.world import pretend_cuda
    from kpredict.session import choose as choosing
    from kpredict.targets import target as find_target

    target = find_target(request.target, torch.__version__.split("+")[0], request.cuda)
    yield target
    send(Stage("importing the file"))
    sys.dont_write_bytecode = True
    choosing.check_inputs(source, request)
    with pretend_cuda(target) as world:
        try:
            loaded, script = load(request, source, world)
        except BaseException as error:
            yield failure(request, error)
            return
        for chosen in choosing.choose(loaded, request):
            if isinstance(chosen, Failure):
                yield chosen
                continue
            send(Stage(f"analysing {chosen.name}", chosen.name))
            yield from run(request, source, world, chosen)
        if script is not None:
            yield script


def load(request, source, world):  # type: ignore[no-untyped-def]
    """Import the file; as a script, recorded, when only running it can tell the inputs."""
    from kpredict.session.choose import Loaded, known_without_running
    from kpredict.session.load import execute, prepare
    from kpredict.session.observe import Observer

    path = Path(request.file).resolve()
    module = prepare(path)
    if known_without_running(source, request):
        execute(module, source.text)
        return Loaded(source, module.__dict__, {}, str(path)), None
    observer = Observer(str(path), {e.line: e.name for e in source.entries})
    plans = run_script(request, source, world, lambda: execute(module, source.text, True), observer)
    return Loaded(source, module.__dict__, observer.calls, str(path)), plans


def run_script(request, source, world, execute, observer):  # type: ignore[no-untyped-def]
    """Run the whole file once; its own entry, when it made the GPU do something."""
    from kpredict.plans import Call, make_plans

    def script() -> None:
        with observer.watching():
            try:
                execute()
            except SystemExit as stop:
                if stop.code not in (None, 0):
                    raise

    path = str(Path(request.file).resolve())
    call = Call(script, stated=stated(request, source), warmups=0, file=path)
    made = make_plans(world, call, [Mode.EAGER])
    for error in made.failures.values():
        raise error
    if request.names or not any(p.launches for _, p in made.by_mode[Mode.EAGER]):
        return None
    return Entry(
        request.file, SCRIPT, 1, (), made.by_mode, made.assumptions, source.text, made.names
    )


def stated(request: Request, source: Source) -> dict[int | str, float]:
    values = dict(request.stated)
    if source.stated is not None:
        values.setdefault("*", source.stated)
    return values


def run(request, source, world, chosen):  # type: ignore[no-untyped-def]
    """One entry: its Entry, and a Failure for each mode that did not work."""
    from kpredict.plans import make_plans

    try:
        call, inputs = chosen.make()
        made = make_plans(world, call, request.modes)
    except BaseException as error:
        yield replace(failure(request, error), name=chosen.name, line=chosen.line)
        return
    for mode, error in made.failures.items():
        found = failure(request, error)
        yield replace(
            found, message=f"{mode.value}: {found.message}", name=chosen.name, line=chosen.line
        )
    if made.by_mode:
        yield Entry(
            request.file, chosen.name, chosen.line, inputs, made.by_mode, made.assumptions,
            source.text, made.names,
        )  # fmt: skip


def read_text(file: str) -> str:
    """The file as Python reads it: encoding declarations and byte-order marks are heeded."""
    import tokenize

    try:
        with tokenize.open(file) as stream:
            return stream.read()
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise KpredictError(f"It is not Python text: {error}.") from None
    except OSError as error:
        raise KpredictError(f"It cannot be read: {error.strerror}.") from None


def failure(request: Request, error: BaseException) -> Failure:
    """One clear line for anything that can go wrong in user code."""
    line = _line(request, error)
    at = f" (line {line})" if line else ""
    hint = ""
    match error:
        case KpredictError():
            message, hint = error.message, error.hint
        case SystemExit():
            message = f"The file called sys.exit({error.code!r}){at}."
        case KeyboardInterrupt():
            message = f"The file raised KeyboardInterrupt{at}."
        case MemoryError():
            message = f"Out of memory{at}."
        case ModuleNotFoundError():
            message = f"{error}{at}."
            hint = "Run kpredict with the Python that has the file's own dependencies."
        case SyntaxError():
            message = f"Syntax error: {error}."
        case _:
            first = next(iter(str(error).strip().splitlines()), "")
            message = f"{type(error).__name__}: {first[:300]}{at}".rstrip()
    return Failure(request.file, message, hint, line=line)


def _line(request: Request, error: BaseException) -> int:
    """The innermost line of the user's file in the traceback; 0 if there is none."""
    path = str(Path(request.file).resolve())
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename == path), 0)


def peak_mb() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main(sys.argv[1])
