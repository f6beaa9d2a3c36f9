"""Child side: load one file in the pretended world, run its entry points, send what was found.

Started by `ask` with a folder that holds the pickled Request; appends pickled messages to the file
`answer` in it. What the user's code prints goes where the parent sent our streams.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kpredict import plugins
from kpredict.model import Entry, Failure, KpredictError, Mode
from kpredict.request import Request
from kpredict.session.faults import failure
from kpredict.session.messages import Done, Message, Stage, Used
from kpredict.session.reading import read_source
from kpredict.session.sandbox import confine
from kpredict.session.told import check_inputs
from kpredict.session.used import files_used
from kpredict.session.warm import collect_seldom, load_stages
from kpredict.source.nouns import Source
from kpredict.targets import target as find_target


def main(folder: str) -> None:
    collect_seldom()
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


def prepare(folder: str) -> None:
    """Load what the request in `folder` needs, in a process that will fork for it and others."""
    load_for(pickle.loads((Path(folder) / "request").read_bytes()), patterns=True)


def load_for(request: Request, *, patterns: bool = False) -> None:
    compiled = any(mode is not Mode.EAGER for mode in request.modes)
    load_stages(compiled=compiled, patterns=compiled and patterns)


def analyse(request: Request, send: Callable[[Message], None]) -> Iterator[Message]:
    """Read, import, choose and run: yields entries and failures as they are known."""
    try:
        source = read_source(request.file, request.text)
    except KpredictError as error:
        yield failure(request, error)
        return
    if request.rules:
        from kpredict.eager.user_rules import register

        register(request.rules)
    try:
        send(Stage("importing torch"))
        load_for(request)
    except ImportError as error:
        yield from without_torch(request, source, error)
        return
    import torch

    from kpredict.capture.world import pretend_cuda
    from kpredict.session.answer import answer_entry
    from kpredict.session.choose import choose
    from kpredict.session.script import load

    release = torch.__version__.split("+")[0]
    target = find_target(request.target, release, request.cuda, request.launch_us)
    yield target
    send(Stage("importing the file"))
    sys.dont_write_bytecode = True
    scratch = Path(os.environ["KPREDICT_SCRATCH"])
    overlay = confine(scratch)
    check_inputs(source, request)
    with pretend_cuda(target) as world:
        try:
            plugins.load(request.plugins)
            loaded, script = load(request, source, world, Path(request.file).resolve())
        except BaseException as error:
            yield failure(request, error)
            return
        skipped: list[Failure] = []
        busy: set[int] = set()
        for chosen in choose(loaded, request):
            if isinstance(chosen, Failure):
                skipped.append(chosen)
                continue
            send(Stage(f"analysing {chosen.name}", chosen.name))
            for found in answer_entry(request, source, world, chosen, send):
                busy |= lines_of(found) if isinstance(found, Entry) else set()
                yield found
        yield from (f for f in skipped if not f.skipped or not is_covered(f, source, busy))
        if script is not None:
            yield script
    yield Used(files_used(overlay.asked_for, scratch))


def without_torch(request: Request, source: Source, error: ImportError) -> Iterator[Message]:
    """What the source alone tells; a torch that is there and broken is an error."""
    target = find_target(request.target, cuda=request.cuda, launch_us=request.launch_us)
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


def peak_mb() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main(sys.argv[1])
