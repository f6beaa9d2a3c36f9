"""Without libcst the same is known of a file."""

from pathlib import Path

import pytest

from kpredict.model import KpredictError
from kpredict.source import entries, plain

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("kpredict/*.py"), *ROOT.glob("fixtures/*.py")])

CASES = '''
import functools
from torch import nn

ENTRY = "f"  # kpredict: ignore[KP101] not about an entry
D2H_VALUE = 3


# kpredict: x=f32[64,128]
@functools.cache
def f(x, /, y=1, *rest, scale, shift=0.0, **others):
    """Doc."""
    # kpredict: scale=f32[]
    return x  # noqa: KP201, KP202 because


class Base(nn.Module):
    pass


class Model(Base):
    def __init__(self, width):
        super().__init__()

    # kpredict: x=f32[4]
    def forward(self, x):
        return x

    @staticmethod
    def helper(a):
        return a


class Data:
    def size(self): return 1


async def g(x): ...


def get_inputs(): return []


if __name__ == "__main__":
    f(1, scale=2)
'''


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_same_of_real_files(path: Path) -> None:
    text = path.read_text()
    assert plain.read_source("f.py", text) == entries.read_source("f.py", text)


def test_the_same_of_every_construct() -> None:
    source = plain.read_source("f.py", CASES)
    assert source == entries.read_source("f.py", CASES)
    assert source.find("f").directive.keys() == {"x", "scale"}
    assert source.find("Model").directive.keys() == {"x"}
    assert source.has_main_block


def test_a_syntax_error_has_its_line() -> None:
    with pytest.raises(KpredictError, match="Syntax error on line 2"):
        plain.read_source("f.py", "x = 1\ny = (\n")
