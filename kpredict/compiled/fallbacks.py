"""Ops whose results nothing but their own kernel can tell: under dynamo they run on zeros.

On a GPU machine dynamo's fake tensors run such an op's CUDA kernel on zeros. Here its CPU kernel
does, and its results count as the GPU's.

Private API touched: `torch._subclasses.fake_tensor`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._mode_utils import no_dispatch

from kpredict.capture.values import cudnn_takes_ctc_loss
from kpredict.compiled.patching import Patches

_CUDNN, _MIOPEN = "aten::_use_cudnn_ctc_loss", "aten::_use_miopen_ctc_loss"


def fallbacks_on_cpu(patches: Patches) -> None:
    patches.wrap("torch._subclasses.fake_tensor", "run_fallback_kernel", _on_cpu)


def _on_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(mode: Any, func: Any, flat: Sequence[Any], spec: Any, error: RuntimeError) -> Any:
        gpu = any(mode.is_our_fake(x) and x.fake_device.type == "cuda" for x in flat)
        if not gpu:
            return original(mode, func, flat, spec, error)
        args, kwargs = pytree.tree_unflatten(list(flat), spec)
        name = func._schema.name
        if name in (_CUDNN, _MIOPEN):  # they have no CPU kernel, and look at types only
            return name == _CUDNN and cudnn_takes_ctc_loss(args)
        if torch.Tag.inplace_view in func.tags or func._schema.is_mutable:
            raise error
        try:
            with no_dispatch():
                zeros = [_zeros(x) if mode.is_our_fake(x) else x for x in flat]
                args, kwargs = pytree.tree_unflatten(zeros, spec)
                found = func(*args, **kwargs)
        except Exception:
            raise error from None
        with mode:
            return pytree.tree_map_only(torch.Tensor, _on_gpu, found)

    return run


def _zeros(fake: torch.Tensor) -> torch.Tensor:
    return torch.zeros(fake.shape, dtype=fake.dtype, device="cpu")


def _on_gpu(found: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(found.shape, found.stride(), dtype=found.dtype, device="cuda")
