"""A recorded profile → findings: what `check` finds in source, seen to happen on a GPU.

In: the overview of a trace. Out: findings, each at the user's function where Python frames were
recorded, else at the trace file itself. What was measured is certain; how much a chain would save
is the most there can be, since a profile does not say which arrays a kernel read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from kpredict.findings.finding import Confidence, Finding
from kpredict.findings.reading import Limits
from kpredict.model import Span
from kpredict.verify.chains import Chain
from kpredict.verify.overview import Overview

_READS = frozenset({
    "aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal", "aten::allclose",
})  # fmt: skip
_SHAPED = frozenset({
    "aten::nonzero", "aten::_unique", "aten::_unique2", "aten::unique_dim", "aten::masked_select",
    "aten::unique_consecutive", "aten::bincount", "aten::repeat_interleave", "aten::index",
})  # fmt: skip


def find_in_trace(seen: Overview, file: str, limits: Limits | None = None) -> list[Finding]:
    """Findings in order of place and code; equal ones of several shapes are each their own."""
    limits = limits or Limits()
    found = [f for chain in seen.chains for f in _of_chain(chain, file, limits)]
    for wait in seen.waits:
        place = _place(wait.line, file)
        times = f"{wait.count} time{'s' if wait.count > 1 else ''}, {wait.time / 1e3:.3g} ms"
        if wait.op in _READS:
            message = f"{wait.op} made the host wait {times}"
            found.append(Finding(*place, "KP301", "host-reads-value", message, _in(wait.line)))
        elif wait.op in _SHAPED:
            message = f"the host waited {times}, for the size of what {wait.op} gives"
            found.append(Finding(*place, "KP303", "data-dependent-shape", message, _in(wait.line)))
    return sorted(found)


def _of_chain(chain: Chain, file: str, limits: Limits) -> Iterator[Finding]:
    place, n = _place(chain.line, file), len(chain.ops)
    path = " → ".join(op.removeprefix("aten::") for op in chain.ops)
    times = f", {chain.times} times" if chain.times > 1 else ""
    size = "" if chain.shape is None else f" on {chain.dtype}[{','.join(map(str, chain.shape))}]"
    small = chain.shape is not None and math.prod(chain.shape) == 1
    if small and n >= limits.tiny:
        message = f"{path}: {n} kernels on single numbers{times}"
        yield Finding(*place, "KP105", "tiny-kernels", message, _in(chain.line),
                      before=n, after=1)  # fmt: skip
    elif n >= limits.chain:
        saved = f", at most {chain.bytes / 1e6:.3g} MB less" if chain.bytes else ""
        message = f"{path}: {n} kernels{size} would be 1{times}{saved}"
        yield Finding(*place, "KP101", "pointwise-chain", message, _in(chain.line),
                      Confidence.LIKELY, n, 1, chain.bytes)  # fmt: skip
    each = (chain.bytes or 0) / (chain.times * (n - 1))
    if each > limits.round_trip_mb * 1e6:
        message = f"{path}: {n - 1} of {each / 1e6:.3g} MB written and read back{times}"
        yield Finding(*place, "KP201", "large-intermediate", message, _in(chain.line),
                      Confidence.LIKELY, n, 1, chain.bytes)  # fmt: skip


def _place(line: Span | None, file: str) -> tuple[str, int, int]:
    return (line.file, line.line, 1) if line else (file, 1, 1)


def _in(line: Span | None) -> str:
    return line.function if line else ""
