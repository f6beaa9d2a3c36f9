"""Child side: load one file in the pretended world, run its entry points, send what was found.

Started by `ask` with a folder that holds the pickled Request; appends pickled messages to the file
`answer` in it. What the user's code prints goes where the parent sent our streams.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kpredict.model import Entry, Failure, KpredictError, Mode, Phases, Span
from kpredict.request import Request
from kpredict.session.ask import Done, Message, Stage
from kpredict.session.paths import relabel, shown_path
from kpredict.session.sandbox import confine
from kpredict.session.told import check_inputs
from kpredict.source.nouns import Source
from kpredict.targets import target as find_target

if TYPE_CHECKING:  # these import torch, whose absence is an answer too
    from kpredict.capture.world import World
    from kpredict.plans import Call
    from kpredict.session.choose import Chosen, Loaded

SCRIPT = "<script>"
SCRIPT_OPS = 10_000  # a script that goes on for longer is stopped


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
        source = read_source(request.file)
    except KpredictError as error:
        yield failure(request, error)
        return
    if request.rules:
        from kpredict.eager.user_rules import register

        register(request.rules)
    try:
        send(Stage("importing torch"))
        import torch
    except ImportError as error:
        yield from without_torch(request, source, error)
        return
    from kpredict.capture.world import pretend_cuda
    from kpredict.session import choose as choosing

    target = find_target(request.target, torch.__version__.split("+")[0], request.cuda)
    yield target
    send(Stage("importing the file"))
    sys.dont_write_bytecode = True
    confine(Path(os.environ["KPREDICT_SCRATCH"]))
    check_inputs(source, request)
    with pretend_cuda(target) as world:
        try:
            loaded, script = load(request, source, world, Path(request.file).resolve())
        except BaseException as error:
            yield failure(request, error)
            return
        skipped: list[Failure] = []
        busy: set[int] = set()
        for chosen in choosing.choose(loaded, request):
            if isinstance(chosen, Failure):
                skipped.append(chosen)
                continue
            send(Stage(f"analysing {chosen.name}", chosen.name))
            for found in run(request, source, world, chosen):
                busy |= lines_of(found) if isinstance(found, Entry) else set()
                yield found
        yield from (f for f in skipped if not f.skipped or not is_covered(f, source, busy))
        if script is not None:
            yield script


def without_torch(request: Request, source: Source, error: ImportError) -> Iterator[Message]:
    """What the source alone tells; a torch that is there and broken is an error."""
    target = find_target(request.target, cuda=request.cuda)
    yield target
    hint = "Install it (pip install 'torch-kpredict[torch]'), or use kpredict check --static."
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        from kpredict.session.from_source import read_entries

        entries = list(read_entries(request, source.text, target))
        yield from entries
        if entries:
            return
    yield Failure(request.file, f"torch cannot be imported: {error}.", hint)


def lines_of(entry: Entry) -> set[int]:
    """The lines of its file that make the GPU do something."""
    return {
        span.line
        for phases in entry.plans.values()
        for _, plan in phases
        for launch in plan.launches
        for span in launch.lines
        if span.file == entry.file
    }


def is_covered(skipped: Failure, source: Source, busy: set[int]) -> bool:
    """Whether what was left out ran as part of an entry that was analysed."""
    entry = source.find(skipped.name)
    return entry is not None and any(entry.line <= n <= entry.end_line for n in busy)


def load(request: Request, source: Source, world: World, path: Path) -> tuple[Loaded, Entry | None]:
    """Import the file; as a script, recorded, when only running it can tell the inputs."""
    from kpredict.session.choose import Loaded, known_without_running
    from kpredict.session.load import execute, prepare
    from kpredict.session.observe import Observer

    module = prepare(path)
    if known_without_running(source, request):
        execute(module, source.text)
        return Loaded(source, module.__dict__, {}, str(path)), None
    names = {e.name for e in source.entries}
    observer = Observer(str(path), names, lambda: recorded(world), SCRIPT_OPS)

    def script() -> None:
        first = not observer.lines  # it runs once more for the plan as written
        with observer.watching() if first else nullcontext():
            try:
                execute(module, source.text, as_main=True)
            except SystemExit as stop:
                if stop.code not in (None, 0):
                    raise

    entry = run_script(request, source, world, path, script)
    if entry is not None:
        entry = replace(entry, calls=observer.lines)
    if entry is not None and observer.stopped:
        told = f"the script was stopped after {SCRIPT_OPS:,} ops"
        entry = noted(entry, told)
    return Loaded(source, module.__dict__, observer.calls, str(path)), entry


def recorded(world: World) -> int:
    """How many ops the run that is going on has recorded."""
    return getattr(world.mode.listener, "recorded", 0)


def noted(entry: Entry, note: str) -> Entry:
    """The same entry with a note in each plan."""
    plans = {
        mode: Phases(**{p.value: replace(plan, notes=(*plan.notes, note)) for p, plan in phases})
        for mode, phases in entry.plans.items()
    }
    return replace(entry, plans=plans)


def run_script(
    request: Request, source: Source, world: World, path: Path, script: Callable[[], None]
) -> Entry | None:
    """Run the whole file once; its own entry, when it made the GPU do something."""
    from kpredict.plans import Call
    from kpredict.session.arguments import stated_values

    values = stated_values(source, request)
    compiles = "torch.compile" in source.text
    call = Call(script, stated=values, warmups=0, file=str(path), compiles=compiles)
    modes = [Mode.EAGER, *(m for m in request.modes if m is Mode.AS_WRITTEN)]
    entry, failures = answer(request, source, world, call, SCRIPT, 1, (), modes)
    if Mode.EAGER in failures:
        raise failures[Mode.EAGER]
    if request.names or not any(plan.launches for _, plan in entry.plans[Mode.EAGER]):
        return None
    return replace(entry, plans={m: p for m, p in entry.plans.items() if m in request.modes})


def run(
    request: Request, source: Source, world: World, chosen: Chosen
) -> Iterator[Entry | Failure]:
    """One entry: its Entry, and a Failure for each mode that did not work."""
    try:
        call, inputs = chosen.make()
        entry, failures = answer(
            request, source, world, call, chosen.name, chosen.line, inputs, request.modes
        )
    except BaseException as error:
        found = failure(request, error)
        yield replace(found, name=chosen.name, line=found.line or chosen.line)
        return
    yield from mode_failures(request, chosen, failures, len(entry.plans))
    if entry.plans:
        yield entry


def mode_failures(
    request: Request, chosen: Chosen, failures: Mapping[Mode, Exception], worked: int
) -> Iterator[Failure]:
    """One Failure for modes that failed alike; it names them when others worked."""
    alike: dict[Failure, list[Mode]] = {}
    for mode, error in failures.items():
        alike.setdefault(failure(request, error), []).append(mode)
    for found, modes in alike.items():
        where = "" if not worked and len(alike) == 1 else f"{', '.join(modes)}: "
        line = found.line or chosen.line
        yield replace(found, message=where + found.message, name=chosen.name, line=line)


def answer(
    request: Request, source: Source, world: World, call: Call, name: str, line: int,
    inputs: tuple[str, ...], modes: Sequence[Mode],
) -> tuple[Entry, Mapping[Mode, Exception]]:  # fmt: skip
    """The plans of one call, with paths as reports show them; the eager run counts lines."""
    from kpredict.plans import make_plans

    lines: Mapping[int, int] = {}
    if call.warmups:  # one of them is watched: a watched run takes twice as long
        lines = lines_run(world, call)
        eager_call = replace(call, warmups=call.warmups - 1)
    else:
        eager_call = call
    eager = make_plans(world, eager_call, [m for m in modes if m is Mode.EAGER])
    others = make_plans(world, call, [m for m in modes if m is not Mode.EAGER])

    def rename(span: Span) -> Span:
        return replace(span, file=shown_path(span.file, call.file, request.file))

    assumptions = dict.fromkeys((*eager.assumptions, *others.assumptions))
    plans = {**eager.by_mode, **others.by_mode}
    entry = Entry(
        request.file, name, line, inputs, {m: relabel(ps, rename) for m, ps in plans.items()},
        tuple(replace(a, line=rename(a.line)) if a.line else a for a in assumptions),
        source.text, {**eager.names, **others.names}, lines,
    )  # fmt: skip
    return entry, {**eager.failures, **others.failures}


def lines_run(world: World, call: Call) -> Mapping[int, int]:
    """Run the call once and count its file's lines. An error is left to the run that counts."""
    from kpredict.plans import make_plans
    from kpredict.session.observe import Observer

    observer = Observer(call.file)
    with observer.watching():
        make_plans(world, replace(call, warmups=0), [Mode.EAGER])
    return observer.lines


def read_source(file: str) -> Source:
    """What the file says of itself; without libcst by the reader that needs none."""
    try:
        from kpredict.source.entries import read_source as read
    except ImportError:
        from kpredict.source.plain import read_source as read
    return read(file, read_text(file))


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
    hint = ""
    match error:
        case KpredictError():
            message, hint = error.message, error.hint
        case SystemExit():
            message = f"The file called sys.exit({error.code!r})."
        case KeyboardInterrupt():
            message = "The file raised KeyboardInterrupt."
        case MemoryError():
            message = "Out of memory."
        case ModuleNotFoundError():
            message = f"{error}."
            hint = "Run kpredict with the Python that has the file's own dependencies."
        case SyntaxError():
            message = f"Syntax error: {error}."
        case _:
            first = next(iter(str(error).strip().splitlines()), "")
            message = f"{type(error).__name__}: {first[:300]}".rstrip(": ")
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
