"""One small report, made by hand, that every renderer's test uses."""

from __future__ import annotations

import pytest

from kpredict.model import (
    Access,
    Assumption,
    Barrier,
    Basis,
    Count,
    Entry,
    Failure,
    GraphBreak,
    Kind,
    Launch,
    Mode,
    Phases,
    Plan,
    Report,
    RoundTrip,
    Span,
    Tensor,
    Unknown,
)
from kpredict.targets import target

SOURCE = "def f(x, w):\n    y = x @ w\n    for _ in range(2):\n        y = y + 1\n    return y\n"


def _access(storage: int) -> Access:
    return Access.of(Tensor((500, 500), (500, 1), "float32", storage=storage))


@pytest.fixture
def report() -> Report:
    two, four = (Span("f.py", 2, "f"),), (Span("f.py", 4, "f"),)
    product = Launch(
        Kind.LIBRARY, "gemm", Count(1, 2), (_access(0), _access(1)), (_access(2),), Basis.LIBRARY,
        "split-K", expected=1, ops=("aten.mm.default",), lines=two,
    )  # fmt: skip
    add = Launch(
        Kind.KERNEL, "vectorized_elementwise_kernel", Count(1, 1), (_access(2),), (_access(3),),
        grid=(10, 1, 1), block=(128, 1, 1), ops=("aten.add.Tensor",), lines=four,
    )  # fmt: skip
    again = Launch(
        Kind.KERNEL, "vectorized_elementwise_kernel", Count(1, 1), (_access(3),), (_access(4),),
        ops=("aten.add.Tensor",), lines=four,
    )  # fmt: skip
    wait = Launch(Kind.SYNC, "synchronize", because="item", lines=four)
    eager = Plan(
        (product, add, again, wait),
        (
            RoundTrip(_access(2).tensor, 0, (1,), 2_000_000),
            RoundTrip(_access(3).tensor, 1, (2,), 2_000_000),
        ),
        unknowns=(Unknown("mylib.op.default", "it has no rule", two),),
    )
    fused = Launch(
        Kind.KERNEL, "triton_poi_fused_add_0", Count(1, 1), (_access(2),), (_access(4),),
        ops=("aten.add.Tensor", "aten.add.Tensor"), lines=four, region="0/0",
    )  # fmt: skip
    compiled = Plan(
        (product, fused),
        (RoundTrip(_access(2).tensor, 0, (1,), 2_000_000),),
        (Barrier(0, 1, "library", "gemm takes no epilogue"),),
        graph_breaks=(GraphBreak("print: it prints", Span("f.py", 5)),),
    )
    names = {0: "x", 1: "w"}
    entry = Entry(
        "f.py", "f", 1, ("x=f32[500,500]", "w=f32[500,500]"),
        {Mode.EAGER: Phases(eager), Mode.COMPILED: Phases(compiled)},
        (Assumption("value read by the host", "1", Span("f.py", 4)),), SOURCE,
        {Mode.EAGER: names, Mode.COMPILED: names}, {3: 3, 4: 2},
    )  # fmt: skip
    return Report(
        target("h100", "2.13.0"), (entry,), (Failure("g.py", "It broke.", "Mend it.", "g", 3),),
        (Failure("f.py", "No inputs are known for z of h.", "Tell it.", "h", 9, skipped=True),),
    )  # fmt: skip
