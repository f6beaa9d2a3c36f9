"""Nested tensors: jagged ones are wrappers in Python and work; strided ones live in C++, out of
reach, which is said where they are made.

Private API touched: `torch._C._nested`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from kpredict.model import KpredictError


@contextmanager
def jagged_only() -> Iterator[None]:
    """While entered, a strided nested tensor on the GPU is refused with the way out."""
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

    with mock.patch.object(torch._C._nested, "nested_tensor", nested_tensor):  # type: ignore[attr-defined]
        yield
