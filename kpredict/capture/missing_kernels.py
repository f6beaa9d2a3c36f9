"""Shape functions that PyTorch lacks for CUDA-only ops: op → what its outputs look like.

A CPU build can run an op on fake tensors only through its Meta kernel. Each row here follows the
allocations of the op's CUDA host code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

META: dict[str, Callable[..., Any]] = {}
