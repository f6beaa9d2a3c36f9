"""What only a real GPU can say. Skipped, with the reason, where there is none.

`make gpu-check` runs the same files without pytest and writes a bundle.
"""

from pathlib import Path

import pytest

from kpredict.model import Kind, Mode, Phase
from kpredict.request import Request
from kpredict.verify import render_text
from kpredict.verify.bundle import MeasuredEntry
from kpredict.verify.run import measure_files, verify
from kpredict.verify.sweep import sized

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason=f"no CUDA device (torch {torch.__version__})"
)

ROOT = Path(__file__).parents[2]
FIXTURES = sorted(ROOT.glob("fixtures/*.py"))
PROGRAMS = sorted(ROOT.glob("fixtures/programs/*.py"))


def names(entry: MeasuredEntry, mode: Mode) -> list[str]:
    plan = entry.modes[mode][Phase.FORWARD].measured.plan
    return [launch.name for launch in plan.launches if launch.kind is Kind.KERNEL]


def test_the_four_steps_of_the_article() -> None:
    """Two kernels eager, one compiled, and its name says what it does."""
    request = Request(str(ROOT / "fixtures" / "article.py"), names=("add_relu",))
    (entry,) = measure_files([request], seconds=0).entries
    assert names(entry, Mode.EAGER) == ["vectorized_elementwise_kernel"] * 2
    assert names(entry, Mode.COMPILED) == ["triton_poi_fused_add_relu_0"]


@pytest.mark.parametrize("path", [*FIXTURES, *PROGRAMS], ids=lambda p: p.stem)
def test_predicted_as_measured(path: Path) -> None:
    found, _ = verify([Request(str(path), timeout=300)], seconds=0)
    assert found.checked
    assert [render_text.details(c, False) for c in found.checked if not c.comparison.agrees] == []
    assert not [phase for c in found.checked for phase in c.found.unsteady]


def test_fusion_pays_on_large_arrays() -> None:
    """The article's last step: one array of 100 million, 3 transfers instead of 5."""
    request = Request(str(ROOT / "fixtures" / "add_relu.py"))
    large = sized(request, "add_relu", ("a=f32[8]", "b=f32[8]"), "a", 100_000_000)
    (entry,) = measure_files([large]).entries
    eager = entry.modes[Mode.EAGER][Phase.FORWARD].time
    compiled = entry.modes[Mode.COMPILED][Phase.FORWARD].time
    assert eager is not None
    assert compiled is not None
    assert eager / compiled > 1.3


def test_out_of_memory_is_one_clear_line() -> None:
    request = Request(
        str(ROOT / "fixtures" / "add_relu.py"), inputs=("a=f32[400000000000]",), modes=(Mode.EAGER,)
    )
    bundle = measure_files([request], seconds=0)
    assert bundle.entries == ()
    assert "memory" in bundle.errors[0].message
