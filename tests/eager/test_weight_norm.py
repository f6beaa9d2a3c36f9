"""Weight norm: the fused kernels over the first and the last dim."""

from __future__ import annotations

import pytest

from .asking import ask
from .test_elementwise import array


@pytest.mark.parametrize(
    ("dim", "name", "grid"),
    [(0, "weight_norm_fwd_first_dim_kernel", 64), (1, "weight_norm_fwd_last_dim_kernel", 2)],
)
def test_one_kernel_forward(dim: int, name: str, grid: int) -> None:
    v, g = array(64, 32), array(64, 1)
    (launch,) = ask("aten._weight_norm_interface.default", v, g, v=v, g=g, dim=dim)
    assert launch.name == name
    assert launch.grid == (grid, 1, 1)


def test_one_kernel_backward() -> None:
    v, g = array(64, 32), array(64, 1)
    (launch,) = ask(
        "aten._weight_norm_interface_backward.default", v, g, grad_w=v, saved_v=v, saved_g=g,
        saved_norms=g, dim=0,
    )  # fmt: skip
    assert launch.name == "weight_norm_bwd_first_dim_kernel"
