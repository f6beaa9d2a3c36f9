"""A release of torch that is not known, or lacks a name: said, and the eager plan stands."""

from __future__ import annotations

import pytest
import torch

import kpredict
from kpredict.compiled.patching import find
from kpredict.model import KpredictError


@pytest.mark.parametrize("version", ["2.10.1", "2.15.0+cu130", "3.0.0"])
def test_an_unknown_release_is_said_by_its_number(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kpredict.pretend_cuda("h100"):
        x = torch.empty(8, device="cuda")
        monkeypatch.setattr(torch, "__version__", version)
        with pytest.raises(KpredictError, match=f"torch {version[:4]}.* is not known") as error:
            kpredict.predict(lambda x: x + 1, (x,), modes=("compiled",))
        assert "torch 2.11 to 2.14" in error.value.hint
        report = kpredict.predict(lambda x: x + 1, (x,), modes=("eager",))
    assert report.eager.forward is not None
    assert report.eager.forward.kernels.hi == 1


def test_a_private_name_that_is_gone_is_named() -> None:
    with pytest.raises(KpredictError, match=r"has no torch\._inductor\.graph\.Gone") as error:
        find("torch._inductor.graph", "Gone.method")
    assert torch.__version__ in error.value.message
