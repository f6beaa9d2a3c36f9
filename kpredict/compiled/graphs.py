"""CUDA graphs: one graph launch that replays a region's kernels (mode "reduce-overhead").

Whether a region may become a CUDA graph is decided by Inductor's own checks; what they say against
it is heard. Where it does, its inputs that are not at a fixed address are first copied to one, by
one foreach copy; then one launch replays everything. A region that changes an input which is at no
fixed address runs without a graph (`torch._inductor.cudagraph_utils.check_for_mutation`).

Private API touched: `torch._inductor` compile_fx, output_code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakValueDictionary

import torch
from torch.utils._pytree import tree_leaves

from kpredict.compiled.patching import Patches
from kpredict.compiled.region import Copied, Ended, Replayed, Ungraphed


class Ears(Protocol):
    """The pretended GPU, which knows the recorder."""

    @property
    def listener(self) -> Any: ...


def graphs_stand_in(patches: Patches, mode: Ears, refused: Callable[[str], None]) -> None:
    """Regions that would be captured run under a mark instead; `refused` hears why one is not."""
    pool: WeakValueDictionary[int, Any] = WeakValueDictionary()
    count = iter(range(1 << 30))

    def cudagraphify(
        model: Callable[..., Any], static_input_idxs: Sequence[int] = (),
        mutated_input_idxs: Sequence[int] = (), **_: Any,
    ) -> Callable[..., Any]:  # fmt: skip
        static, mutated = frozenset(static_input_idxs), frozenset(mutated_input_idxs)
        return _replay(model, static, mutated, next(count), mode, pool)

    for module in ("output_code", "compile_fx"):
        patches.set(
            f"torch._inductor.{module}", "log_cudagraph_skip_and_bump_counter",
            lambda words: refused(f"no CUDA graph: {plain_words(words)}"),
        )  # fmt: skip
    patches.set("torch._inductor.compile_fx", "cudagraphify", cudagraphify)
    patches.set("torch._inductor.output_code", "maybe_handle_backward_generation", _nothing)
    patches.create("torch._C", "_cuda_cudaCachingAllocator_is_enabled", lambda: True)


def _replay(
    model: Callable[..., Any], static: frozenset[int], mutated: frozenset[int], number: int,
    mode: Ears, pool: Any,
) -> Callable[..., Any]:  # fmt: skip
    def run(inputs: list[Any]) -> Any:
        listener = mode.listener
        moving = {
            i: x
            for i, x in enumerate(inputs)
            if isinstance(x, torch.Tensor) and x.is_cuda and i not in static
            and x.untyped_storage()._cdata not in pool
        }  # fmt: skip
        if mutated & moving.keys():
            listener.mark(Ungraphed(MUTATED))
            return model(inputs)
        if moving:
            listener.mark(Copied(number))
            with listener.paused():
                fixed = [torch.empty_like(x) for x in moving.values()]
            torch._foreach_copy_(fixed, list(moving.values()))
            for i, copy in zip(moving, fixed, strict=True):
                inputs[i] = copy
        listener.mark(Replayed(number))
        result = model(inputs)
        listener.mark(Ended(number))
        for t in tree_leaves(result):  # what a graph wrote stays where it is
            if isinstance(t, torch.Tensor):
                pool[t.untyped_storage()._cdata] = t
        return result

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


MUTATED = "no CUDA graph: it changes an input that is not at a fixed address"


def plain_words(said: str) -> str:
    """Inductor's message without its lead-in and stack trace."""
    words = said.removeprefix("skipping cudagraphs due to ").partition(" Found from")[0]
    return " ".join(words.split())


def _nothing(*_: Any, **__: Any) -> None:
    return None
