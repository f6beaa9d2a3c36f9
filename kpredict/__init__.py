"""kpredict: which CUDA kernels PyTorch code launches, eager and compiled, without a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kpredict.api import predict as predict
    from kpredict.api import pretend_cuda as pretend_cuda
    from kpredict.eager.registry import rule_of_user as rule
    from kpredict.findings.registry import finding_rule as finding_rule

__all__ = ["__version__", "finding_rule", "predict", "pretend_cuda", "rule"]


def __getattr__(name: str) -> Any:
    """`predict` and `pretend_cuda` import torch; the package alone must not."""
    if name == "rule":
        from kpredict.eager.registry import rule_of_user

        return rule_of_user
    if name == "finding_rule":
        from kpredict.findings.registry import finding_rule

        return finding_rule
    if name in ("predict", "pretend_cuda"):
        from kpredict import api

        return getattr(api, name)
    raise AttributeError(f"module 'kpredict' has no attribute {name!r}")
