"""The gradient of a view that was written in place: on a GPU one strided copy.

Once a view of a whole array has been written, autograd gives it a new gradient function. For plain
tensors that is AsStridedBackward0: zeros as large as the array, and a copy of the gradient into
them. Fake tensors, being a subclass, replay the view instead, whose gradient launches nothing
(VariableHooks::grad_fn in torch/csrc/autograd/variable.cpp, as_strided_backward in
FunctionsManual.cpp, 2.6.0). Views of a part cost the same either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

REPLAYED = {
    aten.view.default, aten._unsafe_view.default, aten.clone.default, aten.t.default,
    aten.transpose.int, aten.permute.default, aten.unsqueeze.default, aten.squeeze.default,
    aten.squeeze.dim, aten.squeeze.dims, aten.alias.default,
}  # fmt: skip
_NODES = frozenset(
    f"{name}Backward{n}"
    for name, n in (
        ("View", 0), ("UnsafeView", 0), ("ReshapeAlias", 0), ("T", 0), ("Transpose", 0),
        ("Permute", 0), ("Unsqueeze", 0), ("Squeeze", 0), ("Squeeze", 1), ("Squeeze", 2),
        ("Alias", 0),
    )
)  # fmt: skip


_WHOLE = "kpredict_whole"  # in a node's metadata: shape and strides of the array written whole


class Rebased:
    """Marks the nodes of arrays that were written through a view of all of them."""

    def __init__(self) -> None:
        self._written: list[torch.Tensor] = []  # their nodes come after the op that is heard
        self._done: int | None = None  # the node that was stood in for last

    def wrote(self, func: OpOverload, args: Sequence[Any]) -> None:
        """Told of every op; keeps the writes through a view of a whole array."""
        for array in self._written:
            node: Any = array.grad_fn
            if node is not None and node.name().endswith("CopySlices"):
                node.metadata[_WHOLE] = tuple(array.shape), array.stride()
        self._written.clear()
        if not func._schema.is_mutable or not args or not isinstance(args[0], torch.Tensor):
            return
        view, base = args[0], args[0]._base
        if base is None or torch._C._current_autograd_node() is not None:
            return
        if view.numel() == base.numel():
            self._written.append(base)

    def stand_in(self, args: Sequence[Any], result: Any, copied: bool) -> Any:
        """The result on a GPU of one of `REPLAYED` in the gradient of a replayed view, after
        calling the ops of a GPU; NotImplemented in other gradients. `copied`: it is a clone, which
        a GPU does not make."""
        node: Any = torch._C._current_autograd_node()
        if node is None or node.name() not in _NODES or not node.next_functions:
            return NotImplemented
        after = node.next_functions[0][0]
        base = after.metadata.get(_WHOLE) if after is not None else None
        if base is None:
            return NotImplemented
        if self._done == node._sequence_nr():
            return result
        self._done = node._sequence_nr()
        gradient = args[0] if copied else result
        zeros = gradient.new_zeros(gradient.numel())
        whole = zeros.view(gradient.shape)
        if tuple(gradient.shape) == base[0]:
            whole = zeros.as_strided(*base)
        whole.copy_(gradient)
        return whole
