"""One call in the pretended world → its Entry: plans of every mode, as a report shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kpredict.capture.world import World
from kpredict.model import Entry, Failure, Mode, Span
from kpredict.plans import Call, Plans, make_plans, make_repeats, run_eagerly
from kpredict.request import Request
from kpredict.session.build import describe
from kpredict.session.choose import Chosen
from kpredict.session.faults import failure, mode_failures
from kpredict.session.messages import Partial
from kpredict.session.observe import Observer
from kpredict.session.paths import relabel, shown_path
from kpredict.source.nouns import Source


def answer_entry(
    request: Request, source: Source, world: World, chosen: Chosen,
    send: Callable[[Partial], None] | None = None,
) -> Iterator[Entry | Failure]:  # fmt: skip
    """One entry: its Entry, and a Failure for each mode that did not work; `send` is told the eager
    plan as soon as it is known."""
    try:
        call, inputs = chosen.make()
        entry, failures = answer_call(
            request, source, world, call, chosen.name, chosen.line, inputs, request.modes, send
        )
    except BaseException as error:
        found = failure(request, error)
        yield replace(found, name=chosen.name, line=found.line or chosen.line)
        return
    yield from mode_failures(request, chosen.name, chosen.line, failures, bool(entry.plans))
    if entry.plans:
        yield entry


def answer_call(
    request: Request, source: Source, world: World, call: Call, name: str, line: int,
    inputs: tuple[str, ...], modes: Sequence[Mode], send: Callable[[Partial], None] | None = None,
) -> tuple[Entry, Mapping[Mode, Exception]]:  # fmt: skip
    """The plans of one call, with paths as reports show them; the eager run counts lines."""
    lines: Mapping[int, int] = {}
    if call.warmups:  # one of them is watched: a watched run takes twice as long
        lines = lines_run(world, call)
        eager_call = replace(call, warmups=call.warmups - 1)
    else:
        eager_call = call
    eager = make_plans(world, eager_call, [m for m in modes if m is Mode.EAGER])

    def rename(span: Span) -> Span:
        return replace(span, file=shown_path(span.file, call.file, request.file))

    def entry(*made: Plans) -> Entry:
        assumptions = dict.fromkeys(a for plans in made for a in plans.assumptions)
        return Entry(
            request.file, name, line, inputs,
            {m: relabel(ps, rename) for plans in made for m, ps in plans.by_mode.items()},
            tuple(replace(a, line=rename(a.line)) if a.line else a for a in assumptions),
            source.text, {m: names for plans in made for m, names in plans.names.items()}, lines,
            outputs=described(eager.result),
        )  # fmt: skip

    compiled = [m for m in modes if m is not Mode.EAGER]
    if send is not None and compiled and eager.by_mode:
        send(Partial(entry(eager)))
    others = make_plans(world, call, compiled)
    repeats = make_repeats(world, call) if Mode.COMPILED in others.by_mode else ()
    return replace(entry(eager, others), repeats=repeats), {**eager.failures, **others.failures}


def described(result: Any) -> tuple[str, ...]:
    """What was returned, in words: one for each item of a tuple."""
    if result is None:
        return ()
    return tuple(describe(r) for r in result) if type(result) is tuple else (describe(result),)


def lines_run(world: World, call: Call) -> Mapping[int, int]:
    """Run the call once and count its file's lines. An error is left to the run that counts."""
    observer = Observer(call.file)
    with suppress(Exception), observer.watching():
        run_eagerly(world, replace(call, warmups=0))
    return observer.lines
