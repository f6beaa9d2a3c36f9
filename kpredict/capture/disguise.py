"""Code that asks whether a tensor is fake hears no, as it would on a GPU.

Libraries take other ways for fake tensors than for real ones (transformers keeps an attention mask
that it would drop). Outside of torch and of this package the class they compare with therefore
has no instances.

Private API touched: `torch._subclasses`, `torch._subclasses.fake_tensor`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType

import torch
from torch._subclasses.fake_tensor import FakeTensor

_INSIDERS = ("torch", "kpredict")
_ASKED = (torch._subclasses, torch._subclasses.fake_tensor)


class NoTensor:
    """What outsiders get as `FakeTensor`: nothing is an instance of it."""


class _Disguised(ModuleType):
    @property
    def FakeTensor(self) -> type:
        return FakeTensor if _is_insider(sys._getframe(1)) else NoTensor


def _is_insider(asker: FrameType) -> bool:
    """Torch's own code that says the name. Dynamo, which asks by a name that it found in the user's
    code, and its guards hear what that code hears."""
    package = asker.f_globals.get("__name__", "").partition(".")[0]
    return package in _INSIDERS and "FakeTensor" in asker.f_code.co_names


@contextmanager
def undetected() -> Iterator[None]:
    """While entered, `torch._subclasses.FakeTensor` depends on who asks."""
    before = [module.__class__ for module in _ASKED]
    for module in _ASKED:
        module.__class__ = _Disguised
    try:
        yield
    finally:
        for module, kind in zip(_ASKED, before, strict=True):
            module.__class__ = kind
