"""A request for another size: of a named dimension, or of an input and those shaped like it.

Used by `show --sweep` and `verify --sweep`, so that both mean the same sizes. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kpredict.model import KpredictError
from kpredict.request import Request
from kpredict.source.inputs import DictSpec, InputSpec, ListSpec, TensorSpec, parse_input


def with_dim(request: Request, name: str, size: int) -> Request:
    """The same with a named dimension of that size."""
    return replace(request, dims={**request.dims, name: size})


def tensor_inputs(inputs: Sequence[str]) -> list[str]:
    """Names of the tensors among an entry's inputs, as a report describes them."""
    return [name for name, spec in _specs(inputs).items() if isinstance(spec, TensorSpec)]


def with_elements(
    request: Request, entry: str, inputs: Sequence[str], name: str, n: int
) -> Request:
    """The request for one entry whose input `name` has so many elements: its first size changes,
    and that of every input of the same shape. `inputs` are the entry's, as a report has them."""
    specs = _specs(inputs)
    swept = specs.get(name)
    if not isinstance(swept, TensorSpec):
        known = ", ".join(tensor_inputs(inputs))
        raise KpredictError(
            f"{entry} has no tensor input and no --dim called {name}.", f"Sweep one of: {known}."
        )
    changed = [
        f"{key}={spec}"
        for key, old in specs.items()
        if (spec := _resized(old, swept.shape, n)) != old
    ]
    return replace(request, names=(entry,), inputs=(*request.inputs, *changed))


def _specs(inputs: Sequence[str]) -> Mapping[str, InputSpec]:
    """What can be written as an input; objects of the user's own are left as they are."""
    found: dict[str, InputSpec] = {}
    for text in inputs:
        try:
            name, spec = parse_input(text)
        except KpredictError:
            continue
        found[name] = spec
    return found


def _resized(spec: InputSpec, shape: tuple[int | str, ...], n: int) -> InputSpec:
    match spec:
        case TensorSpec() if spec.shape == shape and shape:
            rest = 1
            for extent in shape[1:]:
                rest *= int(extent)
            return replace(spec, shape=(max(n // max(rest, 1), 1), *shape[1:]), stride=None)
        case ListSpec(items, is_tuple):
            return ListSpec(tuple(_resized(i, shape, n) for i in items), is_tuple)
        case DictSpec(items):
            return DictSpec(tuple((k, _resized(v, shape, n)) for k, v in items))
    return spec
