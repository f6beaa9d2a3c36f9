"""Run a callable in the pretended world and keep its ops, phase by phase, in its steady state.

Conventions: inference is one call; training is forward, backward from the loss, optimizer step,
with gradients None before the backward. What is counted is the call after the warm-up ones, so
state made lazily (caches, optimizer moments) exists.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves

from kpredict.capture.convert import Converter
from kpredict.capture.recorder import Item, Recorder
from kpredict.capture.values import Values
from kpredict.capture.world import World
from kpredict.model import Assumption, KpredictError, Phase


class NoBackward(KpredictError):
    """Nothing that was returned needs gradients."""


class Optimizer(Protocol):
    """Anything with a `step` method, as `torch.optim.Optimizer` has."""

    def step(self) -> Any: ...


class Marks(Protocol):
    """Told which phase runs, and what in between is not the user's code."""

    phase: Phase

    def paused(self) -> contextlib.AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class Captured:
    """What each phase did, in stream order, and what had to be assumed to get there.

    Items are Ops; in a run of compiled code also the compiled regions, at their place. `result` is
    what the callable returned.
    """

    items: Mapping[Phase, tuple[Item, ...]]
    assumptions: tuple[Assumption, ...]
    names: Mapping[int, str]
    result: Any = None


def capture(
    world: World,
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    phases: Sequence[Phase] = (Phase.FORWARD,),
    optimizer: Optimizer | None = None,
    grad: bool | None = None,
    stated: Mapping[int | str, float] | None = None,
    warmups: int = 1,
    root: torch.nn.Module | None = None,
    named: Callable[..., Any] | None = None,
) -> Captured:
    """Run `fn(*args, **kwargs)` through `phases` and return the last of `warmups + 1` runs.

    `grad` False runs under no_grad, True with gradients, None as the caller's mode is. `stated`
    gives values for data-dependent reads by line or "*". `root` names modules in the record,
    `named` (default `fn`) is the callable whose parameters name the arrays.
    Raises NoBackward when a backward is asked for and nothing that is returned needs gradients.
    """
    values = Values(stated)
    recorder = Recorder(values, Converter(), root if root is not None else module_of(fn))
    _name_arrays(recorder.converter, named or fn, args, kwargs or {})
    with _listening(world, recorder), _grad(grad):
        for _ in range(warmups):
            with recorder.paused():
                iterate(recorder, fn, args, kwargs or {}, phases, optimizer)
        values.assumptions.clear()
        result = iterate(recorder, fn, args, kwargs or {}, phases, optimizer)
    items: dict[Phase, tuple[Item, ...]] = {p: tuple(recorder.items[p]) for p in phases}
    return Captured(items, tuple(values.assumptions), recorder.converter.names, result)


def iterate(
    marks: Marks, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
    phases: Sequence[Phase], optimizer: Optimizer | None,
) -> Any:  # fmt: skip
    """One run through the phases, with `marks` told of each; real and pretended GPUs share it.
    Gives what `fn` returned."""
    if Phase.BACKWARD in phases:
        leaves = tree_leaves((args, dict(kwargs)))
        owned = [p for m in leaves if isinstance(m, torch.nn.Module) for p in m.parameters()]
        for leaf in (*_parameters(fn), *owned, *leaves):
            if isinstance(leaf, torch.Tensor) and leaf.is_leaf:
                leaf.grad = None
    marks.phase = Phase.FORWARD
    result = fn(*args, **kwargs)
    if Phase.BACKWARD in phases:
        loss = _loss(marks, result)
        marks.phase = Phase.BACKWARD
        loss.backward()
    if Phase.STEP in phases and optimizer is not None:
        marks.phase = Phase.STEP
        optimizer.step()
    marks.phase = Phase.FORWARD
    return result


def _loss(marks: Marks, result: Any) -> torch.Tensor:
    """A returned scalar, else the sum of all outputs that need gradients (not recorded)."""
    outputs = [t for t in _tensors_of(result) if t.requires_grad]
    if not outputs:
        raise NoBackward(
            "Nothing it returns needs gradients, so there is no backward.",
            "Return a loss or an output that depends on parameters, or ask for forward only.",
        )
    if len(outputs) > 1 and outputs[0].numel() == 1:
        return outputs[0]
    if len(outputs) == 1 and outputs[0].numel() == 1:
        return outputs[0]
    with marks.paused():
        return sum((t.sum() for t in outputs[1:]), outputs[0].sum())


def _tensors_of(result: Any) -> list[torch.Tensor]:
    """Every tensor in nested containers, dataclasses and objects that hold tensors."""
    leaves: list[torch.Tensor] = []
    for leaf in tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            leaves.append(leaf)
        elif hasattr(leaf, "__dict__") and not isinstance(leaf, (type, torch.nn.Module)):
            leaves += [v for v in vars(leaf).values() if isinstance(v, torch.Tensor)]
    return leaves


def module_of(fn: Callable[..., Any]) -> torch.nn.Module | None:
    owner = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    return owner if isinstance(owner, torch.nn.Module) else None


def _parameters(fn: Callable[..., Any]) -> list[torch.Tensor]:
    module = module_of(fn)
    return list(module.parameters()) if module is not None else []


def _name_arrays(
    converter: Converter, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Give inputs and parameters the names a person knows them by."""
    with contextlib.suppress(TypeError, ValueError):
        import inspect

        target = fn.forward if isinstance(fn, torch.nn.Module) else fn
        bound = inspect.signature(target).bind(*args, **kwargs)
        for argument, value in bound.arguments.items():
            for name, tensor in _named(argument, value):
                converter.name(tensor, name)
    module = module_of(fn)
    if module is not None:
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            converter.name(tensor, name)


def _named(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """An argument's tensors, each by its path: `state.position`, `xs[0]`, `model.fc.bias`."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        for path, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield f"{name}.{path}", tensor
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named(f"{name}.{key}", inner)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _named(f"{name}[{i}]", inner)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _named(f"{name}.{field.name}", getattr(value, field.name))


@contextmanager
def _listening(world: World, recorder: Recorder) -> Iterator[None]:
    outer, world.mode.listener = world.mode.listener, recorder
    try:
        yield
    finally:
        world.mode.listener = outer


def _grad(enabled: bool | None) -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext() if enabled is None else torch.set_grad_enabled(enabled)
