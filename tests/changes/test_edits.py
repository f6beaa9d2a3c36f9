"""Edits: where they go, what they leave alone, and which cannot be made together."""

from __future__ import annotations

import ast

from kpredict.changes.by_hand import find
from kpredict.changes.change import Change, Edit, Kind, apply, compatible, diff, moved
from kpredict.changes.walking import read

TEXT = "a = 1\nb = 2\nc = 3\n"


def change(*edits: Edit) -> Change:
    return Change(Kind.BY_HAND, "", 1, 1, edits)


def test_apply_makes_all_edits_from_the_original_offsets() -> None:
    made = apply(TEXT, [change(Edit(12, 17, "d = 4")), change(Edit(0, 6, ""), Edit(6, 6, "x\n"))])
    assert made == "x\nb = 2\nd = 4\n"


def test_the_same_edit_of_two_changes_is_made_once() -> None:
    assert apply(TEXT, [change(Edit(6, 6, "x\n")), change(Edit(6, 6, "x\n"))]).count("x") == 1


def test_moved_follows_lines_that_come_and_go() -> None:
    taken = [change(Edit(0, 6, ""))]
    put = [change(Edit(6, 6, "x\ny\n"))]
    assert [moved(n, TEXT, taken) for n in (2, 3)] == [1, 2]
    assert [moved(n, TEXT, put) for n in (1, 2, 3)] == [1, 4, 5]


def test_compatible_keeps_the_first_of_what_overlaps_and_nothing_twice() -> None:
    whole, part, other = change(Edit(0, 11, "")), change(Edit(6, 8, "")), change(Edit(12, 13, "z"))
    assert compatible([whole, part, other]) == [whole, other]
    both = change(*whole.edits, *other.edits)
    assert compatible([both, whole, other]) == [both]


def test_insertions_at_one_place_do_not_conflict() -> None:
    assert not change(Edit(6, 6, "x\n")).conflicts(change(Edit(6, 6, "y\n")))
    assert change(Edit(6, 6, "x\n")).conflicts(change(Edit(5, 8, "")))


def test_diff_is_unified() -> None:
    assert diff(TEXT, [change(Edit(6, 7, "z"))], "f.py").splitlines()[3:] == [
        " a = 1", "-b = 2", "+z = 2", " c = 3",
    ]  # fmt: skip


def only(text: str) -> str:
    """The text with the one change it offers."""
    (change,) = [c for r in read(text, ast.parse(text)) for group in find(r) for c in group]
    return apply(text, [change])


def test_comments_and_layout_of_everything_else_stay() -> None:
    text = """\
import torch

def f(x):
    # the exponentials
    e = torch.exp(x)  # all of them

    return (  # normalised
        e
        / e.sum(-1, keepdim=True)
    )
"""
    assert (
        only(text)
        == """\
import torch

def f(x):
    # the exponentials

    return (  # normalised
        torch.softmax(x, dim=-1)
    )
"""
    )


def test_other_alphabets_do_not_move_the_edit() -> None:
    text = 'import torch\n\ndef f(x):\n    é = "→"; y = x * torch.sigmoid(x)\n    return é, y\n'
    assert 'é = "→"; y = torch.nn.functional.silu(x)' in only(text)


def test_an_assignment_that_is_read_elsewhere_stays() -> None:
    text = """\
import torch
import torch.nn.functional as F

def f(x):
    s = torch.sigmoid(x)
    y = x * s
    return y, s
"""
    assert "    s = torch.sigmoid(x)\n    y = F.silu(x)\n" in only(text)


def test_an_assignment_that_a_closure_reads_stays() -> None:
    text = """\
import torch
import torch.nn.functional as F

def f(x):
    s = torch.sigmoid(x)
    y = x * s
    return y, lambda: s
"""
    assert "    s = torch.sigmoid(x)\n    y = F.silu(x)\n" in only(text)


def test_a_call_with_effects_still_runs_once() -> None:
    text = """\
import torch

def f(x, net):
    h = net(x)
    return h * torch.sigmoid(h)
"""
    assert "    h = net(x)\n    return torch.nn.functional.silu(h)\n" in only(text)


def test_two_calls_are_two_values() -> None:
    text = "import torch\n\ndef f(x, net):\n    return net(x) * torch.sigmoid(net(x))\n"
    assert not [g for r in read(text, ast.parse(text)) for g in find(r)]


def test_a_name_that_hides_the_import_is_not_used() -> None:
    text = "import torch\n\ndef f(x, torch_):\n    torch = torch_\n    return x * x.sigmoid()\n"
    assert not [g for r in read(text, ast.parse(text)) for g in find(r)]


def test_attributes_that_the_function_sets_are_not_trusted() -> None:
    text = """\
import torch

class M:
    def f(self, x):
        s = torch.sigmoid(self.x)
        self.x = x
        return self.x * s
"""
    assert not [g for r in read(text, ast.parse(text)) for g in find(r)]


def offered(text: str) -> list[Change]:
    return [c for r in read(text, ast.parse(text)) for group in find(r) for c in group]


def test_what_ran_without_gradients_is_not_replaced() -> None:
    text = """\
import torch
import torch.nn.functional as F

def f(x):
    m = x.mean(-1, keepdim=True)
    with torch.no_grad():
        v = x.var(-1, keepdim=True, unbiased=False)
    return (x - m) / torch.sqrt(v + 1e-5)
"""
    assert not offered(text)
    assert offered(text.replace("    with torch.no_grad():\n        v", "    v"))


def test_an_operand_may_come_from_another_context() -> None:
    text = """\
import torch

def f(net, z):
    with torch.no_grad():
        x = net(z)
    return x * torch.sigmoid(x)
"""
    assert "return torch.nn.functional.silu(x)" in only(text)


def test_arrays_of_numpy_are_left_alone() -> None:
    text = """\
import numpy as np
import torch

def f(x):
    return x / np.sqrt((x ** 2).mean(axis=-1, keepdims=True) + 1e-6)
"""
    assert not offered(text)
