"""Which entry points are run, with which arguments."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kpredict.model import Failure, Phase  # noqa: E402
from kpredict.request import FORWARD, TRAINING, Request  # noqa: E402
from kpredict.session.choose import Chosen, Loaded, choose, known_without_running  # noqa: E402
from kpredict.session.observe import Seen  # noqa: E402
from kpredict.source.entries import read_source  # noqa: E402


def load(text: str, seen: dict[str, Seen] | None = None) -> Loaded:
    namespace: dict[str, Any] = {"torch": torch, "__name__": "f"}
    exec(compile(text, "f.py", "exec"), namespace)
    return Loaded(read_source("f.py", text), namespace, seen or {}, "f.py")


def run(text: str, seen: dict[str, Seen] | None = None, **asked: Any) -> list[Chosen | Failure]:
    return list(choose(load(text, seen), Request("f.py", **asked)))


def inputs(chosen: Chosen | Failure) -> tuple[str, ...]:
    assert isinstance(chosen, Chosen)
    return chosen.make()[1]


PAIR = "def f(x, n=2): return x * n\n"


def test_a_directive_makes_an_entry() -> None:
    (chosen,) = run("# kpredict: x=f32[2,3]@cpu\n" + PAIR)
    assert inputs(chosen) == ("x=f32[2,3]@cpu",)


def test_an_input_goes_before_the_directive() -> None:
    (chosen,) = run("# kpredict: x=f32[2,3]@cpu\n" + PAIR, inputs=("x=i64[4]@cpu", "n==7"))
    assert inputs(chosen) == ("x=i64[4]@cpu", "n=7")


CONVENTION = (
    "ENTRY = 'f'\ndef get_inputs(): return [torch.ones(3)]\ndef get_kwargs(): return {'n': 5}\n"
)


def test_conventions_give_inputs_and_nothing_else_is_run() -> None:
    (chosen,) = run(PAIR + "def helper(y): return y\n" + CONVENTION)
    assert inputs(chosen) == ("x=f32[3]@cpu", "n=5")


def test_a_directive_beside_get_inputs_replaces_its_argument() -> None:
    (chosen,) = run("# kpredict: n=9\n" + PAIR + CONVENTION)
    assert inputs(chosen) == ("x=f32[3]@cpu", "n=9")


def test_annotations_need_their_dimensions() -> None:
    text = (
        "class Float:\n    def __class_getitem__(cls, _): return cls\n"
        "from torch import Tensor\ndef f(x: Float[Tensor, 'b n']): return x\n"
    )
    (skipped,) = run(text)
    assert isinstance(skipped, Failure)
    assert skipped.hint == "Give --dim b=64,n=64"
    request = Request("f.py", dims={"b": 2, "n": 3})
    assert known_without_running(load(text).source, request)
    assert len([c for c in choose(load(text), request) if isinstance(c, Chosen)]) == 1


def test_what_a_script_passed_is_an_input() -> None:
    seen = {"f": Seen(None, (torch.ones(5),), {}, grad=True)}
    (chosen,) = run(PAIR, seen)
    assert isinstance(chosen, Chosen)
    call, told = chosen.make()
    assert told == ("x=f32[5]@cpu",)
    assert call.grad is True


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("g", "It has no entry point called g.", "Entry points: f."),
        ("ff", "It has no entry point called ff.", "Did you mean f?"),
        ("f", "No inputs are known for x of f.", "# kpredict: x=f32[64,128]"),
    ],
)
def test_what_is_asked_for_and_cannot_be_is_an_error(name: str, message: str, hint: str) -> None:
    (found,) = run(PAIR, names=(name,))
    assert isinstance(found, Failure)
    assert not found.skipped
    assert found.message == message
    assert found.hint.endswith(hint)


NET = """
class Net(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.l = torch.nn.Linear(d, d)
    def cuda(self): return self
    # kpredict: x=f32[2,4]@cpu
    def forward(self, x): return self.l(x)
    def loss(self, x): return self(x).sum()
def make_optimizer(model): return torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_a_module_needs_its_own_arguments() -> None:
    (found,) = run(NET)
    assert isinstance(found, Failure)
    assert found.message == "Net.__init__ needs d."
    (chosen,) = run(NET, inputs=("d==4",))
    assert inputs(chosen) == ("x=f32[2,4]@cpu",)


def test_inference_and_training_conventions() -> None:
    (chosen,) = run(NET, inputs=("d==4",))
    assert isinstance(chosen, Chosen)
    call, _ = chosen.make()
    assert (call.phases, call.grad, call.optimizer) == (FORWARD, False, None)
    assert isinstance(call.fn, torch.nn.Module)
    assert not call.fn.training
    (chosen,) = run(NET, inputs=("d==4",), phases=TRAINING)
    assert isinstance(chosen, Chosen)
    call, _ = chosen.make()
    assert call.phases == TRAINING
    assert call.grad is True
    assert call.optimizer is not None
    assert call.fn.training


def test_overrides() -> None:
    (chosen,) = run(NET, inputs=("d==4",), train=True, grad=True)
    assert isinstance(chosen, Chosen)
    call, _ = chosen.make()
    assert (call.fn.training, call.grad, call.phases) == (True, True, FORWARD)


def test_a_method_is_bound_to_a_fresh_module() -> None:
    (chosen,) = run(NET, names=("Net.loss",), inputs=("d==4", "x=f32[2,4]@cpu"))
    assert isinstance(chosen, Chosen)
    call, _ = chosen.make()
    assert call.fn.__name__ == "loss"
    assert isinstance(call.root, torch.nn.Module)


def test_mode_training_in_the_file_is_the_default() -> None:
    text = NET + "MODE = 'training'\n"
    (chosen,) = run(text, inputs=("d==4",))
    assert isinstance(chosen, Chosen)
    assert Phase.BACKWARD in chosen.make()[0].phases
    (chosen,) = run(text, inputs=("d==4",), phases=FORWARD)
    assert isinstance(chosen, Chosen)
    assert chosen.make()[0].phases == FORWARD


def test_an_instance_that_the_file_binds_can_be_named() -> None:
    (chosen,) = run(NET + "net = Net(4)\n", names=("net",), inputs=("x=f32[2,4]@cpu",))
    assert inputs(chosen) == ("input=f32[2,4]@cpu",) or inputs(chosen) == ("x=f32[2,4]@cpu",)
