"""Make PyTorch's C++ side see one CUDA device, on any build, without CUDA.

PyTorch's composite ops, autograd engine and autocast ask C++ for the device: through the *device
guard* of the device type, and through the *CUDA hooks* object. On a CPU-only build the guard is
missing and the hooks say no; on a CUDA build without a GPU both fail. This module puts a guard
and hooks in their place that answer with constants: one device, cuda:0, default stream, cuDNN
present. Then PyTorch's own host code takes the CUDA way: dropout, batch norm, convolution
back ends, autocast lists, backward. Nothing runs on a device; tensors are fake.

How: both are C++ objects whose virtual tables we replace by copies with a few entries exchanged
for tiny functions that return a constant. Order of entries is read from the C++ headers that
every torch wheel ships, so a release that adds one is followed by itself.

Private API touched: `c10::impl::device_guard_impl_registry`, `at::detail::getCUDAHooks`.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

from kpredict.model import KpredictError

_WORD = ctypes.sizeof(ctypes.c_void_p)
_CUDA, _META = 1, 14  # c10::DeviceType
_CUDNN_VERSION = 91900

_HOOKS_TRUE = (
    "isBuilt isAvailable hasPrimaryContext init deviceCount hasCUDA hasCUDART hasMAGMA hasCuDNN "
    "hasCuSOLVER hasCuBLASLt compiledWithCuDNN supportsDilatedConvolutionWithCuDNN "
    "supportsDepthwiseConvolutionWithCuDNN getNumGPUs"
).split()
_HOOKS_BFLOAT16 = ("supportsBFloat16ConvolutionWithCuDNNv8", "supportsBFloat16RNNWithCuDNN")
_HOOKS_ZERO = (
    "getCurrentDevice exchangeDevice maybeExchangeDevice setCurrentDevice current_device "
    "deviceSynchronize isPinnedPtr hasROCM hasCKSDPA hasCKGEMM batchnormMinEpsilonCuDNN"
).split()
_HOOKS_CUDNN = ("versionCuDNN", "versionRuntimeCuDNN")
# Device{CUDA, 0} and DeviceType::CUDA are both the number 1; Stream{Device, id 0} is (1, 0).
_GUARD_ONE = (
    "type exchangeDevice getDevice getStream getDefaultStream getStreamFromGlobalPool getNewStream "
    "exchangeStream deviceCount"
).split()


def _unsupported(what: str) -> KpredictError:
    return KpredictError(
        f"torch {torch.__version__} on {sys.platform}/{platform.machine()} keeps {what} where "
        "kpredict does not find it.",
        "Use torch 2.11 to 2.14 on Linux or macOS, or check from source with --static.",
    )


class _Constants:
    """Machine code that returns (n, 0) in the integer return registers and 0.0 as a float."""

    def __init__(self) -> None:
        size = mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_JIT", 0)
        try:
            self._memory = mmap.mmap(
                -1, size, flags, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            )
        except OSError as error:
            raise _unsupported("executable memory") from error
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._used = 0

    def function(self, n: int) -> int:
        """The address of a function returning `n` (0 <= n < 2**31)."""
        machine = platform.machine().lower()
        if machine in ("x86_64", "amd64"):
            # mov eax, n; xor edx, edx; pxor xmm0, xmm0; ret
            code = b"\xb8" + struct.pack("<I", n) + b"\x31\xd2\x66\x0f\xef\xc0\xc3"
        elif machine in ("aarch64", "arm64"):
            # movz w0, lo; movk w0, hi, lsl 16; movz x1, 0; fmov d0, xzr; ret
            words = [
                0x52800000 | (n & 0xFFFF) << 5,
                0x72A00000 | (n >> 16) << 5,
                0xD2800001,
                0x9E6703E0,
                0xD65F03C0,
            ]
            code = struct.pack("<5I", *words)
        else:
            raise _unsupported("a calling convention")
        at = self._used
        self._memory[at : at + len(code)] = code
        self._used += 32
        return self._base + at


class _Table:
    """A copy of an object's virtual table, with names for its entries."""

    def __init__(self, address: int, names: list[str]) -> None:
        self._names = names
        size = len(names) + 2  # two words before the first entry: offset to top, type info
        original = ctypes.c_void_p.from_address(address).value or 0
        entries = ctypes.c_void_p * size
        self._words = entries(*entries.from_address(original - 2 * _WORD))
        self.address = ctypes.addressof(self._words) + 2 * _WORD

    def answer(self, names: tuple[str, ...] | list[str], function: int) -> None:
        for name in names:
            if name in self._names:
                self._words[2 + self._names.index(name)] = function


def _virtuals(header: str, declaration: str) -> list[str]:
    """Names of the virtual functions a class declares, in order; its destructor as two entries."""
    path = Path(torch.__file__).parent / "include" / header
    try:
        text = path.read_text()
    except OSError as error:
        raise _unsupported(f"its header {header}") from error
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = text[text.index(declaration) :]
    names: list[str] = []
    for match in re.finditer(r"virtual\s+[^;{(]*?(~?\b\w+)\s*\(", text):
        name = match[1]
        names += [name, name + "/delete"] if name.startswith("~") else [name]
    return names


class _Runtime:
    """The two replacements, built once; they must outlive every C++ object that saw them."""

    def __init__(self) -> None:
        lib = Path(torch.__file__).parent / "lib"
        suffix = ".dylib" if sys.platform == "darwin" else ".so"
        try:
            c10 = ctypes.CDLL(str(lib / f"libc10{suffix}"))
            cpu = ctypes.CDLL(str(lib / f"libtorch_cpu{suffix}"))
            slots = ctypes.c_void_p * 20
            self._registry = slots.in_dll(c10, "_ZN3c104impl26device_guard_impl_registryE")
            get_hooks = cpu["_ZN2at6detail12getCUDAHooksEv"]
        except (OSError, ValueError, AttributeError) as error:
            raise _unsupported("its device registry") from error
        get_hooks.restype = ctypes.c_void_p
        get_hooks.argtypes = []
        self._hooks = ctypes.c_void_p.from_address(get_hooks())
        constants = self._constants = _Constants()
        self._zero, self._one = zero, one = constants.function(0), constants.function(1)

        names = _virtuals("ATen/detail/AcceleratorHooksInterface.h", "AcceleratorHooksInterface {")
        names += [
            name
            for name in _virtuals("ATen/detail/CUDAHooksInterface.h", "CUDAHooksInterface :")
            if name not in names and not name.startswith("~")
        ]
        self._hooks_table = _Table(get_hooks(), names)
        self._hooks_table.answer(_HOOKS_TRUE, one)
        self._hooks_table.answer(_HOOKS_ZERO, zero)
        self._hooks_table.answer(_HOOKS_CUDNN, constants.function(_CUDNN_VERSION))

        meta = self._registry[_META]
        if not meta:
            raise _unsupported("the meta device's guard")
        guard = _virtuals("c10/core/impl/DeviceGuardImplInterface.h", "DeviceGuardImplInterface {")
        self._guard_table = _Table(meta, guard)
        self._guard_table.answer(_GUARD_ONE, one)
        self._guard = (ctypes.c_void_p * 2)(self._guard_table.address)
        self._saved: tuple[int | None, int | None] = (None, None)

    def install(self, *, bfloat16: bool) -> None:
        self._hooks_table.answer(_HOOKS_BFLOAT16, self._one if bfloat16 else self._zero)
        self._saved = (self._registry[_CUDA], self._hooks.value)
        self._registry[_CUDA] = ctypes.addressof(self._guard)
        self._hooks.value = self._hooks_table.address

    def remove(self) -> None:
        self._registry[_CUDA], self._hooks.value = self._saved


@cache
def _runtime() -> _Runtime:
    return _Runtime()


@contextmanager
def device_runtime(*, bfloat16: bool = True) -> Iterator[None]:
    """C++ sees one CUDA device while this is entered; backward runs on the calling thread.

    `bfloat16` says whether its cuDNN takes that type (sm_80 and newer). Not re-entrant: the caller
    enters it once. Raises KpredictError where torch keeps its device registry elsewhere than in the
    releases we know.
    """
    runtime = _runtime()
    runtime.install(bfloat16=bfloat16)
    try:
        with torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        runtime.remove()
