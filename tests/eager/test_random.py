"""Random numbers, dropout and factories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.model import Kind
from kpredict.targets import target

from .asking import ask, names
from .test_elementwise import SQUARE, E, U, V, array

RANDOM = "distribution_elementwise_grid_stride_kernel"


@pytest.mark.parametrize(
    ("gpu", "numel", "blocks"),
    [("h100", 1000, 4), ("h100", 10**6, 1056), ("a100", 10**6, 864), ("t4", 10**8, 160)],
)
def test_a_random_grid_holds_what_the_gpu_holds(gpu: str, numel: int, blocks: int) -> None:
    (launch,) = ask("aten.normal_.default", array(numel), on=target(gpu), self=array(numel))
    assert (launch.name, launch.grid, launch.block) == (RANDOM, (blocks, 1, 1), (256, 1, 1))


def test_complex_numbers_are_drawn_as_twice_as_many_real_ones() -> None:
    (launch,) = ask("aten.randn.default", array(512, dtype="complex64"))
    assert launch.grid == (4, 1, 1)


def test_probabilities_are_cast_before_bernoulli() -> None:
    half = array(1000, dtype="bfloat16")
    assert names(ask("aten.bernoulli.default", array(1000), self=array(1000))) == [
        "kernelPointwiseApply2"
    ]
    assert names(ask("aten.bernoulli.default", half, self=half)) == [U, "kernelPointwiseApply2"]
    assert names(ask("aten.bernoulli_.float", half, self=half, p=0.5)) == [RANDOM]


def test_dropout_is_one_kernel_that_reads_vectors_where_it_can() -> None:
    def dropout(n: int, **more: object) -> list[str]:
        x = array(n)
        mask = array(n, dtype="bool")
        return names(ask("aten.native_dropout.default", x, mask, input=x, p=0.1, **more))

    assert dropout(1000) == ["fused_dropout_kernel_vec"]
    assert dropout(999) == ["fused_dropout_kernel"]
    assert dropout(1000, train=False) == ["Memcpy DtoD", V]


def test_a_permutation_sorts_just_enough_bits() -> None:
    found = ask("aten.randperm.default", array(10**6, dtype="int64"), n=10**6)
    passes = names(found).count("DeviceRadixSortOnesweepKernel")
    assert passes == 6  # 43 bits of random key
    assert names([x for x in found if x.kind is Kind.KERNEL])[-1] == (
        "randperm_handle_duplicate_keys_kernel"
    )


@pytest.mark.parametrize(("samples", "kernels"), [(1, 13), (5, 14)])
def test_sampling_checks_its_probabilities_on_the_gpu(samples: int, kernels: int) -> None:
    x, out = array(10, 100), array(10, samples, dtype="int64")
    found = ask("aten.multinomial.default", out, self=x, num_samples=samples, replacement=False)
    assert len(found) == kernels
    assert names(found).count("_assert_async_cuda_kernel") == 2


def test_factories() -> None:
    assert names(ask("aten.zeros.default", SQUARE, size=(1000, 1000))) == [V]
    assert names(ask("aten.arange.default", array(10), end=10)) == ["elementwise_kernel_with_index"]
    assert names(ask("aten.eye.default", SQUARE, n=1000)) == [V, E]
    assert ask("aten.zeros.default", replace(SQUARE, device="cpu"), size=(1000, 1000)) == []
    assert names(ask("aten.linspace.default", array(1), start=0, end=1, steps=1)) == [V]
    assert names(ask("aten.hann_window.default", array(400), window_length=400)) == [
        "elementwise_kernel_with_index", V, V, V, V,
    ]  # fmt: skip
