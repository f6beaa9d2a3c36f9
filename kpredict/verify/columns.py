"""Profiler events as columns of machine numbers: about 50 bytes an event, whatever its text.

In: event dicts. Out: a Recording of spans (operators, annotations, Python frames), host calls and
device events, in file order. Categories of every Kineto release and of ROCm are known here.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kpredict.model import Dim3, Kind

KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
_DEVICE = {
    "kernel": Kind.KERNEL, "Kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY, "Memcpy": Kind.MEMCPY, "memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET, "Memset": Kind.MEMSET, "memset": Kind.MEMSET,
}  # fmt: skip
_HOST_CALLS = {
    "cuda_runtime", "cuda_driver", "Runtime", "runtime", "hip_runtime", "hip_driver",
    "xpu_runtime", "xpu_driver", "privateuse1_runtime", "privateuse1_driver",
}  # fmt: skip
OP, NOTE, FRAME = 0, 1, 2  # a span is an operator, a user's annotation, or a Python frame
_SPANS = {
    "cpu_op": OP, "Operator": OP, "operator": OP, "user_annotation": NOTE, "python_function": FRAME,
}  # fmt: skip
_RECORDED = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
_NOBODYS = ("<built-in ", "torch/", "<frozen ", "<string>")  # frames that are not the user's


class Names:
    """Hashable values to small numbers and back."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []

    def add(self, value: Any) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self._values)
            self._values.append(value)
        return found

    def __getitem__(self, number: int) -> Any:
        return self._values[number]


def _small() -> array[int]:
    return array("i")


def _ids() -> array[int]:
    return array("q")


def _times() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Columns:
    """What spans, host calls and device events share; times in µs."""

    name: array[int] = field(default_factory=_small)
    place: array[int] = field(default_factory=_small)  # thread, or (device, stream)
    start: array[float] = field(default_factory=_times)
    duration: array[float] = field(default_factory=_times)

    def __len__(self) -> int:
        return len(self.name)

    def end(self, row: int) -> float:
        return self.start[row] + self.duration[row]


@dataclass(slots=True)
class SpanColumns(Columns):
    kind: array[int] = field(default_factory=lambda: array("b"))
    external: array[int] = field(default_factory=_ids)
    inputs: array[int] = field(default_factory=_small)  # -1: none recorded


@dataclass(slots=True)
class CallColumns(Columns):
    correlation: array[int] = field(default_factory=_ids)


@dataclass(slots=True)
class DeviceColumns(Columns):
    kind: array[int] = field(default_factory=lambda: array("b"))
    correlation: array[int] = field(default_factory=_ids)
    external: array[int] = field(default_factory=_ids)
    shape: array[int] = field(default_factory=_small)  # (grid, block)
    bytes: array[int] = field(default_factory=_ids)


class Recording:
    """Every complete event of a trace. `names`, `places`, `shapes`, `inputs` undo the numbering."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self.names = Names()
        self.places = Names()
        self.shapes = Names()
        self.inputs = Names()
        self.spans = SpanColumns()
        self.calls = CallColumns()
        self.device = DeviceColumns()
        self.backward: set[int] = set()  # spans that name the forward thread they belong to
        for event in events:
            if event.get("ph") == "X":
                args = event.get("args")
                self._add(event, args if isinstance(args, dict) else {})

    def _add(self, event: Mapping[str, Any], args: Mapping[str, Any]) -> None:
        category = event.get("cat")
        if not isinstance(category, str):  # torch.autograd.profiler without Kineto writes none
            category = "cpu_op" if event.get("pid") == "CPU functions" else ""
        if category in _SPANS:
            self._add_span(_SPANS[category], event, args)
        elif category in _HOST_CALLS:
            self._common(self.calls, event, self._thread(event))
            self.calls.correlation.append(_integer(args.get("correlation")))
        elif category in _DEVICE:
            self._add_device_event(_DEVICE[category], event, args)

    def _add_span(self, kind: int, event: Mapping[str, Any], args: Mapping[str, Any]) -> None:
        name = str(event.get("name", ""))
        if kind == FRAME and (name.startswith(_NOBODYS) or "/torch/" in name):
            return
        if _integer(args.get("Fwd thread id")) > 0:
            self.backward.add(len(self.spans))
        inputs = -1
        if kind == OP and args.get("Input Dims"):
            recorded = [args.get(column) for column in _RECORDED]
            inputs = self.inputs.add(json.dumps(recorded, separators=(",", ":")))
        self._common(self.spans, event, self._thread(event))
        self.spans.kind.append(kind)
        self.spans.external.append(_external(args))
        self.spans.inputs.append(inputs)

    def _add_device_event(
        self, kind: Kind, event: Mapping[str, Any], args: Mapping[str, Any]
    ) -> None:
        device = _integer(args.get("device", event.get("pid")))
        self._common(self.device, event, self.places.add((device, _integer(args.get("stream")))))
        self.device.kind.append(KINDS.index(kind))
        self.device.correlation.append(_integer(args.get("correlation")))
        self.device.external.append(_external(args))
        self.device.shape.append(
            self.shapes.add((_dim3(args.get("grid")), _dim3(args.get("block"))))
        )
        self.device.bytes.append(max(_integer(args.get("bytes")), 0))

    def _common(self, columns: Columns, event: Mapping[str, Any], place: int) -> None:
        columns.name.append(self.names.add(str(event.get("name", ""))))
        columns.place.append(place)
        columns.start.append(_microseconds(event.get("ts")))
        columns.duration.append(_microseconds(event.get("dur")))

    def _thread(self, event: Mapping[str, Any]) -> int:
        return self.places.add((str(event.get("pid")), str(event.get("tid"))))


def _external(args: Mapping[str, Any]) -> int:
    return _integer(args.get("External id", args.get("external id")))


def _microseconds(value: Any) -> float:
    """A time; what is no finite number counts as 0, since profilers write NaN too."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if number - number == 0 else 0.0


def _integer(value: Any) -> int:
    """A count or an id that fits 64 bits; -1 for anything else."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if -(1 << 63) <= number < 1 << 63 else -1


def _dim3(value: Any) -> Dim3 | None:
    if isinstance(value, list) and len(value) == 3:
        return (_integer(value[0]), _integer(value[1]), _integer(value[2]))
    return None
