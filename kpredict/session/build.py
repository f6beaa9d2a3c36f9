"""InputSpec → tensors and values, in whatever world is entered: pretended or a real GPU."""

from __future__ import annotations

from typing import Any

import torch

from kpredict.model import KpredictError
from kpredict.source.inputs import DictSpec, InputSpec, ListSpec, TensorSpec, ValueSpec


def build(spec: InputSpec) -> Any:
    """The value a spec describes. Its sizes must be numbers."""
    match spec:
        case TensorSpec():
            return _tensor(spec)
        case ListSpec(items, is_tuple):
            values = [build(s) for s in items]
            return tuple(values) if is_tuple else values
        case DictSpec(items):
            return {key: build(s) for key, s in items}
        case ValueSpec(value):
            return value


def _tensor(spec: TensorSpec) -> torch.Tensor:
    shape = [s for s in spec.shape if isinstance(s, int)]
    if len(shape) != len(spec.shape):
        raise KpredictError(f"The sizes of {spec} are not all known.", "Give --dim NAME=N.")
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if spec.stride is not None:
        made = torch.empty_strided(shape, spec.stride, dtype=dtype, device=spec.device)
    elif (dtype.is_floating_point and dtype.itemsize > 1) or dtype.is_complex:
        made = torch.randn(shape, dtype=dtype, device=spec.device)
    elif dtype.is_floating_point:
        made = torch.randn(shape, device=spec.device).to(dtype)
    else:
        made = torch.randint(0, spec.high or 2, shape, device=spec.device).to(dtype)
    if spec.channels_last:
        form = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        made = made.contiguous(memory_format=form)
    if spec.pinned:
        made = made.pin_memory()
    return made.requires_grad_() if spec.grad else made


def describe(value: Any) -> str:
    """A value as an input spec would write it: what the report says an input was."""
    match value:
        case torch.Tensor():
            dtype = str(value.dtype).removeprefix("torch.")
            stride: tuple[int, ...] | None = tuple(int(s) for s in value.stride())
            if value.is_contiguous():
                stride = None
            device = "cpu" if value.device.type == "cpu" else "cuda"
            shape = tuple(int(s) for s in value.shape)
            return str(TensorSpec(dtype, shape, stride, device, value.requires_grad))
        case list() | tuple():
            inside = ", ".join(describe(v) for v in value)
            return f"[{inside}]" if isinstance(value, list) else f"({inside})"
        case dict():
            return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in value.items()) + "}"
        case bool() | int() | float() | str() | None:
            return repr(value)
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        inside = ", ".join(f"{name}: {describe(getattr(value, name))}" for name in fields)
        return f"{type(value).__name__}({inside})"
    return type(value).__name__
