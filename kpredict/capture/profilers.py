"""Profilers and CUDA graphs in user code: nothing is measured, a replay launches again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from kpredict.capture.mode import PretendGpu
from kpredict.capture.recorder import Item, Recorder


class Profile:
    """`torch.profiler.profile` without measurements: code that prints its tables runs on."""

    profiler = None

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *_: object) -> None: ...
    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def step(self) -> None: ...
    def export_chrome_trace(self, path: str) -> None: ...
    def export_stacks(self, *_: Any) -> None: ...
    def add_metadata(self, *_: Any) -> None: ...
    def add_metadata_json(self, *_: Any) -> None: ...
    def events(self) -> list[Any]:
        return []

    def key_averages(self, *_: Any, **__: Any) -> Profile:
        return self

    def total_average(self) -> Profile:
        return self

    def table(self, *_: Any, **__: Any) -> str:
        return "kpredict: nothing was measured"


class Graph:
    """`torch.cuda.CUDAGraph`: capturing records what would be launched, replaying launches it."""

    _mode: PretendGpu  # set by the subclass made for a world

    def __init__(self, *_: Any, **__: Any) -> None:
        self._items: list[Item] = []
        self._outer: Any = None

    def capture_begin(self, *_: Any, **__: Any) -> None:
        self._outer = self._mode.listener
        if isinstance(self._outer, Recorder):
            self._mode.listener = Recorder(self._outer.values, self._outer.converter)

    def capture_end(self) -> None:
        if isinstance(self._mode.listener, Recorder):
            self._items = [i for items in self._mode.listener.items.values() for i in items]
        self._mode.listener = self._outer

    def replay(self) -> None:
        listener = self._mode.listener
        if isinstance(listener, Recorder):
            for item in self._items:
                listener.mark(item)

    def reset(self) -> None:
        self._items = []

    def pool(self) -> tuple[int, int]:
        return (0, 0)

    def debug_dump(self, path: str) -> None: ...
    def enable_debug_mode(self) -> None: ...


class Capturing:
    """`torch.cuda.graph(graph)`: what runs under it is recorded, not launched."""

    def __init__(self, cuda_graph: Graph, *_: Any, **__: Any) -> None:
        self._graph = cuda_graph

    def __enter__(self) -> None:
        self._graph.capture_begin()

    def __exit__(self, *_: object) -> None:
        self._graph.capture_end()


def _graphed(callables: Any, *_: Any, **__: Any) -> Any:
    """`make_graphed_callables`: the launches are those of the callables themselves."""
    return callables


def _traced(function: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
    """`torch.jit.trace` runs the function as it is: fakes have no data to trace with."""
    return function


@contextmanager
def unmeasured(mode: PretendGpu) -> Iterator[None]:
    """Install the stand-ins."""
    with ExitStack() as stack:
        for holder, name, stand_in in (
            (torch.profiler, "profile", Profile),
            (torch.autograd.profiler, "profile", Profile),
            (torch.autograd.profiler, "emit_nvtx", lambda *_, **__: contextlib.nullcontext()),
            (torch.cuda, "CUDAGraph", type("CUDAGraph", (Graph,), {"_mode": mode})),
            (torch.cuda, "graph", Capturing),
            (torch.cuda, "make_graphed_callables", _graphed),
            (torch.jit, "trace", _traced),
        ):
            stack.enter_context(mock.patch.object(holder, name, stand_in))
        yield
