"""Without torch the source alone answers."""

from __future__ import annotations

from kpredict.model import Count, Entry, Mode, Plan
from kpredict.request import Request
from kpredict.session.from_source import NOTE, read_entries
from kpredict.targets import target


def read(text: str, *names: str) -> list[Entry]:
    return list(read_entries(Request("f.py", names), text, target()))


def plan(entry: Entry) -> Plan:
    found = entry.plans[Mode.EAGER].forward
    assert found is not None
    return found


def test_a_directive_gives_exact_counts() -> None:
    (entry,) = read("# kpredict: a=f32[1000], b=f32[1000]\ndef f(a, b): return (a + b).relu()\n")
    assert (entry.name, entry.line) == ("f", 2)
    found = plan(entry)
    assert found.kernels == Count(2, 2)
    assert found.transfers == (5, 20_000)
    assert len(found.round_trips) == 1
    assert [x.lines[0].line for x in found.launches] == [2, 2]
    assert found.notes[0] == NOTE


def test_a_branch_counts_as_an_interval_and_a_loop_as_unknown() -> None:
    (entry,) = read(
        "import torch\n# kpredict: x=f32[8]\ndef f(x, n: int, deep: bool):\n"
        "    if deep:\n        x = x.sin()\n"
        "    for _ in range(n):\n        x = x + 1\n    return x * 2\n"
    )
    found = plan(entry)
    assert found.kernels.lo == 1
    assert [u.op for u in found.unknowns] == ["a loop"]


def test_what_launches_nothing_is_left_out_unless_named() -> None:
    text = "def f(n): return n\n# kpredict: x=f32[8]\ndef g(x): return x.relu()\n"
    assert [e.name for e in read(text)] == ["g"]
    assert [e.name for e in read(text, "f")] == ["f"]


def test_flags_give_inputs_dims_and_the_constructor() -> None:
    text = (
        "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self, d):\n"
        "        super().__init__()\n        self.fc = nn.Linear(d, d)\n\n"
        "    def forward(self, x):\n        return self.fc(x).t().reshape(-1)\n"
    )
    request = Request("f.py", inputs=("x=f32[2*b,8]", "d=8"), dims={"b": 4})
    (entry,) = read_entries(request, text, target())
    assert [x.name for x in plan(entry).launches] == ["cublasLtMatmul", "elementwise_kernel"]
