# ruff: noqa
# mypy: ignore-errors
"""Fourier transforms and windows (SpectralOps.cpp, TensorFactories.cpp)."""

import math

import torch


def _scale(norm, forward):
    """0: none, 1: by the root of the size, 2: by the size (fft_norm_mode)."""
    if norm == "ortho":
        return 1
    return 2 if (norm == "forward") == forward else 0


def _all(input, dim, s=None):
    if dim is None:
        if s is not None:
            return tuple(range(-len(s), 0))
        return tuple(range(input.dim())) if known(input.dim()) else (-1,)
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _resized(input, sizes, dims):
    """resize_fft_input: longer dims are padded with zeros, shorter ones sliced."""
    if sizes is None or sizes == (None,) or not known(input.shape):
        return input
    pad = [0] * (2 * input.dim())
    more = False
    for n, d in zip(sizes, dims):
        d = d % input.dim()
        if n is None or n == -1:
            continue
        if input.shape[d] < n:
            pad[2 * (input.dim() - 1 - d) + 1] = n - input.shape[d]
            more = True
        elif input.shape[d] > n:
            input = aten.slice(input, d, 0, n)
    return aten.constant_pad_nd(input, pad) if more else input


def _complex(input):
    """Transforms of several dims take complex numbers only."""
    wide = torch.complex128 if input.dtype is torch.float64 else torch.complex64
    return input if input.is_complex() is True else input.to(wide)


def _half(sizes, dims):
    """A real result of n points needs n // 2 + 1 complex ones."""
    if sizes is None or sizes == (None,):
        return None
    return (*sizes[:-1], None if sizes[-1] is None else sizes[-1] // 2 + 1)


def _front(input, dims):
    """Dims counted from the front."""
    return tuple(d % input.dim() for d in dims) if known(input.dim()) else dims


def _r2c(input, sizes, dims, norm, forward, onesided):
    dims = _front(input, dims)
    return aten._fft_r2c(_resized(input, sizes, dims), dims, _scale(norm, forward), onesided)


def _c2c(input, sizes, dims, norm, forward):
    dims = _front(input, dims)
    return aten._fft_c2c(
        _resized(_complex(input), sizes, dims), dims, _scale(norm, forward), forward
    )


def _c2r(input, sizes, dims, norm):
    dims = _front(input, dims)
    last = None if sizes is None else sizes[-1]
    n = 2 * (input.shape[dims[-1]] - 1) if last is None else last
    input = _resized(_complex(input), _half(sizes, dims), dims)
    return aten._fft_c2r(input, dims, _scale(norm, False), n)


def fft_rfft(input, n=None, dim=-1, norm=None):
    return _r2c(input, (n,), (dim,), norm, True, True)


def fft_irfft(input, n=None, dim=-1, norm=None):
    return _c2r(input, (n,), (dim,), norm)


def fft_fft(input, n=None, dim=-1, norm=None):
    if input.dtype.is_complex is True:
        return _c2c(input, (n,), (dim,), norm, True)
    return _r2c(input, (n,), (dim,), norm, True, False)


def fft_ifft(input, n=None, dim=-1, norm=None):
    if input.dtype.is_complex is False:
        return _r2c(input, (n,), (dim,), norm, False, False)
    return _c2c(input, (n,), (dim,), norm, False)


def fft_rfft2(input, s=None, dim=(-2, -1), norm=None):
    return _r2c(input, s, dim, norm, True, True)


def fft_irfft2(input, s=None, dim=(-2, -1), norm=None):
    return _c2r(input, s, dim, norm)


def fft_fft2(input, s=None, dim=(-2, -1), norm=None):
    return _c2c(input, s, dim, norm, True)


def fft_ifft2(input, s=None, dim=(-2, -1), norm=None):
    return _c2c(input, s, dim, norm, False)


def fft_rfftn(input, s=None, dim=None, norm=None):
    return _r2c(input, s, _all(input, dim, s), norm, True, True)


def fft_irfftn(input, s=None, dim=None, norm=None):
    return _c2r(input, s, _all(input, dim, s), norm)


def fft_fftn(input, s=None, dim=None, norm=None):
    return _c2c(input, s, _all(input, dim, s), norm, True)


def fft_ifftn(input, s=None, dim=None, norm=None):
    return _c2c(input, s, _all(input, dim, s), norm, False)


def fft_fftshift(input, dim=None):
    dim = _all(input, dim)
    return aten.roll(input, tuple(input.shape[d] // 2 for d in dim), dim)


def fft_ifftshift(input, dim=None):
    dim = _all(input, dim)
    return aten.roll(input, tuple((input.shape[d] + 1) // 2 for d in dim), dim)


def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """Frames are a strided view; the window is multiplied only where one is given."""
    hop = n_fft // 4 if hop_length is None else hop_length
    single = input.dim() == 1
    if single:
        input = input.unsqueeze(0)
    if center:
        padded = aten.reflection_pad1d(input.unsqueeze(1), (n_fft // 2, n_fft // 2))
        if pad_mode == "constant":
            padded = aten.constant_pad_nd(input.unsqueeze(1), (n_fft // 2, n_fft // 2))
        input = padded.squeeze(1)
    frames = aten.unfold(input, -1, n_fft, hop)
    if window is not None:
        if win_length is not None and win_length < n_fft:
            left = (n_fft - win_length) // 2
            full = torch.zeros(n_fft, dtype=window.dtype, device=window.device)
            aten.copy_(full.narrow(0, left, win_length), window)
            window = full
        frames = aten.mul(frames, window)
    if input.is_complex() is True:
        out = aten._fft_c2c(frames, (2,), 1 if normalized else 0, True)
    else:
        out = aten._fft_r2c(frames, (2,), 1 if normalized else 0, onesided is not False)
    out = out.transpose(1, 2)
    if single:
        out = out.squeeze(0)
    return out if return_complex is not False else aten.view_as_real(out)


def _cosine(length, periodic, dtype, device):
    n = length + 1 if periodic else length
    angles = aten.mul_(torch.arange(n, dtype=dtype, device=device), 2 * math.pi / (n - 1))
    return angles, n


def hamming_window(
    window_length,
    periodic=True,
    alpha=0.54,
    beta=0.46,
    dtype=None,
    device=None,
    layout=None,
    pin_memory=False,
    requires_grad=False,
):
    angles, n = _cosine(window_length, periodic, torch.float32 if dtype is None else dtype, device)
    window = aten.add_(aten.mul_(aten.cos_(angles), -beta), alpha)
    return window.narrow(0, 0, window_length) if periodic else window


def hann_window(
    window_length,
    periodic=True,
    dtype=None,
    device=None,
    layout=None,
    pin_memory=False,
    requires_grad=False,
):
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype, device)


def blackman_window(
    window_length,
    periodic=True,
    dtype=None,
    device=None,
    layout=None,
    pin_memory=False,
    requires_grad=False,
):
    angles, n = _cosine(window_length, periodic, torch.float32 if dtype is None else dtype, device)
    slow = aten.mul_(aten.cos_(aten.mul(angles, 2)), 0.08)
    fast = aten.mul_(aten.cos_(aten.mul(angles, 1)), 0.5)
    window = aten.add(aten.sub(slow, fast), 0.42)
    return window.narrow(0, 0, window_length) if periodic else window


def bartlett_window(
    window_length,
    periodic=True,
    dtype=None,
    device=None,
    layout=None,
    pin_memory=False,
    requires_grad=False,
):
    n = window_length + 1 if periodic else window_length
    kind = torch.float32 if dtype is None else dtype
    window = aten.mul_(torch.arange(n, dtype=kind, device=device), 2 / (n - 1))
    half = window.narrow(0, (n - 1) // 2 + 1, n - (n - 1) // 2 - 1)
    aten.add_(aten.mul_(half, -1), 2)
    return window.narrow(0, 0, window_length) if periodic else window


def fft_fftfreq(n, d=1.0, dtype=None, device=None, layout=None, requires_grad=False):
    kind = torch.float32 if dtype is None else dtype
    out = torch.arange(n, dtype=kind, device=device)
    aten.add_(aten.slice(out, 0, (n + 1) // 2, n), -n)
    return aten.mul_(out, 1.0 / (n * d))


def fft_rfftfreq(n, d=1.0, dtype=None, device=None, layout=None, requires_grad=False):
    kind = torch.float32 if dtype is None else dtype
    return aten.mul_(torch.arange(n // 2 + 1, dtype=kind, device=device), 1.0 / (n * d))


def fft_hfft(input, n=None, dim=-1, norm=None):
    return _c2r(conj(input), (n,), (dim,), norm)
