"""Lines on which compiling launches more than eager does: how many, and why."""

from __future__ import annotations

from kpredict.model import Barrier, Count, Entry, Kind, Launch, Mode, Phases, Plan, Span
from kpredict.report.additions import additions

FILE = "f.py"


def launch(
    name: str, op: str, *lines: int, region: str = "", because: str = "", n: int = 1
) -> Launch:
    kind = Kind.LIBRARY if name.startswith("cud") else Kind.KERNEL
    spans = tuple(Span(FILE, n) for n in lines)
    return Launch(
        kind, name, Count.exactly(n), ops=(op,), lines=spans, region=region, because=because
    )


def entry(eager: list[Launch], compiled: list[Launch], *barriers: Barrier) -> Entry:
    before, after = Plan(tuple(eager)), Plan(tuple(compiled), barriers=barriers)
    return Entry(FILE, "f", 1, plans={Mode.EAGER: Phases(before), Mode.COMPILED: Phases(after)})


NORM = "aten._native_batch_norm_legit_functional.default"


def test_an_op_written_out_is_told_with_what_eager_calls() -> None:
    (found,) = additions(
        entry(
            [launch("cudnnBatchNorm", "aten.cudnn_batch_norm.default", 3)],
            [launch(f"triton_{i}", NORM, 3, region="0/0") for i in range(3)],
        )
    )
    assert (found.line, found.eager, found.compiled, found.added) == (3, 1, 3, 2)
    assert (
        found.reason == "batch_norm: 1 launch (a library's call) in eager, written out as 3 kernels"
    )
    assert str(found).startswith("compiling adds 2 launches on line 3: ")


def test_a_split_reduction_is_told_with_its_sizes() -> None:
    (found,) = additions(
        entry(
            [launch("reduce_kernel", "aten.sum.default", 3)],
            [launch(f"triton_{i}", "aten.sum.default", 3, region="0/0") for i in range(2)],
            Barrier(0, 1, "split-reduction", "200 x 16384 partial results, then 100 x 2"),
        )
    )
    assert found.reason.startswith("a long reduction is split in two kernels (200 x 16384")


def test_layouts_and_seeds_are_told_by_their_own_reasons() -> None:
    because = "puts an input of convolution into the layout that it takes"
    conv = "aten.convolution.default"
    (found,) = additions(
        entry(
            [launch("cudnnBackendExecute", conv, 3)],
            [
                launch("triton_0", conv, 3, region="0/0", because=because),
                launch("cudnnBackendExecute", conv, 3, region="0/0"),
            ],
        )
    )
    assert found.reason == because


def test_a_kernel_of_several_lines_counts_where_eager_has_most_to_give() -> None:
    eager = [launch("a", "aten.add.Tensor", 3), launch("b", "aten.mul.Tensor", 4)]
    eager += [launch("c", "aten.relu.default", 4)]
    compiled = [launch("triton_0", "aten.add.Tensor", 3, region="0/0")]
    compiled += [launch("triton_1", "aten.mul.Tensor", 3, 4, region="0/0")]
    assert additions(entry(eager, compiled)) == ()


def test_without_a_compiled_plan_there_is_nothing_to_say() -> None:
    plan = Plan((launch("a", "aten.add.Tensor", 3),))
    assert additions(Entry(FILE, "f", 1, plans={Mode.EAGER: Phases(plan)})) == ()
