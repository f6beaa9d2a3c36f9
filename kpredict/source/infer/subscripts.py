"""`a[index]` and `a[index] = value` of an Array: views as far as they go, then `index`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kpredict.source.infer.arrays import Arrays
from kpredict.source.infer.shapes.pointwise import category
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.shapes.views import view
from kpredict.source.infer.trace import Step
from kpredict.source.infer.values import UNKNOWN, Array, Value


class Subscripts(Arrays):
    def read(self, a: Array, how: str) -> Value:
        raise NotImplementedError

    def subscript(self, a: Array, index: Value) -> Value:
        """`a[index]`, by views as far as they go, then `index` for what is left."""
        viewed, rest = self._views(a, index)
        if any(r is not None for r in rest):
            self._heed_masks(rest)
            return self.aten("index", viewed, tuple(rest))
        return viewed

    def store(self, a: Array, index: Value, value: Value) -> None:
        """`a[index] = value`."""
        viewed, rest = self._views(a, index)
        if any(r is not None for r in rest):
            if isinstance(value, Array):
                self._heed_masks(rest)
            else:
                value = fresh((), viewed.dtype, "cpu")
            self.aten("index_put_", viewed, tuple(rest), value)
        elif viewed.shape == () and not isinstance(value, Array) and a.device == "cuda":
            self.aten("copy_", viewed, fresh((), viewed.dtype, "cpu"))  # shapes agree: no fill
        elif isinstance(value, Array) and (value.device == "cuda" or value.shape != ()):
            if value.sizes is not None and viewed.sizes is not None:
                extra = len(value.sizes) - len(viewed.sizes)
                if extra > 0:
                    value = view(value, value.sizes[extra:], value.stride and value.stride[extra:])
            self.aten("copy_", viewed, value)
        else:
            self.aten("fill_", viewed, value if isinstance(value, (int, float, bool)) else 0)

    def _heed_masks(self, rest: Sequence[Array | None]) -> None:
        """A boolean index is counted on the GPU, and the host waits for the count."""
        for i in rest:
            if i is not None and i.dtype == "bool" and i.device == "cuda":
                self.sync("boolean index", i)

    def _views(self, a: Array, index: Value) -> tuple[Array, list[Array | None]]:
        parts = list(index) if isinstance(index, tuple) else [index]
        taken = sum(_dims_taken(p) for p in parts)
        if Ellipsis in [p for p in parts if not isinstance(p, Array)]:
            if a.shape is None:
                return self._unknown_view(a, parts)
            at = next(i for i, p in enumerate(parts) if p is Ellipsis)
            parts[at : at + 1] = [slice(None)] * max(len(a.shape) - taken, 0)
        if a.shape is None or any(p is UNKNOWN for p in parts):
            return self._unknown_view(a, parts)
        out, dim = a, 0
        rest: list[Array | None] = []
        for p in parts:
            if p is None or isinstance(p, bool):
                out = self.aten("unsqueeze", out, dim)
                if isinstance(p, bool):
                    rest += [None] * (dim - len(rest)) + [fresh((1,), "bool", a.device)]
                dim += 1
            elif isinstance(p, int):
                out = self.aten("select", out, dim, p)
            elif _is_number(p):  # the host reads it, as `int(p)` would
                at_ = self.read(p, "item")
                out = self.aten("select", out, dim, at_ if isinstance(at_, int) else 0)
            elif isinstance(p, slice):
                if (p.start, p.stop, p.step) != (None, None, None):
                    out = self.aten("slice", out, dim, p.start, p.stop, p.step or 1)
                dim += 1
            else:
                i = self._index_array(p, a.device)
                width = len(i.shape) if i.shape is not None and i.dtype == "bool" else 1
                rest += [None] * (dim - len(rest)) + [i]
                dim += width
        return out, rest

    def _index_array(self, p: Value, device: str) -> Array:
        if isinstance(p, Array):
            return p
        if isinstance(p, (list, tuple, range)):
            i = fresh((len(p),), "int64", "cpu")
            return i if device == "cpu" else self.aten("_to_copy", i, device="cuda")
        return fresh(None, "int64", device)

    def _unknown_view(self, a: Array, parts: list[Value]) -> tuple[Array, list[Array | None]]:
        """Some part is unknown: a view unless an array, or something that may be one, is inside."""
        shape = None
        arrays = [p for p in parts if isinstance(p, (Array, list))]
        if not arrays and a.shape is not None and Ellipsis not in parts and all(
            isinstance(p, slice) or p is None for p in parts
        ):  # fmt: skip
            shape = (*(1 if p is None else None for p in parts),
                     *a.shape[sum(p is not None for p in parts) :])  # fmt: skip
        out = view(a, (), None)
        out = replace(out, shape=shape, stride=None)
        if not arrays:
            args = {"self": a, "dim": 0, "index": UNKNOWN}
            self.record(Step("aten.select.int", args, (out,), self.here, tags=frozenset({"view"})))
        return out, [self._index_array(p, a.device) for p in arrays]


def _is_number(p: Value) -> bool:
    """A tensor of one integer and no dims, as in `x[best]`."""
    return (
        isinstance(p, Array)
        and p.shape == ()
        and p.dtype not in (None, "bool", "uint8")
        and category(p.dtype or "") < 2
    )


def _dims_taken(p: Value) -> int:
    if p is None or p is Ellipsis or isinstance(p, bool):
        return 0
    if isinstance(p, Array) and p.dtype == "bool" and p.shape is not None:
        return len(p.shape)
    return 1
