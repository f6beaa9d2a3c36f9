"""Launches are aligned per op, not by position, and each gets its verdict."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kpredict.model import Basis, Count, Kind, Launch, Plan
from kpredict.verify.align import align
from kpredict.verify.compare import Verdict, compare
from kpredict.verify.measured import INSIDE_LIBRARY


def kernel(name: str, op: str = "aten.add.Tensor") -> Launch:
    return Launch(Kind.KERNEL, name, ops=(op,))


def library(op: str, lo: int, hi: int | None = None, name: str = "gemm") -> Launch:
    return Launch(Kind.LIBRARY, name, Count(lo, hi or lo), basis=Basis.LIBRARY, ops=(op,))


def verdicts(left: list[Launch], right: list[Launch]) -> list[str]:
    return [row.verdict.value for row in compare(Plan(tuple(left)), Plan(tuple(right))).rows]


ADD = kernel("vectorized_elementwise_kernel", "aten.add.Tensor")
MUL = kernel("vectorized_elementwise_kernel", "aten.mul.Tensor")
SUM = kernel("reduce_kernel", "aten.sum.dim_IntList")
MEASURED_ADD = kernel("vectorized_elementwise_kernel", "aten.add")
MEASURED_SUM = kernel("reduce_kernel", "aten.sum")


def test_one_launch_too_many_shifts_nothing() -> None:
    copy = kernel("elementwise_kernel", "aten.copy_")
    assert verdicts([ADD, SUM, ADD], [MEASURED_ADD, copy, MEASURED_SUM, MEASURED_ADD]) == [
        "equal", "extra", "equal", "equal",
    ]  # fmt: skip


def test_names_in_order_count_more_than_an_op_that_comes_again() -> None:
    """A cat by copies, then real copies: the copies must not catch those of the cat."""
    copy, seen_copy = kernel("e", "aten.copy_.default"), kernel("e", "aten.copy_")
    cat = kernel("e", "aten.cat")
    left = [copy, copy, MUL, ADD, copy, copy, copy, copy, SUM]
    right = [cat, cat, MUL, MEASURED_ADD, cat, cat, seen_copy, seen_copy, MEASURED_SUM]
    assert verdicts(left, right) == ["equal"] * 9


def test_missing_and_a_name_that_differs() -> None:
    other = kernel("unrolled_elementwise_kernel", "aten.add")
    found = compare(Plan((ADD, SUM)), Plan((other,)))
    assert [row.verdict for row in found.rows] == [Verdict.NAME, Verdict.MISSING]
    assert found.exit_code == 1
    assert not found.identical


def test_another_order_is_no_disagreement() -> None:
    found = compare(Plan((ADD, MUL, SUM)), Plan((MEASURED_SUM, MEASURED_ADD, MUL)))
    assert found.verdicts == {Verdict.EQUAL: 2, Verdict.MOVED: 1}
    assert (found.exit_code, found.identical) == (0, False)


def test_a_name_alone_does_not_fail() -> None:
    found = compare(Plan((ADD,)), Plan((kernel("elementwise_kernel", "aten.add"),)))
    assert (found.exit_code, found.identical) == (0, False)


def test_an_op_inside_another_is_found_by_the_path() -> None:
    relu = kernel("vectorized_elementwise_kernel", "aten.relu.default")
    inner = Launch(
        Kind.KERNEL, "vectorized_elementwise_kernel", ops=("aten.clamp_min", "aten.relu")
    )
    assert verdicts([relu], [inner]) == ["equal"]


def test_a_library_call_is_inside_its_interval_or_not() -> None:
    claim = [library("aten.mm.default", 1, 3)]
    assert verdicts(claim, [library("aten.mm", 2, name="ampere_sgemm")]) == ["inside"]
    assert verdicts(claim, [library("aten.mm", 4)]) == ["outside"]
    assert verdicts([library("aten.mm.default", 1)], [library("aten.mm", 1)]) == ["equal"]


def test_two_calls_of_a_library_under_one_op_are_one_row() -> None:
    two = [library("aten.convolution_backward.default", 1, 3)] * 2
    found = compare(Plan(tuple(two)), Plan((library("aten.convolution_backward", 5),)))
    assert [row.verdict for row in found.rows] == [Verdict.INSIDE]
    assert found.agrees


def test_a_librarys_own_memsets_are_inside_it() -> None:
    memset = Launch(Kind.MEMSET, "Memset", because=INSIDE_LIBRARY, ops=("aten.mm",))
    found = compare(Plan((library("aten.mm.default", 1),)), Plan((memset, library("aten.mm", 1))))
    assert found.identical
    assert found.agrees


def test_a_library_kernel_where_an_own_one_was_predicted() -> None:
    found = compare(Plan((kernel("k", "aten.bmm.default"),)), Plan((library("aten.bmm", 1),)))
    assert [row.verdict for row in found.rows] == [Verdict.NAME]
    assert not found.agrees


def test_inductors_numbers_do_not_count() -> None:
    left = Launch(Kind.KERNEL, "triton_poi_fused_add_relu_0", ops=("aten.add.Tensor",))
    right = Launch(Kind.KERNEL, "triton_poi_fused_add_relu_2", ops=("triton_poi_fused_add_relu_2",))
    assert verdicts([left], [right]) == ["equal"]


def test_which_call_waited_does_not_count() -> None:
    left = Launch(Kind.SYNC, "synchronize", ops=("aten._local_scalar_dense.default",))
    right = Launch(Kind.SYNC, "cudaStreamSynchronize", ops=("aten._local_scalar_dense",))
    assert verdicts([left], [right]) == ["equal"]


_launches = st.lists(
    st.builds(
        kernel,
        st.sampled_from(["reduce_kernel", "elementwise_kernel", "triton_poi_fused_add_0"]),
        st.sampled_from(["aten.add.Tensor", "aten.sum.default", "aten.relu.default"]),
    )
    | st.builds(library, st.sampled_from(["aten.mm.default"]), st.integers(1, 2)),
    max_size=12,
)


@given(_launches, _launches)
@settings(deadline=None, max_examples=150)
def test_laws_of_an_alignment(left: list[Launch], right: list[Launch]) -> None:
    pairs = align(left, right)
    assert [i for i, _ in pairs if i is not None] == list(range(len(left)))
    assert [j for _, j in pairs if j is not None] == list(range(len(right)))
    assert all(v == "equal" for v in verdicts(left, left))
    found = compare(Plan(tuple(left)), Plan(tuple(right)))
    if found.identical:
        assert found.agrees
    only_left = compare(Plan(tuple(left)), Plan())
    assert len(only_left.rows) == len(left)


def test_long_plans_that_share_little_are_compared_in_time() -> None:
    left = [kernel(f"k{i % 7}", f"aten.a{i % 11}.default") for i in range(4000)]
    right = [kernel(f"k{i % 5}", f"aten.b{i % 13}.default") for i in range(3000)]
    assert len(compare(Plan(tuple(left)), Plan(tuple(right))).rows) >= 4000
