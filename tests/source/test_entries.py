"""What a file's text says of its entry points."""

from __future__ import annotations

import pytest

from kpredict.model import KpredictError
from kpredict.source.entries import read_source
from kpredict.source.inputs import TensorSpec, ValueSpec
from kpredict.source.nouns import EntryKind, EntryPoint, Source


def read(text: str) -> Source:
    return read_source("f.py", text)


def find(text: str, name: str) -> EntryPoint:
    found = read(text).find(name)
    assert found is not None
    return found


def test_functions_methods_and_modules_are_found() -> None:
    source = read(
        """
import torch.nn as nn
def f(a, *rest, k=1, **more): ...
class Plain:
    def go(self, x): ...
    @staticmethod
    def still(x): ...
class Net(nn.Module):
    def __init__(self, dim, heads=4): ...
    def forward(self, x, mask=None): ...
class Sub(Net):
    pass
"""
    )
    kinds = {e.name: e.kind for e in source.entries}
    assert kinds["f"] is EntryKind.FUNCTION
    assert kinds["Plain.go"] is EntryKind.METHOD
    assert kinds["Net"] is kinds["Sub"] is EntryKind.MODULE
    assert "Plain" not in kinds
    net = source.find("Net")
    assert net is not None
    assert [(p.name, p.required) for p in net.parameters] == [("x", True), ("mask", False)]
    assert [p.name for p in net.init] == ["dim", "heads"]
    f = source.find("f")
    assert f is not None
    assert [(p.name, p.kind) for p in f.parameters] == [
        ("a", "positional"), ("rest", "args"), ("k", "keyword"), ("more", "kwargs"),
    ]  # fmt: skip
    still = source.find("Plain.still")
    assert still is not None
    assert [p.name for p in still.parameters] == ["x"]


@pytest.mark.parametrize(
    "text",
    [
        "# kpredict: x=f32[3]\ndef f(x): return x\n",
        "def f(x):  # kpredict: x=f32[3]\n    return x\n",
        "def f(x):\n    # kpredict: x=f32[3]\n    return x\n",
        "def f(x):\n    '''doc'''\n    # kpredict: x=f32[3]\n    return x\n",
        "@decorated\n# kpredict: x=f32[3]\ndef f(x):\n    return x\n",
        "# kpredict: x=f32[3]\n# and a remark\n@decorated\ndef f(x):\n    return x\n",
    ],
)
def test_a_directive_is_found_on_the_function(text: str) -> None:
    entry = find(text, "f")
    assert entry.has_directive
    assert entry.directive == {"x": TensorSpec("float32", (3,))}


@pytest.mark.parametrize(
    "text",
    [
        "# kpredict: x=f32[3]\n\ndef f(x): return x\n",
        "def f(x):\n    return x  # kpredict: x=f32[3]\n",
        "def f(x):\n    '# kpredict: x=f32[3]'\n    return x\n",
        "def f(x):  # kpredict: ignore[KP201] known\n    return x\n",
    ],
)
def test_other_comments_are_no_directives(text: str) -> None:
    assert not find(text, "f").has_directive


def test_a_modules_directives_sit_on_its_methods_too() -> None:
    entry = find(
        "class N(nn.Module):\n"
        "    def __init__(self, d):  # kpredict: d=64\n        pass\n"
        "    def forward(self, x):\n        # kpredict: x=f32[8,64]\n        return x\n",
        "N",
    )
    assert entry.directive == {"d": ValueSpec(64), "x": TensorSpec("float32", (8, 64))}


def test_jaxtyping_annotations_are_inputs() -> None:
    entry = find(
        "def f(x: Float[Tensor, 'b n 64'], m: 'Bool[torch.Tensor, \"b n\"]', "
        "y: Int[Tensor, '*batch 2*n'] | None = None, z: int = 3, w: Float[np.ndarray, 'b'] = 0):\n"
        "    return x\n",
        "f",
    )
    assert [p.annotated for p in entry.parameters] == [
        TensorSpec("float32", ("b", "n", 64)), TensorSpec("bool", ("b", "n")),
        TensorSpec("int64", ("2*n",)), None, None,
    ]  # fmt: skip


def test_conventions_are_read() -> None:
    source = read(
        "ENTRY = 'step'\nMODE = 'training'\nD2H_VALUE = -1.5\n"
        "def step(x): ...\ndef get_inputs(): ...\n"
        "if __name__ == '__main__':\n    step(1)\n"
    )
    assert source.entry == "step"
    assert source.training
    assert source.stated == -1.5
    assert source.has_main_block
    assert source.conventional == "step"


def test_without_get_inputs_no_entry_is_conventional() -> None:
    assert read("class Model(nn.Module):\n    def forward(self, x): ...\n").conventional == ""


def test_suppressions_are_kept_with_codes_and_reasons() -> None:
    source = read(
        "x = 1  # kpredict: ignore[KP201, KP301] it is small\ny = 2  # noqa: E501, KP101\n"
    )
    assert [(s.line, s.codes, s.reason) for s in source.suppressions] == [
        (1, ("KP201", "KP301"), "it is small"),
        (2, ("E501", "KP101"), ""),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "Syntax error on line 1: invalid syntax."),
        ("x = (\n", "Syntax error on line 1: '(' was never closed."),
        ("print 3\n", "Syntax error on line 1: Missing parentheses"),
    ],
)
def test_what_is_not_python_says_where(text: str, message: str) -> None:
    with pytest.raises(KpredictError) as error:
        read(text)
    assert str(error.value).startswith(message)


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    with pytest.raises(KpredictError):
        read("x = " + "(" * 5000 + "1" + ")" * 5000 + "\n")
