"""Import the user's file; run it as a script when only running it can tell the inputs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from kpredict.capture.world import World
from kpredict.compiled.options import noting_compile_calls
from kpredict.model import Entry, Failure, Mode, Phases
from kpredict.plans import Call
from kpredict.request import Request
from kpredict.session.answer import answer_call
from kpredict.session.arguments import Loaded, compiles, stated_values
from kpredict.session.faults import failure
from kpredict.session.load import execute, prepare
from kpredict.session.observe import Observer
from kpredict.session.told import known_without_running
from kpredict.source.nouns import Source

SCRIPT = "<script>"
SCRIPT_OPS = 10_000  # a script that goes on for longer is stopped


def load(
    request: Request, source: Source, world: World, path: Path
) -> tuple[Loaded, Entry | Failure | None]:
    """The loaded file, and what came of it as a script.

    A script that fails after it has called functions with tensors leaves those to be analysed; its
    fault is a Failure. Raises what the file raises when nothing can be made of it.
    """
    module = prepare(path)
    with noting_compile_calls() as noted:
        loaded, found = _load(request, source, world, path, module)
    return replace(loaded, noted=noted), found


def _load(
    request: Request, source: Source, world: World, path: Path, module: ModuleType
) -> tuple[Loaded, Entry | Failure | None]:
    if known_without_running(source, request):
        execute(module, source.text)
        return Loaded(source, module.__dict__, {}, str(path)), None
    names = {e.name for e in source.entries}
    observer = Observer(str(path), names, lambda: _recorded(world), SCRIPT_OPS)

    def script() -> None:
        first = not observer.lines  # it runs once more for the plan as written
        with observer.watching() if first else nullcontext():
            try:
                execute(module, source.text, as_main=True)
            except SystemExit as stop:
                if stop.code not in (None, 0):
                    raise

    found: Entry | Failure | None
    try:
        found = _run(request, source, world, path, script)
    except BaseException as error:
        if not observer.calls:
            raise
        found = replace(failure(request, error), name=SCRIPT)
    if isinstance(found, Entry):
        found = replace(found, calls=observer.lines)
        if observer.stopped:
            found = _noted(found, f"the script was stopped after {SCRIPT_OPS:,} ops")
    loaded = Loaded(source, module.__dict__, observer.calls, str(path), repeats=observer.repeats)
    return loaded, found


def _run(
    request: Request, source: Source, world: World, path: Path, script: Callable[[], None]
) -> Entry | None:
    """Run the whole file once; its own entry, when it made the GPU do something."""
    values = stated_values(source, request)
    call = Call(script, stated=values, warmups=0, file=str(path), compiles=compiles(source))
    modes = [Mode.EAGER, *(m for m in request.modes if m is Mode.AS_WRITTEN)]
    entry, failures = answer_call(request, source, world, call, SCRIPT, 1, (), modes)
    if Mode.EAGER in failures:
        raise failures[Mode.EAGER]
    if request.names or not any(plan.launches for _, plan in entry.plans[Mode.EAGER]):
        return None
    return replace(entry, plans={m: p for m, p in entry.plans.items() if m in request.modes})


def _recorded(world: World) -> int:
    """How many ops the run that is going on has recorded."""
    return getattr(world.mode.listener, "recorded", 0)


def _noted(entry: Entry, note: str) -> Entry:
    """The same entry with a note in each plan."""
    plans = {
        mode: Phases(**{p.value: replace(plan, notes=(*plan.notes, note)) for p, plan in phases})
        for mode, phases in entry.plans.items()
    }
    return replace(entry, plans=plans)
