"""Jagged nested tensors to padded arrays and back. All else they do, they do to their values.

Read: aten/src/ATen/native/nested/cuda/NestedTensorTransformerFunctions.cu of release 2.6.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpredict.eager.calling import Host
from kpredict.eager.copying import compact, read_by_host
from kpredict.eager.launches import kernel, workspace
from kpredict.eager.registry import rule
from kpredict.model import Dim3, Launch, Op, Target, Tensor

_SOURCE = "native/nested/cuda/NestedTensorTransformerFunctions.cu; 2.6.0"
_WARP, _ROWS = 32, 32
_SEARCH_BLOCK, _TILE = 1024, 16


def _block(width: int) -> Dim3:
    return (_WARP if width >= _WARP // 2 else width, _ROWS, 1)


@rule("aten._jagged_to_padded_dense_forward", source=_SOURCE)
def to_padded(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel that walks down the offsets for each row of the result."""
    values, out = op["values"], op.out
    if out.numel == 0:
        return []
    host = Host(target)
    offsets = _dense(host, op["offsets"])
    width = out.shape[-1] if values.ndim > 1 else 1
    grid = (-(-out.numel // width // _ROWS), 1, 1)
    host.add([kernel("jagged_dense_elementwise_dense_output_kernel_", [values, *offsets], [out],
                     grid=grid, block=_block(width), because="rows, or padding")])  # fmt: skip
    return host.launches


@rule("aten._padded_dense_to_jagged_forward", source=_SOURCE)
def to_jagged(op: Op, target: Target) -> Iterable[Launch]:
    """One kernel; for rows of half numbers that are whole vectors one that searches each row's
    place and one that gathers. Without a total length the host reads the largest offset."""
    host, dense, out = Host(target), op["dense"], op.out
    offsets = op["offsets"]
    if op.get("total_L") is None:
        found = host.call("aten.max.default", workspace(1, offsets[-1].dtype), self=offsets[-1])
        host.add(read_by_host(found))
    if dense.numel == 0 or out.numel == 0:
        return host.launches
    rows, width = out.shape[0], out.shape[-1]
    if len(offsets) == 1 and _in_vectors(dense):
        places = [workspace(rows, "int32") for _ in range(2)]
        name = "jagged_dense_dense_elementwise_jagged_output_opt_{}_kernel_"
        grid = (-(-rows // _SEARCH_BLOCK), 1, 1)
        host.add(
            [
                kernel(
                    name.format("search"),
                    offsets,
                    places,
                    grid=grid,
                    block=(_SEARCH_BLOCK, 1, 1),
                    because="finds each row's place",
                )
            ]
        )
        grid = (1, min(-(-rows // _TILE), 65535), 1)
        host.add([kernel(name.format("gather"), [dense, *places], [out], grid=grid,
                         block=(_TILE, _TILE, 1))])  # fmt: skip
        return host.launches
    host.add([kernel("jagged_dense_dense_elementwise_jagged_output_kernel_",
                     [dense, *_dense(host, offsets)], [out], grid=(-(-rows // _ROWS), 1, 1),
                     block=_block(width))])  # fmt: skip
    return host.launches


def _in_vectors(t: Tensor) -> bool:
    return (
        t.dtype == "float16"
        and t.stride[-1] == 1
        and t.stride[-2] % 8 == 0
        and t.offset * t.itemsize % 16 == 0
    )


def _dense(host: Host, offsets: Sequence[Tensor]) -> list[Tensor]:
    made = []
    for t in offsets:
        t, copies = compact(t)
        host.add(copies)
        made.append(t)
    return made
