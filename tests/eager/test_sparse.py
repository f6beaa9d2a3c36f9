"""Sparse COO tensors have rules of their own, or none at all."""

from __future__ import annotations

from dataclasses import replace

from kpredict.eager.predict import launches_of
from kpredict.model import Op, Tensor

from .asking import H100, ask, names
from .test_elementwise import E, U, V, array

INDICES = array(2, 600, dtype="int64")
COO = Tensor((30, 40), (0, 0), "float32", layout="sparse_coo", parts=(INDICES, array(600)))
SORTED = replace(COO, layout="sparse_coo_coalesced")


def test_bytes_are_those_of_the_parts() -> None:
    assert COO.nbytes == 2 * 600 * 8 + 600 * 4


def test_a_dense_rule_never_answers_for_a_sparse_operand() -> None:
    op = Op("aten.sin.default", {"self": COO}, (COO,), tags=frozenset({"pointwise"}))
    launches, unknown = launches_of(op, H100)
    assert launches == []
    assert unknown is not None
    assert "sparse" in unknown.reason


def test_parts_are_free_and_copied_one_by_one() -> None:
    assert ask("aten._values.default", array(600), self=COO) == []
    assert names(ask("aten.clone.default", COO, self=COO)) == ["Memcpy DtoD"] * 2


def test_two_sparse_tensors_are_put_one_after_the_other() -> None:
    both = replace(COO, parts=(array(2, 1200, dtype="int64"), array(1200)))
    found = ask("aten.add.Tensor", both, self=COO, other=COO, alpha=1)
    assert [n.startswith("CatArrayBatchedCopy") for n in names(found)] == [True, True]


def test_only_a_coalesced_one_is_added_element_by_element() -> None:
    dense = replace(array(30, 40), storage=5)
    args = {"self": dense, "alpha": 1}
    assert names(ask("aten.add_.Tensor", dense, other=SORTED, **args)) == [
        "sparseElementwiseKernelScalar"
    ]
    found = names(ask("aten.add_.Tensor", dense, other=COO, **args))
    assert found[-1] == "indexFuncLargeIndex"


def test_coalescing_sorts_in_two_kernels_per_doubling() -> None:
    few = names(ask("aten._coalesce.default", SORTED, self=COO))
    many = replace(COO, parts=(array(2, 6000, dtype="int64"), array(6000)))
    more = names(ask("aten._coalesce.default", SORTED, self=many))
    assert few.count("synchronize") == more.count("synchronize") == 5
    assert len(more) - len(few) == 4  # 6000 keys are three tiles of 2048: two rounds of merging


def test_products_are_cusparse_s() -> None:
    found = ask("aten.mm.default", array(30, 5), self=SORTED, mat2=array(40, 5))
    assert names(found) == [V, U, "cusparseXcoo2csr", U, V, E, "cusparseSpMM", E]
