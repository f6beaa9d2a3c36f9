"""Load what an analysis needs in one go: before user code is confined, the collector at bay.

Loading torch makes a million objects that stay. Python's collector would look through them time and
again: a quarter of what a small analysis costs. An analysis ends soon and holds no data, so garbage
in cycles is collected seldom.
"""

from __future__ import annotations

import gc
import importlib
import os
from contextlib import suppress
from functools import cache

_ALWAYS = (
    "torch",
    "torch._dynamo",  # torch's fake tensors load it
    "kpredict.session.answer",
    "kpredict.session.script",
)
_COMPILED = ("torch._inductor.compile_fx", "kpredict.compiled.run")
_SELDOM = (50_000, 20, 50)  # new objects, and collections of each younger generation


def collect_seldom() -> None:
    """From now on the collector runs after some 50,000 new objects instead of 700."""
    gc.set_threshold(*_SELDOM)


def load_stages(*, compiled: bool, patterns: bool = False) -> None:
    """Import torch and our stages; with `compiled` also Inductor, without its processes; with
    `patterns` let Inductor prepare for its first graph. Done once; no thread is started.

    Raises ImportError where there is no torch or it is broken.
    """
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # it starts workers when it is imported
    for name in _ALWAYS:
        importlib.import_module(name)
    if compiled:
        with suppress(ImportError):  # said by the compiled plan, when it is made
            for name in _COMPILED:
                importlib.import_module(name)
    importlib.import_module("kpredict.eager.registry").rules()
    if patterns:
        _register_patterns()
    gc.freeze()


@cache
def _register_patterns() -> None:
    from kpredict.capture.world import pretend_cuda
    from kpredict.compiled.inductor import register_patterns

    with pretend_cuda() as world:
        register_patterns(world)
