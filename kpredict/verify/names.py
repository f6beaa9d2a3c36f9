"""What a profiler's kernel name tells: the family, the elementwise loop, the closed library.

In: names as CUPTI demangles them (or leaves them mangled). Out: plain facts. Pure and cached.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MANGLED = re.compile(r"_ZN?K?(.*)")
_TRITON_NUMBER = re.compile(r"_\d+$")


@lru_cache(maxsize=8192)
def family(name: str) -> str:
    """The base name without return type, namespaces, template arguments and parameters.

    >>> family("void at::native::(anonymous namespace)::softmax_warp_forward<float, 5>(float*)")
    'softmax_warp_forward'
    >>> family("Memcpy DtoH (Device -> Pageable)")
    'Memcpy DtoH'
    """
    if name.startswith(("Memcpy", "Memset")):
        return name.partition(" (")[0]
    if name.startswith("_Z"):
        return _mangled_family(name)
    flat = _outside_brackets(name.replace("(anonymous namespace)", "{anonymous}"))
    flat = flat.split("(")[0].strip()
    return flat.rsplit("::", 1)[-1].rsplit(" ", 1)[-1] or name


def _outside_brackets(name: str) -> str:
    """`name` up to the parameter list, with every `<…>` taken out."""
    depth, kept = 0, []
    for i, char in enumerate(name):
        if char == "<":
            depth += 1
        elif char == ">" and name[i - 1] != "-":
            depth -= 1
        elif depth == 0:
            if char == "(":
                break
            kept.append(char)
    return "".join(kept)


def _mangled_family(name: str) -> str:
    """The last identifier of an Itanium-mangled nested name: `_ZN2at4fillILi4EEEvv` → `fill`."""
    match = _MANGLED.match(name)
    rest, found = (match.group(1) if match else ""), ""
    while number := re.match(r"\d+", rest):
        size = int(number.group())
        found = rest[number.end() : number.end() + size]
        rest = rest[number.end() + size :]
    return found or name


def without_number(name: str) -> str:
    """Inductor numbers its kernels; the same kernel may get another number in another run."""
    return _TRITON_NUMBER.sub("", name) if name.startswith("triton_") else name


_ELEMENTWISE = re.compile(
    r"^(vectorized_elementwise_kernel|vectorized_templated_elementwise_kernel"
    r"|unrolled_elementwise_kernel(_for_multi_outputs)?|unrolled_templated_elementwise_kernel"
    r"|elementwise_kernel(_with_index|_manual_unroll)?|.*_vectorized\d_kernel"
    r"|fused_dropout_kernel(_vec)?|triton_poi_.*)$"
)


@lru_cache(maxsize=8192)
def is_elementwise(name: str) -> bool:
    """A loop that reads and writes each element once: what fusion joins without question."""
    return _ELEMENTWISE.match(family(name)) is not None


_OWN = re.compile(
    r"at::native|at_cuda_detail|caffe2::|fbgemm|flash_(fwd|bwd)|PyTorchMemEff|fmha_cutlass|triton_"
    r"|^_ZN2at|cub::|thrust::"
)
_LIBRARY = re.compile(
    r"cublas|cudnn|cusolver|cusparse|cufft|cutlass|nccl|gemm|gemv|xmma|splitK|nvjet|hipblas"
    r"|^Cijk_|miopen|implicit_convolve|winograd|nchwToN|nhwcToN|tensorTransform|(w|d)grad|fprop"
    r"|\bbn_(fw|bw)_|_fft|fft_|^(void )?(regular|vector)_fft|RNN_|rnn_|(LSTM|GRU)_elementWise"
    r"|potr|getr[fs]|geqr|gesv|syev|trsm|trsv|\blarf|dot_kernel|reduce_1Block_kernel",
    re.IGNORECASE,
)
_LIBRARY_OPS = re.compile(
    r"::(add|sp)?(mm|bmm|mv|addbmm|dot|vdot|_addmm_activation|_scaled_mm|_int_mm|baddbmm|addmv)"
    r"(_|_out)?$|convolution|::(_)?cudnn_|::miopen_|::_fft_|::(_)?linalg_|::_thnn|c10d::|nccl:"
)


def is_library(name: str, op: str = "") -> bool:
    """A kernel of cuBLAS, cuDNN and the like: by its name, else by the op that launched it."""
    if _OWN.search(name):
        return False
    return bool(_LIBRARY.search(name)) or bool(_LIBRARY_OPS.search(op))


def aten(name: str) -> str:
    """A profiler's op name in the way torch prints ops: `aten::add_` → `aten.add_`."""
    return name.replace("::", ".", 1) if re.fullmatch(r"\w+::\w+", name) else name
