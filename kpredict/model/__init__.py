"""The nouns of kpredict: every stage takes and gives these, and nothing else.

In: nothing (standard library only). Out: frozen values. Read this file first.

    source ─▶ Entry ─capture─▶ Op… ─eager/compiled/profiler─▶ Plan ─graph─▶ round trips ─▶ Report
"""

from __future__ import annotations

from kpredict.model.launches import (
    Access,
    Assumption,
    Barrier,
    Dim3,
    GraphBreak,
    Launch,
    Recompile,
    Repeat,
    RoundTrip,
    Unknown,
)
from kpredict.model.ops import (
    Op,
    Span,
    tensors_in,
)
from kpredict.model.plans import (
    Phases,
    Plan,
)
from kpredict.model.reports import (
    Comparison,
    Entry,
    Failure,
    Outcome,
    Report,
    Target,
    Totals,
    Turn,
)
from kpredict.model.tensors import (
    ITEMSIZE,
    Tensor,
    row_major,
)
from kpredict.model.words import (
    ONE,
    ZERO,
    Basis,
    Count,
    Kind,
    KpredictError,
    Mode,
    Phase,
)

__all__ = [
    "ITEMSIZE",
    "ONE",
    "ZERO",
    "Access",
    "Assumption",
    "Barrier",
    "Basis",
    "Comparison",
    "Count",
    "Dim3",
    "Entry",
    "Failure",
    "GraphBreak",
    "Kind",
    "KpredictError",
    "Launch",
    "Mode",
    "Op",
    "Outcome",
    "Phase",
    "Phases",
    "Plan",
    "Recompile",
    "Repeat",
    "Report",
    "RoundTrip",
    "Span",
    "Target",
    "Tensor",
    "Totals",
    "Turn",
    "Unknown",
    "row_major",
    "tensors_in",
]
