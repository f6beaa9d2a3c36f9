"""A callable and its arguments → its plans, one per mode; joins capture and the predictors.

Used by the Python interface and by the session that analyses files, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from kpredict.capture.run import Captured, NoBackward, Optimizer, capture, module_of
from kpredict.capture.world import World
from kpredict.eager.predict import predict_eager
from kpredict.model import Assumption, Mode, Op, Phase, Phases, Plan, Recompile, Repeat

if TYPE_CHECKING:
    from kpredict.compiled.run import Compiler

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Again:
    """One of a file's calls of the same callable; `number` counts them from 1."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    number: int
    line: int | None = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """What to run and how.

    `grad` None leaves the grad mode as it is; `stated` are values of data-dependent reads by line
    or "*"; `file` is the file whose lines the report is about; `compiles` says that it calls
    torch.compile itself, so that there is a plan as written. `warmups` are the calls before the
    one that counts; 0 for what can be run once only, such as a script.
    """

    fn: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    phases: tuple[Phase, ...] = (Phase.FORWARD,)
    optimizer: Optimizer | None = None
    compile_optimizer: bool = False
    grad: bool | None = None
    stated: Mapping[int | str, float] = field(default_factory=dict)
    root: torch.nn.Module | None = None
    file: str = ""
    warmups: int = 1
    compiles: bool = False
    compile_options: Mapping[str, Any] = field(default_factory=dict)
    more: tuple[Again, ...] = ()


@dataclass(frozen=True, slots=True)
class Plans:
    """The answer: plans by mode, names of arrays by mode, assumptions, what went wrong, and what
    the callable returned."""

    by_mode: Mapping[Mode, Phases]
    names: Mapping[Mode, Mapping[int, str]] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    failures: Mapping[Mode, Exception] = field(default_factory=dict)
    result: Any = None


def make_plans(world: World, call: Call, modes: Iterable[Mode]) -> Plans:
    """Capture and predict each mode. A mode that fails is in `failures`; the others go on."""
    by_mode: dict[Mode, Phases] = {}
    names: dict[Mode, Mapping[int, str]] = {}
    assumptions: dict[Assumption, None] = {}
    failures: dict[Mode, Exception] = {}
    result: Any = None
    for mode in modes:
        if mode is Mode.AS_WRITTEN and not call.compiles:
            continue
        predict = _PREDICTORS[mode]
        try:
            phases, captured = _forward_at_least(predict, world, call)
        except Exception as error:
            failures[mode] = error
            continue
        if mode is Mode.AS_WRITTEN and not _has_regions(phases):
            continue
        by_mode[mode] = phases
        names[mode] = captured.names
        result = captured.result if result is None else result
        assumptions |= dict.fromkeys(captured.assumptions)
    return Plans(by_mode, names, tuple(assumptions), failures, result)


def _forward_at_least(
    predict: Callable[[World, Call], tuple[Phases, Captured]], world: World, call: Call
) -> tuple[Phases, Captured]:
    """All phases; the forward alone, with a note, where there is no backward to be had."""
    try:
        return predict(world, call)
    except NoBackward as error:
        if call.phases[0] is not Phase.FORWARD:
            raise
        phases, captured = predict(world, replace(call, phases=(Phase.FORWARD,), optimizer=None))
        forward = phases.forward or Plan()
        noted = replace(forward, notes=(*forward.notes, f"forward only: {error.message}"))
        return Phases(noted), captured


def _has_regions(phases: Phases) -> bool:
    """Whether anything ran compiled; else the plan as written is the eager one."""
    return any(launch.region for _, plan in phases for launch in plan.launches)


def _eager(world: World, call: Call) -> tuple[Phases, Captured]:
    captured = run_eagerly(world, call)
    return plans_of_ops(world, captured, call.file), captured


def run_eagerly(world: World, call: Call) -> Captured:
    """Run the call with torch.compile left out, warm-up runs first."""
    with torch.compiler.set_stance("force_eager"):
        return capture(
            world, call.fn, call.args, call.kwargs, phases=call.phases, optimizer=call.optimizer,
            grad=call.grad, stated=call.stated, root=call.root, warmups=call.warmups,
        )  # fmt: skip


def plans_of_ops(world: World, captured: Captured, file: str) -> Phases:
    """The eager plan of each captured phase."""
    return Phases(
        **{
            phase.value: predict_eager(
                [anchored(item, file) for item in items if isinstance(item, Op)], world.target
            )
            for phase, items in captured.items.items()
        }
    )


def anchored(op: Op, file: str) -> Op:
    """The op placed at the innermost line of `file` that led to it, if one did."""
    if op.span is None or op.span.file == file:
        return op
    span = next((s for s in op.stack if s.file == file), None)
    return op if span is None else replace(op, span=span)


def _compiled(world: World, call: Call) -> tuple[Phases, Captured]:
    """What `torch.compile` of the callable launches; the optimizer stays eager unless asked."""

    def run(compiler: Compiler) -> Captured:
        fn = compiler.wrap(uncompiled(call.fn))
        optimizer = call.optimizer
        if optimizer is not None and call.compile_optimizer:
            optimizer = CompiledStep(compiler.wrap(stepping(optimizer)))
        return capture(
            world, fn, call.args, call.kwargs, phases=call.phases, optimizer=optimizer,
            grad=call.grad, stated=call.stated, root=call.root or module_of(call.fn),
            warmups=max(call.warmups, COMPILED_WARMUPS), named=call.fn,
        )  # fmt: skip

    return _planned(world, call.compile_options, run)


def _as_written(world: World, call: Call) -> tuple[Phases, Captured]:
    """What the callable launches as it stands, where its file uses torch.compile itself."""

    def run(_: Compiler) -> Captured:
        return capture(
            world, call.fn, call.args, call.kwargs, phases=call.phases, optimizer=call.optimizer,
            grad=call.grad, stated=call.stated, root=call.root or module_of(call.fn),
            warmups=max(call.warmups, COMPILED_WARMUPS) if call.warmups else 0,
        )  # fmt: skip

    return _planned(world, {}, run)


def _planned(
    world: World, options: Mapping[str, Any], run: Callable[[Compiler], Captured]
) -> tuple[Phases, Captured]:
    """The plans of a run under torch.compile."""
    compiler, captured = _by_both_choices(world, options, run)
    return Phases(**{p.value: plan for p, plan in compiler.plans(captured).items()}), captured


def _by_both_choices(
    world: World, options: Mapping[str, Any], run: Callable[[Compiler], Result]
) -> tuple[Compiler, Result]:
    """A run under torch.compile; where Triton templates would be timed against a library, once more
    with the templates, which tells what they take in."""
    from kpredict.compiled.intervals import mark_optional
    from kpredict.compiled.run import compiling

    with compiling(world, options) as compiler:
        result = run(compiler)
    if compiler.timed.templates:
        try:
            with compiling(world, options, templates_win=True) as other:
                run(other)
        except Exception as error:
            compiler.remarks.append(f"what Triton templates take in is not known: {error}")
        else:
            mark_optional(compiler.regions, other.regions, other.timed.splitting)
    return compiler, result


def make_repeats(world: World, call: Call) -> tuple[Repeat, ...]:
    """The file's calls under one torch.compile: what each launches, and which compiles again."""
    if not call.more:
        return ()

    def run(compiler: Compiler) -> list[tuple[Captured, list[tuple[Phase, Recompile]]]]:
        fn = compiler.wrap(uncompiled(call.fn))
        made = []
        for again in call.more:
            before = len(compiler.heard.recompiles)
            captured = capture(
                world, fn, again.args, again.kwargs, phases=call.phases, grad=call.grad,
                stated=call.stated, root=call.root or module_of(call.fn),
            )  # fmt: skip
            made.append((captured, compiler.heard.recompiles[before:]))
        return made

    compiler, made = _by_both_choices(world, call.compile_options, run)
    found: list[Repeat] = []
    for again, (captured, compiler.heard.recompiles) in zip(call.more, made, strict=True):
        plans = compiler.plans(captured).values()
        said = next((r for plan in plans for r in plan.recompiles), None)
        recompile = replace(said, call=again.number, line=None) if said is not None else None
        kernels = Phases(*plans).kernels
        found.append(Repeat(again.number, again.inputs, kernels, again.line, recompile))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """An optimizer whose step is compiled."""

    step: Callable[[], Any]


def stepping(optimizer: Optimizer) -> Callable[[], Any]:
    """`lambda: optimizer.step()`, which is how a step is compiled; not from our own file, whose
    frames dynamo leaves alone."""
    made: Callable[[], Any] = eval(
        compile("lambda: optimizer.step()", "<compiled step>", "eval"), {"optimizer": optimizer}
    )
    return made


def uncompiled(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function or module that `torch.compile` was given, or `fn` itself."""
    if isinstance(fn, torch.nn.Module):
        inner = fn._modules.get("_orig_mod")
        return fn if inner is None else inner
    inner = getattr(fn, "_torchdynamo_orig_callable", None)
    return fn if inner is None else inner


COMPILED_WARMUPS = 2  # the first compiles, the second may recompile for what the first changed

_PREDICTORS: Mapping[Mode, Callable[[World, Call], tuple[Phases, Captured]]] = {
    Mode.EAGER: _eager,
    Mode.COMPILED: _compiled,
    Mode.AS_WRITTEN: _as_written,
}
