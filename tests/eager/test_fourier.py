"""Fourier transforms: cuFFT calls, the scale, the mirrored half, the copies around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpredict.model import Tensor

from .asking import ask, names
from .test_elementwise import E, V, array

FFT, COPY, MIRROR = "cufftXtExec", "Memcpy DtoD", "_fft_conjugate_copy_kernel"
BY_N = 2


def complex_(*shape: int) -> Tensor:
    return array(*shape, dtype="complex64")


@pytest.mark.parametrize(
    ("onesided", "normalization", "found"),
    [(True, 0, [FFT]), (False, 0, [FFT, MIRROR]), (False, BY_N, [FFT, E, MIRROR])],
)
def test_real_input(onesided: bool, normalization: int, found: list[str]) -> None:
    x, out = array(64, 1024), complex_(64, 513 if onesided else 1024)
    launches = ask("aten._fft_r2c.default", out, self=x, dim=(1,), normalization=normalization,
                   onesided=onesided)  # fmt: skip
    assert names(launches) == found


def test_complex_input() -> None:
    x = complex_(64, 1024)

    def run(dims: tuple[int, ...], normalization: int = 0) -> list[str]:
        return names(ask("aten._fft_c2c.default", x, self=x, dim=dims, forward=True,
                         normalization=normalization))  # fmt: skip

    assert run((1,)) == run((0, 1)) == [FFT]
    assert run((1,), BY_N) == [FFT, V]
    assert run(()) == [COPY]


def test_real_output_keeps_its_input() -> None:
    x = complex_(64, 513)
    launches = ask("aten._fft_c2r.default", array(64, 1024), self=x, dim=(1,), normalization=0,
                   last_dim_size=1024)  # fmt: skip
    assert names(launches) == [COPY, FFT]


def test_more_than_three_dims_take_two_plans() -> None:
    x = complex_(2, 4, 4, 4, 4)
    launches = ask("aten._fft_c2c.default", x, self=x, dim=(1, 2, 3, 4), normalization=0,
                   forward=True)  # fmt: skip
    assert names(launches).count(FFT) == 2


def test_a_broadcast_signal_is_cloned() -> None:
    x = replace(complex_(64, 1024), stride=(0, 1))
    launches = ask("aten._fft_c2c.default", complex_(64, 1024), self=x, dim=(1,), normalization=0,
                   forward=True)  # fmt: skip
    assert names(launches) == [E, FFT]
