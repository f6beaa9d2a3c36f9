"""Softmax: five kernels, chosen by row length, dtype, alignment and shared memory; its loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpredict.model import Target, Tensor

from .asking import H100, ask, names
from .test_elementwise import array


def _forward(x: Tensor, dim: int = -1, on: Target = H100, dtype: str = "") -> str:
    out = replace(array(*x.shape, dtype=dtype or x.dtype))
    args: dict[str, Any] = {"self": x, "dim": dim, "half_to_float": bool(dtype)}
    return names(ask("aten._softmax.default", out, on=on, **args))[-1]


@pytest.mark.parametrize(
    ("size", "dtype", "kernel"),
    [
        (2048, "float32", "softmax_warp_forward"),
        (2049, "float32", "cunn_SoftMaxForwardReg"),
        (1024, "float64", "softmax_warp_forward"),
        (1025, "float64", "cunn_SoftMaxForwardReg"),
        (9216, "bfloat16", "cunn_SoftMaxForwardReg"),
        (9224, "bfloat16", "cunn_SoftMaxForwardSmem"),
        (9223, "bfloat16", "cunn_SoftMaxForward"),
        (200_000, "bfloat16", "cunn_SoftMaxForward"),
    ],
)
def test_row_length_decides(size: int, dtype: str, kernel: str) -> None:
    assert _forward(array(20, size, dtype=dtype)) == kernel


def test_a_row_fits_48_kib_beside_the_partial_sums() -> None:
    assert _forward(array(20, 12_252)) == "cunn_SoftMaxForwardSmem"
    assert _forward(array(20, 12_256)) == "cunn_SoftMaxForward"


def test_shared_memory_needs_aligned_rows() -> None:
    x = replace(array(20, 12_000), offset=1)
    assert _forward(x) == "cunn_SoftMaxForward"


def test_other_dims_take_the_spatial_kernel() -> None:
    assert _forward(array(20, 30, 4), dim=1) == "cunn_SpatialSoftMaxForward"
    assert _forward(array(20, 30, 1), dim=1) == "softmax_warp_forward"


def test_half_to_float_has_shorter_warp_rows_before_2_14() -> None:
    x = array(20, 2000, dtype="float16")
    new = replace(H100, torch="2.14.1")
    assert _forward(x, dtype="float32", on=replace(H100, torch="2.13.0")).endswith("Smem")
    assert _forward(x, dtype="float32", on=new) == "softmax_warp_forward"


def test_backward_multiplies_first() -> None:
    g, y = array(20, 100), replace(array(20, 100), storage=7)
    args: dict[str, Any] = {"grad_output": g, "output": y, "dim": 1, "input_dtype": "float32"}
    found = ask("aten._softmax_backward_data.default", array(20, 100), **args)
    assert names(found) == ["vectorized_elementwise_kernel", "softmax_warp_backward"]
    assert found[0].ops == ("aten.mul.Tensor",)
    found = ask("aten._log_softmax_backward_data.default", array(20, 100), **args)
    assert names(found) == ["softmax_warp_backward"]


def test_the_loss_of_classes_reads_one_element_per_row() -> None:
    labels = array(100, dtype="int64")
    args: dict[str, Any] = {"self": array(100, 5000), "target": labels, "weight": None}
    outs = (array(), array())
    (launch,) = ask("aten.nll_loss_forward.default", *outs, reduction=1, ignore_index=-100, **args)
    assert [access.bytes for access in launch.reads] == [100 * 4, 100 * 8]
