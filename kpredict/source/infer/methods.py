"""The methods of an Array that torch writes by hand in C++ (`to`, `item`, `size`, `reshape`, …).
All others are ATen ops or opened in the prelude.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kpredict.source.infer.arrays import fold
from kpredict.source.infer.shapes.pointwise import category, channels_last
from kpredict.source.infer.shapes.registry import fresh
from kpredict.source.infer.shapes.views import infer_size, view_stride
from kpredict.source.infer.subscripts import Subscripts
from kpredict.source.infer.trace import Fork
from kpredict.source.infer.values import UNKNOWN, Array, Device, DType, Layout, Value

_CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
_QUIET = frozenset("retain_grad share_memory_ pin_memory_ record_stream rename".split())


class Methods(Subscripts):
    def array_method(
        self, a: Array, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        """Call a method that is no ATen op. Returns NotImplemented for all others."""
        if name in _CASTS:
            return self.cast(a, _CASTS[name])
        plain = self._metadata(a, name, args)
        if plain is not NotImplemented:
            return plain
        if name in ("to", "cuda", "cpu", "type_as", "type", "contiguous"):
            return self._moved(a, name, args, kwargs)
        if name in ("item", "tolist", "numpy", "__bool__", "__float__", "__int__"):
            return self.read(a, name)
        if name == "backward":
            given = dict(zip(("gradient", "retain_graph", "create_graph"), args, strict=False))
            given.update(kwargs)
            self.backward(a, given.get("gradient"), given.get("create_graph"))
            return None
        if name == "requires_grad_":
            return replace(a, requires_grad=not args or args[0] is not False)
        if name in ("register_hook", "register_post_accumulate_grad_hook"):
            self.hooked = True
            return UNKNOWN
        if name in _QUIET:
            return a
        if name in ("reshape", "reshape_as", "view_as", "expand_as", "flatten"):
            return self._reshaped(a, name, args, kwargs)
        if name == "__getitem__":
            return self.subscript(a, args[0])
        if name == "__setitem__":
            return self.store(a, args[0], args[1])
        if name == "where" and args:
            return self.torch_call("where", (args[0], a, *args[1:]), kwargs)
        if name in ("apply_", "map_"):
            self.missing(name)
            return a
        return NotImplemented

    def _metadata(self, a: Array, name: str, args: Sequence[Value]) -> Value:
        def unless_unknown(v: Value) -> Value:
            return UNKNOWN if v is None else v

        if name == "size":
            shape = self.array_attribute(a, "shape")
            return shape if not args else fold(operator.getitem, shape, args[0])
        if name in ("dim", "ndimension"):
            return unless_unknown(a.ndim)
        if name in ("numel", "nelement"):
            return unless_unknown(a.numel)
        if name == "element_size":
            return self.array_attribute(a, "itemsize")
        if name == "stride":
            return UNKNOWN if a.stride is None else a.stride[args[0]] if args else a.stride
        if name == "is_contiguous":
            return UNKNOWN if args else unless_unknown(a.is_contiguous)
        if name in ("is_floating_point", "is_complex"):
            wanted = 2 if name == "is_floating_point" else 3
            return UNKNOWN if a.dtype is None else category(a.dtype) == wanted
        if name in ("data_ptr", "storage_offset", "untyped_storage", "get_device", "__hash__"):
            return UNKNOWN
        if name == "__len__":
            return UNKNOWN if not a.shape or a.shape[0] is None else a.shape[0]
        return NotImplemented

    def read(self, a: Array, how: str) -> Value:
        """The host reads the value: it waits for the device."""
        if a.device == "cuda":
            if how == "tolist" and a.shape != ():
                self.aten("_to_copy", a, device="cpu")
            elif how != "numpy":
                self.aten("_local_scalar_dense", a)
            self.sync(how, a)
        number: Value = UNKNOWN
        if a.device == "cuda" and self.assume is not None:  # the host knows what it holds itself
            whole = a.dtype is not None and category(a.dtype) < 2
            number = int(self.assume) if whole or how == "__int__" else float(self.assume)
        if how in ("item", "__float__", "__int__"):
            return number
        if how == "tolist" and a.sizes is not None and 0 < len(a.sizes) < 3:
            return _nested(number, a.sizes) if a.numel and a.numel < 4096 else UNKNOWN
        return UNKNOWN

    def cast(self, a: Array, dtype: str | None) -> Array:
        """`a.to(dtype)`: itself when nothing changes."""
        if dtype is not None and a.dtype == dtype:
            return a
        out: Array = self.aten("_to_copy", a, dtype=UNKNOWN if dtype is None else DType(dtype))
        return out

    def _moved(
        self, a: Array, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Array:
        dtype: Value = None
        device: Value = None
        fmt: Value = kwargs.get("memory_format")
        if name in ("cuda", "cpu"):
            device = name
        elif name == "contiguous":
            fmt = fmt or (args[0] if args else Layout("contiguous_format"))
        else:
            for v in (*args[: 1 if name != "to" else 2], kwargs.get("dtype"), kwargs.get("device"),
                      kwargs.get("other")):  # fmt: skip
                if isinstance(v, DType):
                    dtype = v.name
                elif isinstance(v, Array):
                    dtype = UNKNOWN if v.dtype is None else v.dtype
                    device = v.device if name == "to" else None
                elif isinstance(v, Device):
                    device = v.type
                elif isinstance(v, str):
                    device = v.split(":")[0] if name == "to" else None
                elif isinstance(v, int) and not isinstance(v, bool):
                    device = "cuda"
                elif v is UNKNOWN and name == "to":
                    return self._perhaps_moved(a)
        changes = (device is not None and device != a.device) or dtype is UNKNOWN or (
            dtype is not None and dtype != a.dtype)  # fmt: skip
        if isinstance(fmt, Layout) and fmt.name in ("channels_last", "contiguous_format"):
            reordered = self._reordered(a, fmt.name)
            if reordered is None:
                return self._perhaps_copied(a, fmt.name)
            changes = changes or reordered
        if not changes and kwargs.get("copy") is not True:
            return a
        keys: dict[str, Value] = {}
        if dtype is not None:
            keys["dtype"] = UNKNOWN if dtype is UNKNOWN else DType(dtype)
        if device is not None:
            keys["device"] = device
        if isinstance(fmt, Layout):
            keys["memory_format"] = fmt
        if keys.keys() == {"memory_format"}:
            out: Array = self.aten("clone", a, memory_format=fmt)
            return out
        out = self.aten("_to_copy", a, **keys)
        if device == "cpu" and a.device == "cuda":
            self.sync("cpu", a)
        return out

    @staticmethod
    def _reordered(a: Array, fmt: str) -> bool | None:
        """Whether `a` is in another memory order than `fmt`; None when unknown."""
        if a.sizes is None or a.stride is None:
            return None
        if fmt == "contiguous_format":
            return not a.is_contiguous
        return len(a.sizes) == 4 and a.stride != channels_last(a.sizes)

    def _perhaps_moved(self, a: Array) -> Array:
        """`.to(something unknown)`: a copy, or nothing."""
        return self.perhaps(replace(a, dtype=None), lambda: self.aten("_to_copy", a, dtype=UNKNOWN))

    def _perhaps_copied(self, a: Array, fmt: str) -> Array:
        return self.perhaps(a, lambda: self.aten("clone", a, memory_format=Layout(fmt)))

    def perhaps(self, otherwise: Array, copy: Callable[[], Array]) -> Array:
        """Both ways: what `copy` records, or nothing."""
        with self.recording() as inside:
            out = copy()
        self.record(Fork((tuple(inside), ())))
        return replace(otherwise, storage=out.storage, stride=None)

    def _reshaped(
        self, a: Array, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Value:
        if name == "expand_as" and isinstance(args[0], Array):
            return self.aten("expand", a, self.array_attribute(args[0], "shape"))
        wanted: Value
        if name in ("reshape_as", "view_as"):
            wanted = (
                self.array_attribute(args[0], "shape") if isinstance(args[0], Array) else UNKNOWN
            )
        elif name == "flatten":
            wanted = _flattened(a, *args, **kwargs)
            if wanted is not UNKNOWN and wanted == a.shape:
                return a
        else:
            wanted = args[0] if len(args) == 1 and not isinstance(args[0], int) else tuple(args)
            wanted = kwargs.get("shape", wanted)
        if name == "view_as":
            return self.aten("view", a, wanted)
        if wanted is UNKNOWN or a.sizes is None or a.stride is None or UNKNOWN in wanted:
            return self._perhaps_reshaped(a, wanted)
        try:
            sizes = infer_size(list(wanted), a.numel)
        except Exception:
            return fresh(None, a.dtype, a.device)
        stride = view_stride(a.sizes, a.stride, sizes)  # type: ignore[arg-type]
        if stride is not None:
            return self.aten("view", a, tuple(sizes))
        copied = self.aten("clone", a, memory_format=Layout("contiguous_format"))
        return self.aten("_unsafe_view", copied, tuple(sizes))

    def _perhaps_reshaped(self, a: Array, wanted: Value) -> Array:
        viewed = self.aten("view", a, wanted if wanted is not UNKNOWN else (UNKNOWN,))
        if wanted is UNKNOWN and isinstance(viewed, Array):
            viewed = replace(viewed, shape=None, stride=None)
        if not isinstance(viewed, Array):
            viewed = fresh(None, a.dtype, a.device)
        if a.is_contiguous:
            return viewed
        return self.perhaps(
            viewed, lambda: self.aten("clone", a, memory_format=Layout("contiguous_format"))
        )


def _nested(item: Value, sizes: Sequence[int]) -> Value:
    """A list of lists of one item, as `tolist` gives it."""
    if not sizes:
        return item
    return [_nested(item, sizes[1:]) for _ in range(sizes[0])]


def _flattened(a: Array, start_dim: Value = 0, end_dim: Value = -1) -> Value:
    if a.shape is None or not isinstance(start_dim, int) or not isinstance(end_dim, int):
        return UNKNOWN
    n = len(a.shape)
    if n == 0:
        return (1,)
    start, end = start_dim % n, end_dim % n
    middle: Value = 1
    for d in a.shape[start : end + 1]:
        middle = UNKNOWN if d is None or middle is UNKNOWN else middle * d
    outer = [UNKNOWN if d is None else d for d in a.shape]
    return (*outer[:start], middle, *outer[end + 1 :])
