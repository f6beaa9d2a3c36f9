"""Nested tensors: jagged ones are wrappers in Python and work; strided ones live in C++, out of
reach, which is said where they are made.

Private API touched: `torch._C._nested`, `torch.nested._internal.sdpa`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from kpredict.model import KpredictError, Target

_HALF = (torch.float16, torch.bfloat16)
Gate = Callable[..., bool]


@contextmanager
def as_on_gpu(target: Target) -> Iterator[None]:
    """While entered, a strided nested tensor on the GPU is refused with the way out, and attention
    over jagged ones may take the fused back ends that a CPU build does not have."""
    from torch.nested._internal import sdpa

    make = torch._C._nested.nested_tensor  # type: ignore[attr-defined]

    def nested_tensor(tensors: Any, *, device: Any = None, **more: Any) -> Any:
        places = {torch.device(device).type} if device is not None else {"cpu"}
        places |= {t.device.type for t in tensors if isinstance(t, torch.Tensor)}
        if "cuda" in places:
            raise KpredictError(
                "A nested tensor of the strided layout cannot be pretended.",
                "Make it with layout=torch.jagged.",
            )
        return make(tensors, device=device, **more)

    gates = {
        "can_use_flash_attention": _gate(torch._C._get_flash_sdp_enabled, _HALF, target, 80),
        "can_use_efficient_attention": _gate(
            torch._C._get_mem_efficient_sdp_enabled, (torch.float32, *_HALF), target, 50
        ),
    }
    with ExitStack() as stack:
        stack.enter_context(
            mock.patch.object(torch._C._nested, "nested_tensor", nested_tensor)  # type: ignore[attr-defined]
        )
        for name, gate in gates.items():
            stack.enter_context(mock.patch.object(sdpa, name, gate))
        yield


def _gate(
    is_on: Callable[[], bool], dtypes: tuple[torch.dtype, ...], target: Target, least: int
) -> Gate:
    """What C++ asks besides the shapes (native/transformers/cuda/sdp_utils.cpp, 2.6.0)."""

    def can_use(params: Any, debug: bool = False) -> bool:
        dtype = params.query.dtype
        return (
            is_on()
            and params.attn_mask is None
            and dtype in dtypes
            and target.sm >= (80 if dtype is torch.bfloat16 else least)
        )

    return can_use
