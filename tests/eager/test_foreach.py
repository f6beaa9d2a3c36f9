"""Lists of tensors: chunks, tables, and when the fast path is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.eager.chunking import multi_tensor_apply
from kpredict.model import Tensor
from kpredict.targets import target

from .asking import H100, ask, names
from .test_elementwise import E, V, array

MTA = "multi_tensor_apply_kernel"
CUDA12 = target("h100", cuda=12)


def tensors(count: int, *shape: int, dtype: str = "float32") -> tuple[Tensor, ...]:
    return tuple(array(*shape, dtype=dtype) for _ in range(count))


@pytest.mark.parametrize(
    ("count", "depth", "large", "small"),
    [
        (110, 1, 1, 1),
        (111, 1, 1, 2),
        (770, 1, 1, 7),
        (771, 1, 2, 8),
        (400, 2, 1, 7),
        (253, 4, 2, 8),
    ],
)
def test_a_full_table_of_tensors_is_a_launch(
    count: int, depth: int, large: int, small: int
) -> None:
    lists = [tensors(count, 100)] * depth
    for on, expected in ((H100, large), (CUDA12, small)):
        found = multi_tensor_apply(lists, on, reads=range(depth), writes=[0])
        assert len(found) == expected


def test_a_full_table_of_blocks_is_a_launch() -> None:
    """Three tensors of 1000 chunks each: 2240 blocks fit, the third tensor continues."""
    found = multi_tensor_apply([tensors(3, 65536 * 1000)], H100, reads=[0], writes=[0])
    assert [launch.grid for launch in found] == [(2240, 1, 1), (760, 1, 1)]
    assert sum(a.bytes for launch in found for a in launch.writes) == 3 * 65536 * 1000 * 4


def test_a_table_ends_with_a_tensor_even_when_its_blocks_are_full() -> None:
    found = multi_tensor_apply([tensors(2, 65536 * 320)], CUDA12, reads=[0], writes=[0])
    assert [launch.grid for launch in found] == [(320, 1, 1), (320, 1, 1)]


def test_empty_tensors_take_no_room() -> None:
    assert multi_tensor_apply([tensors(5, 0)], H100, reads=[0], writes=[0]) == []


def foreach(name: str, results: tuple[Tensor, ...], **args: object) -> list[str]:
    return names(ask(f"aten._foreach_{name}", *results, **args))


def test_one_kernel_for_lists_that_are_alike() -> None:
    a = tensors(10, 64, 64)
    assert foreach("add_.List", (), self=a, other=a, alpha=1) == [MTA]
    assert foreach("add.List", a, self=a, other=a, alpha=1) == [MTA]
    assert foreach("mul.Scalar", a, self=a, scalar=2.0) == [MTA]
    assert foreach("mul_.Tensor", (), self=a, other=array()) == [MTA]
    assert foreach("sqrt_.default", (), self=a) == [MTA]
    assert foreach("zero_.default", (), self=a) == [MTA]
    assert foreach(
        "copy_.default", (), self=tensors(3, 8, dtype="bfloat16"), src=tensors(3, 8)
    ) == [MTA]


def test_a_number_each_shrinks_the_table() -> None:
    a = tensors(97, 100)
    found = ask("aten._foreach_mul_.ScalarList", on=CUDA12, self=a, scalars=(2.0,) * 97)
    assert names(found) == [MTA] * 2


def test_what_is_not_alike_goes_one_by_one() -> None:
    a, ints = tensors(3, 8), tensors(3, 8, dtype="int64")
    turned = tuple(array(4, 8, stride=(1, 4)) for _ in range(3))
    assert foreach("add_.Scalar", (), self=ints, scalar=0.5) == ["unrolled_elementwise_kernel"] * 3
    assert foreach("sqrt.default", a, self=ints) == ["unrolled_elementwise_kernel"] * 3
    assert foreach("mul_.List", (), self=tensors(3, 4, 8), other=turned) == [E] * 3
    assert (
        foreach("mul_.List", (), self=a, other=tensors(3, 8, dtype="float64"))
        == ["unrolled_elementwise_kernel"] * 3
    )


def test_tensors_on_the_host_launch_nothing() -> None:
    steps = tuple(replace(t, device="cpu") for t in tensors(3))
    assert foreach("add_.Scalar", (), self=steps, scalar=1) == []


def test_zero_dim_factors_keep_the_fast_path_but_not_as_divisors() -> None:
    a, scalars = tensors(3, 8, 8), tensors(3)
    args = {"self": a, "tensor1": a, "tensor2": scalars, "value": -1}
    assert foreach("addcmul_.Scalar", (), **args) == [MTA]
    assert foreach("addcdiv_.Scalar", (), **args) == [E] * 3


def test_norms_fill_reduce_and_clean_up_per_400_tensors() -> None:
    a = tensors(500, 100)
    found = foreach("norm.Scalar", tensors(500), self=a, ord=2)
    assert found == [V, MTA, "lpnorm_cleanup", "lpnorm_cleanup"]
    assert foreach("norm.Scalar", tensors(2), self=tensors(2, 100), ord=3) == ["reduce_kernel"] * 2


@pytest.mark.parametrize(
    ("name", "states", "launches"),
    [
        ("adamw_", ("grads", "exp_avgs", "exp_avg_sqs"), 1),
        ("sgd_", ("grads", "momentum_buffer_list"), 1),
        ("adagrad_", ("grads", "state_sums"), 1),
    ],
)
def test_fused_optimizers_take_all_lists_in_one_kernel(
    name: str, states: tuple[str, ...], launches: int
) -> None:
    lists = {state: tensors(100, 64) for state in ("self", *states)}
    (launch,) = ask(f"aten._fused_{name}.default", **lists, lr=0.1, state_steps=())
    assert launch.name == MTA
    assert (len(launch.reads), len(launch.writes)) == (100 * (1 + len(states)), 100 * len(states))


def test_the_gradient_scaler_unscales_together() -> None:
    grads = tensors(10, 64, 64)
    args = {"found_inf": array(), "inv_scale": array()}
    name = "aten._amp_foreach_non_finite_check_and_unscale_.default"
    assert names(ask(name, self=grads, **args)) == [MTA]
    mixed = (*grads, array(8, dtype="float16"))
    assert names(ask(name, self=mixed, **args)) == [V, MTA]
