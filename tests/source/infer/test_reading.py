# ruff: noqa: E501
"""The source front end: what small programs dispatch, told without running them."""

from __future__ import annotations

import sys

import pytest

from kpredict.model import Op
from kpredict.source.infer.counting import default_target, total
from kpredict.source.infer.entries import Read, read_conventional, read_file
from kpredict.source.infer.trace import straight

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def read(body: str, inputs: str) -> Read:
    text = f'{HEAD}\nENTRY = "f"\n\n{body}\n\ndef get_inputs():\n    return [{inputs}]\n'
    found = read_conventional(text, "f.py", default_target())
    assert found is not None
    return found


def ops(body: str, inputs: str) -> list[Op]:
    found = straight(read(body, inputs).items)
    assert found is not None
    return found


def launching(body: str, inputs: str) -> list[str]:
    """The names of the ops that are no views."""
    return [op.packet.removeprefix("aten.") for op in ops(body, inputs) if "view" not in op.tags]


X = 'torch.randn(4, 8, device="cuda")'


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        ("def f(a, b):\n    return (a + b).relu()", f"{X}, {X}", ["add", "relu"]),
        ("def f(a):\n    return a.t()[1:].unsqueeze(0)", X, []),
        ("def f(a):\n    return 1 / a - 2", X, ["reciprocal", "mul", "sub"]),
        ("def f(a):\n    a += 1\n    a *= 2\n    return a", X, ["add_", "mul_"]),
        ("def f(a):\n    return F.linear(a, a)", X, ["mm"]),
        ("def f(a):\n    return a.transpose(0, 1).contiguous()", X, ["clone"]),
        ("def f(a):\n    return a.contiguous().reshape(8, 4)", X, []),
        ("def f(a):\n    for i in range(3):\n        a = a * i\n    return a", X, ["mul"] * 3),
        ("def f(a):\n    return [g(a) for g in (torch.sin, torch.cos)]", X, ["sin", "cos"]),
        ("def f(a):\n    out = torch.empty_like(a)\n    torch.add(a, 1, out=out)\n    return out", X,
         ["empty_like", "add"]),
        ("def g(x, *, k=2):\n    return x ** k\n\ndef f(a):\n    return g(a, k=3)", X, ["pow"]),
        ("def f(a):\n    if a.shape[0] == 4:\n        return a + 1\n    return a.exp().log()", X, ["add"]),
        ("def f(a):\n    with torch.autocast('cuda', dtype=torch.bfloat16):\n        return a @ a.t()", X,
         ["_to_copy", "_to_copy", "mm"]),
        ("f = lambda a: torch.where(a > 0, a, 0.0)", X, ["gt", "full", "where"]),
        ("def f(a):\n    a[0] = 0\n    return a", X, ["fill_"]),
        ("def f(a):\n    x, (y, *z) = a, (a, a, a)\n    return x + y + z[0]", X, ["add", "add"]),
    ],
)  # fmt: skip
def test_ops(body: str, inputs: str, expected: list[str]) -> None:
    assert launching(body, inputs) == expected


def test_shapes_and_strides_are_those_of_torch() -> None:
    found = ops("def f(a):\n    b = a.transpose(0, 1) * 2\n    return b[:, 1:3].sum(-1)", X)
    product, total_ = found[1], found[-1]
    assert (product.out.shape, product.out.stride) == ((8, 4), (1, 8))
    assert total_.out.shape == (8,)
    assert total_.inputs[0].stride == (1, 8)


def test_lines_are_the_users() -> None:
    found = ops(
        "def f(a):\n    m = nn.functional.softmax(\n        a, dim=-1)\n    return m.add(\n        1)",
        X,
    )
    spans = [op.span for op in found]
    assert [s.line if s else 0 for s in spans] == [9, 11]
    assert spans[0] is not None
    assert spans[0].function == "f"


MODULE = """
class Block(nn.Module):
    def __init__(self, d, n=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d, d) for _ in range(n)])
        self.tail = nn.Sequential(nn.LayerNorm(d), nn.GELU(), nn.Dropout(0.1))
        self.register_buffer("scale", torch.ones(d))

    @property
    def twice(self):
        return self.scale * 2

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.tail(x) * self.twice


class Model(Block):
    def forward(self, x):
        return super().forward(x).sum()


def get_init_inputs():
    return [8, 3]


def get_inputs():
    return [torch.randn(4, 8, device="cuda")]
"""


def test_modules() -> None:
    found = read_conventional(HEAD + MODULE, "f.py")
    assert found is not None
    got = straight(found.items)
    assert got is not None
    names = [op.packet.removeprefix("aten.") for op in got if "view" not in op.tags]
    assert names == ["addmm"] * 3 + ["native_layer_norm", "gelu", "mul", "mul", "sum"]


def test_training_turns_dropout_on() -> None:
    found = read_conventional(HEAD + 'MODE = "training"\n' + MODULE, "f.py")
    assert found is not None
    got = straight(found.items)
    assert got is not None
    assert any(op.packet == "aten.native_dropout" for op in got)


def counts(text: str, name: str) -> str:
    reading = read_file(HEAD + text, "f.py")
    found = next(r for r in reading.functions if r.name == name)
    return str(total(found.items, default_target()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x: torch.Tensor):\n    return x.sin() + 1\n", "2"),
        ("def f(x: torch.Tensor, flag: bool):\n    if flag:\n        x = x + 1\n    return x * 2\n", "1..2"),
        ("def f(x: torch.Tensor, flag: bool):\n    if flag:\n        return x\n    return x.exp() * 2\n", "0..2"),
        ("def f(x: torch.Tensor, n: int):\n    for _ in range(n):\n        x = x + 1\n    return x\n", "0 or more"),
        ("def f(x: torch.Tensor, mask: torch.Tensor | None = None):\n    if mask is not None:\n"
         "        x = x + mask\n    return x\n", "0..1"),
        ("def f(x: torch.Tensor):\n    if x is None:\n        raise ValueError\n    return x + 1\n", "1"),
        ("def f(x):\n    return x + 1\n", "0"),
        ("def f(x):\n    return torch.sin(x)\n", "1"),
        ("import other\n\ndef f(x: torch.Tensor):\n    return other.op(x)\n", "0 or more"),
        ("# kpredict: x=f32[4,8]\ndef f(x):\n    return x.t().contiguous()\n", "1"),
        ("# kpredict: x=f32[4,8]\ndef f(x, n=2):\n    for _ in range(n):\n        x = x + 1\n    return x\n", "2"),
        ('ENTRY = "f"\n\ndef f(x):\n    return x.reshape(2, 16)\n\ndef get_inputs():\n    return [torch.ones(4, 8, device="cuda").t()]\n', "1"),
        ('from jaxtyping import Float\n\ndef f(x: Float[torch.Tensor, "4 8"]):\n    return x.reshape(2, 16)\n', "0"),
    ],
)  # fmt: skip
def test_intervals(text: str, expected: str) -> None:
    assert counts(text, "f") == expected


def test_unknown_modules_count_their_layers() -> None:
    text = (
        "class M(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
        "        self.up = nn.Linear(config.d, 4 * config.d)\n        self.act = nn.SiLU()\n\n"
        "    def forward(self, x):\n        return self.act(self.up(x))\n"
    )
    assert counts(text, "M.forward") == "2"


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return f(x)\n\nf(1)\n", "while True:\n    pass\n", "x = [0] * 10**12\n",
        "def f(x: torch.Tensor):\n    while True:\n        x = x + 1\n", "x = 9 ** 9 ** 9\n",
        "class A(A): pass\n", "a, b = a, b = 1\n", "def f(*a, **k):\n    return f(*a, **k)\nf()\n",
        "f = lambda: (yield)\n", "def f(x: torch.Tensor):\n    return x[x[x]][..., None, ::2, x > 0]\n",
        "x = '%s' * 10**9\n", "import torch as t, torch.nn as n\nclass M(n.Module): forward = 3\nM()(1)\n",
    ],
)  # fmt: skip
def test_nothing_hangs_or_crashes(text: str) -> None:
    read_file(HEAD + text, "f.py")


def test_torch_is_never_imported() -> None:
    import subprocess

    code = (
        "import sys; from kpredict.findings.check import check_text;"
        "from kpredict.findings.options import Options;"
        "check_text('import torch\\ndef f(x: torch.Tensor): return x + 1', 'f.py', Options());"
        "assert 'torch' not in sys.modules, 'torch'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LEAF = 'torch.randn(4, 8, device="cuda", requires_grad=True)'


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        # ones_like, the gradient of exp, and its sum with that of the call before
        ("def f(w):\n    w.exp().sum().backward()\n    return w.grad", LEAF, "5"),
        ("def f(w):\n    w.grad = None\n    w.exp().sum().backward()", LEAF, "4"),
        ("def f(w):\n    y = w * 2\n    (y + y).sum().backward()", LEAF, "7"),
        ("def f(w):\n    return torch.autograd.grad((w @ w.t()).sum(), w)[0]", LEAF, "8"),
        ("def f(w):\n    with torch.no_grad():\n        y = w.exp()\n    return y", LEAF, "1"),
        ("def f(w):\n    y = w.detach().exp().sum()\n    return y", LEAF, "2"),
        ("def f(w):\n    torch.cumulative_trapezoid(w.exp()).sum().backward()", LEAF, "17"),
        # what the tape cannot tell has no upper end
        ("def f(w):\n    y = w * 1\n    y[0] = 0\n    y.sum().backward()", LEAF, "3 or more"),
        ("def f(w):\n    w.register_hook(lambda g: g * 2)\n    w.sum().backward()", LEAF, "1 or more"),
        ("from torch.utils.checkpoint import checkpoint\n\ndef f(w):\n"
         "    checkpoint(torch.exp, w, use_reentrant=False).sum().backward()", LEAF, "2 or more"),
        ("def f(w):\n    torch.erfinv(w).sum().backward()", LEAF, "4 or more"),
    ],
)  # fmt: skip
def test_backward(body: str, inputs: str, expected: str) -> None:
    from kpredict.source.infer.counting import calls
    from kpredict.source.infer.trace import count

    target = default_target()
    assert str(count(read(body, inputs).items, lambda step: calls(step, target))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a list that grows in a loop of unknown length has any number of items
        ("def f(x: torch.Tensor, n: int):\n    out = []\n    for _ in range(n):\n"
         "        out.append(x)\n    for o in out:\n        x = x + o\n    return x\n", "0 or more"),
        # both ways see the list as it was before
        ("def f(x: torch.Tensor, a: bool):\n    out = [x]\n    if a:\n        out[0] = x + 1\n"
         "    else:\n        out[0] = x * 2\n    return out[0].exp()\n", "2"),
        ("class V:\n    def __init__(self, x):\n        self.x = x\n\n    def __add__(self, o):\n"
         "        return V(self.x + o.x)\n\ndef f(x: torch.Tensor):\n    return (V(x) + V(x)).x\n", "1"),
        ("def twice(g):\n    def inner(*a, **k):\n        return g(*a, **k) + g(*a, **k)\n"
         "    return inner\n\n@twice\ndef f(x: torch.Tensor):\n    return x.exp()\n", "3"),
        ("def f(x: torch.Tensor, mode: str):\n    match mode:\n        case 'a':\n            return x.exp()\n"
         "        case 'b' | 'c':\n            x = x + 1\n    return x * 2\n", "1..2"),
        ("def f(x: torch.Tensor):\n    it = iter([x, x])\n    return next(it) + next(it)\n", "1"),
    ],
)  # fmt: skip
def test_more_of_python(text: str, expected: str) -> None:
    assert counts(text, "f") == expected
