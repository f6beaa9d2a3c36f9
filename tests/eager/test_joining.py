"""cat and stack: the batched kernel's variants and limits (torch 2.13.0)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.model import Tensor

from .asking import ask, names
from .test_elementwise import U, array

CAT = "CatArrayBatchedCopy"
ROWS, ALIGNED, DENSE = f"{CAT}_vectorized", f"{CAT}_alignedK_contig", f"{CAT}_contig"
ODD = array(3, 3)


@pytest.mark.parametrize(
    ("tensors", "dim", "kernels"),
    [
        ([array(1000, 64)] * 2, 0, [ROWS]),
        ([array(1000, 64)] * 2, 1, [ROWS]),
        ([ODD, ODD], 0, [ALIGNED]),
        ([ODD, replace(ODD, offset=1)], 0, [DENSE]),
        ([replace(ODD, dtype="uint8")] * 2, 0, [DENSE]),
        ([replace(ODD, stride=(1, 3)), ODD], 0, [CAT]),
        ([ODD, replace(ODD, dtype="float16")], 0, ["Memcpy DtoD", U]),
        ([array(2, 2, 2, 2, 2)] * 2, 0, ["Memcpy DtoD"] * 2),  # five dims
        ([array(1000, 64)], 0, ["Memcpy DtoD"]),
        ([array(1, 4)] * 128, 0, [ROWS]),
        ([array(1, 4)] * 129, 0, [ROWS] * 2),
        ([array(1, 4, stride=(8, 2))] * 129, 0, [CAT] * 3),  # strided ones: 64 at a time
    ],
)
def test_variant_and_batches(tensors: list[Tensor], dim: int, kernels: list[str]) -> None:
    shape = list(tensors[0].shape)
    shape[dim] *= len(tensors)
    dtype = "float32" if tensors[-1].dtype == "float16" else tensors[0].dtype
    out = array(*shape, dtype=dtype)
    assert names(ask("aten.cat.default", out, tensors=tuple(tensors), dim=dim)) == kernels


def test_an_empty_input_of_old_style_is_left_out_but_costs_the_dense_variant() -> None:
    tensors = (array(0), array(4, 4))
    found = ask("aten.cat.default", array(4, 4), tensors=tensors, dim=0)
    assert names(found) == [CAT]
    assert len(found[0].reads) == 1


def test_a_stack_is_a_cat() -> None:
    x = array(1000, 64)
    for dim, shape in ((0, (2, 1000, 64)), (1, (1000, 2, 64)), (2, (1000, 64, 2))):
        found = ask("aten.stack.default", array(*shape), tensors=(x, x), dim=dim)
        assert [n.startswith(CAT) for n in names(found)] == [True]


def test_a_block_diagonal_is_zeros_and_blocks() -> None:
    found = ask("aten.block_diag.default", array(7, 11), tensors=(array(4, 5), array(5), array()))
    assert len(found) == 4
    assert [a.bytes for launch in found[1:] for a in launch.writes] == [80, 20, 4]
