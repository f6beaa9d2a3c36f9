"""What a file's own project tells: modules it imports, and how its script block calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpredict.findings.cache import Cache, stamp
from kpredict.findings.options import Options
from kpredict.findings.run import check_files
from kpredict.source.infer.counting import calls, default_target
from kpredict.source.infer.entries import read_file
from kpredict.source.infer.project import is_small, root_of
from kpredict.source.infer.trace import count

LAYERS = """
import torch.nn.functional as F
from torch import nn
from .math import scaled


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        return scaled(F.gelu(self.fc(x)))
"""
MATH = "def scaled(x, k=2.0):\n    return x * k + 1\n"
MODEL = """
import torch
from {layers} import Block


def run(x: torch.Tensor):
    return Block(8).cuda()(x)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(4, 8).to(device)
    print(run(x).shape)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "net"
    folder.mkdir()
    for name, text in (
        ("__init__", ""), ("layers", LAYERS), ("math", MATH),
        ("model", MODEL.format(layers=".layers")),
    ):  # fmt: skip
        (folder / f"{name}.py").write_text(text)
    return folder


def counted(path: Path, *, follow: bool = True) -> str:
    target = default_target()
    reading = read_file(path.read_text(), str(path), target, follow=follow)
    (run,) = (r for r in reading.functions if r.name == "run")
    return str(count(run.items, lambda step: calls(step, target)))


def test_imports_of_the_same_package_are_followed(package: Path) -> None:
    assert counted(package / "model.py") == "4"
    assert counted(package / "model.py", follow=False) == "0 or more"


def test_imports_from_the_root_of_the_project_are_followed(package: Path) -> None:
    (package / "model.py").write_text(MODEL.format(layers="net.layers"))
    assert counted(package / "model.py") == "4"
    assert root_of(str(package)) == str(package.parent.resolve())


def test_nothing_outside_the_project_is_read(package: Path) -> None:
    outside = package.parent.parent / "elsewhere_layers.py"
    outside.write_text(LAYERS.replace("from .math import scaled", "scaled = abs"))
    try:
        (package / "model.py").write_text(MODEL.format(layers="elsewhere_layers"))
        assert counted(package / "model.py") == "0 or more"
    finally:
        outside.unlink()


def test_imports_in_a_circle_end(package: Path) -> None:
    (package / "math.py").write_text("from .model import run\n" + MATH)
    assert counted(package / "model.py") == "4"


def test_a_large_project_is_read_file_by_file(package: Path) -> None:
    assert is_small(str(package))
    for i in range(301):
        (package / f"m{i}.py").write_text("")
    is_small.cache_clear()
    assert not is_small(str(package))


def test_an_answer_is_remembered_only_while_what_it_imports_is_the_same(package: Path) -> None:
    is_small.cache_clear()
    options = Options(select=("KP101",))
    file = str(package / "model.py")

    def check() -> list[int]:
        cache = Cache(package / "cache", stamp(options))
        (found,) = check_files([file], options, jobs=1, cache=cache)
        return [len(found.rests_on), len(cache.rows)]

    first = check()
    assert first[0] == 2
    data = Path(file).read_bytes()
    cache = Cache(package / "cache", stamp(options))
    assert cache.get(file, cache.key(data)) is not None
    (package / "math.py").write_text(MATH + "\n# changed\n")
    cache = Cache(package / "cache", stamp(options))
    assert cache.get(file, cache.key(data)) is None


def test_the_script_block_tells_inputs() -> None:
    text = (
        "import torch\n\ndef f(x, n=1):\n    for _ in range(n):\n        x = x.t().reshape(8, 4)\n"
        "    return x\n\nif __name__ == '__main__':\n    f(torch.ones(8, 4, device='cuda'), n=3)\n"
    )
    target = default_target()
    (f,) = read_file(text, "f.py", target).functions
    assert str(count(f.items, lambda step: calls(step, target))) == "3"
