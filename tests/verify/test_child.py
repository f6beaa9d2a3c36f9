"""The measuring child's way through a file, on CPU tensors where no GPU is."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from kpredict.model import Failure, Mode, Phase  # noqa: E402
from kpredict.session.choose import Chosen, choose  # noqa: E402
from kpredict.session.reading import read_source  # noqa: E402
from kpredict.verify.bundle import MeasuredEntry  # noqa: E402
from kpredict.verify.child import _entry, _load, measure_file  # noqa: E402
from kpredict.verify.request import MeasureRequest, NoCuda  # noqa: E402

SOURCE = """
# kpredict: x=f32[64]@cpu
def fine(x):
    return x.relu() + 1


# kpredict: x=f32[64]@cpu
def wrong(x):
    return x @ torch.ones(3)
"""


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MeasureRequest:
    path = tmp_path / "user_code_to_measure.py"
    path.write_text("import torch\n" + SOURCE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    return MeasureRequest(str(path), modes=(Mode.EAGER, Mode.AS_WRITTEN), seconds=0)


def test_every_entry_is_measured_or_a_failure(request_: MeasureRequest) -> None:
    source = read_source(request_.file)
    chosen = [c for c in choose(_load(request_, source), request_) if isinstance(c, Chosen)]
    found = [message for c in chosen for message in _entry(request_, source, c)]
    fine, wrong = found
    assert isinstance(fine, MeasuredEntry)
    assert (fine.name, fine.line, fine.inputs) == ("fine", 4, ("x=f32[64]@cpu",))
    assert list(fine.modes) == [Mode.EAGER]  # nothing in the file is compiled as written
    assert list(fine.modes[Mode.EAGER]) == [Phase.FORWARD]
    assert isinstance(wrong, Failure)
    assert wrong.message.startswith("eager: RuntimeError: ")
    assert (wrong.name, wrong.line) == ("wrong", 9)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_nothing_is_run(request_: MeasureRequest) -> None:
    (said,) = measure_file(request_, lambda message: None)
    assert isinstance(said, NoCuda)
    assert "no CUDA device" in said.reason
